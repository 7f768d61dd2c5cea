/**
 * Owns: who may ask what on the operations listener. One list: a route that is not in it keeps the server from starting, and a spec asks every
 * line of it as every role.
 */
import type { OpsRole } from '../../contract/operators.ts';

/**
 * `open`: whoever reaches the port; probes and `/metrics` tell ids of servers, codes and counts, never of a person. `metrics`: the same, unless
 * HEPH_OPS_METRICS_TOKEN is set. `sign-in`: nobody is asked yet. Else the least role.
 */
export type Need = 'open' | 'metrics' | 'sign-in' | OpsRole;

export const ROUTE_NEEDS: Readonly<Record<string, Need>> = {
  'GET /livez': 'open',
  'GET /readyz': 'open',
  'GET /startupz': 'open',
  'GET /metrics': 'metrics',
  'GET /ops/sign-in': 'sign-in',
  'GET /auth/login': 'sign-in',
  'GET /auth/callback': 'sign-in',
  'POST /auth/logout': 'sign-in',
  // Read.
  'GET /admin/api/me': 'viewer',
  'GET /admin/api/overview': 'viewer',
  'GET /admin/api/turns': 'viewer',
  'GET /admin/api/turns/:id': 'viewer',
  'GET /admin/api/conversations/:id': 'viewer',
  'GET /admin/api/actors': 'viewer',
  'GET /admin/api/actors/:kind/:id': 'viewer',
  'GET /admin/api/actions': 'viewer',
  'GET /admin/api/outbox': 'viewer',
  'GET /admin/api/sandboxes': 'viewer',
  'GET /admin/api/spending': 'viewer',
  'GET /admin/api/usage': 'viewer',
  'GET /admin/api/budgets': 'viewer',
  'GET /admin/api/calls': 'viewer',
  'GET /admin/api/connections': 'viewer',
  'GET /admin/api/models': 'viewer',
  'GET /admin/api/bindings': 'viewer',
  'GET /admin/api/repositories': 'viewer',
  'GET /admin/api/workspaces': 'viewer',
  'GET /admin/api/slack': 'viewer',
  // Act.
  'POST /admin/api/turns/:id/stop': 'operator',
  'POST /admin/api/turns/:id/requeue': 'operator',
  'POST /admin/api/turns/:id/skip': 'operator',
  'POST /admin/api/turns/:id/release': 'operator',
  'POST /admin/api/batch': 'operator',
  'POST /admin/api/claims/pause': 'operator',
  'POST /admin/api/claims/resume': 'operator',
  'POST /admin/api/drain': 'operator',
  'POST /admin/api/outbox/:id/sent': 'operator',
  'POST /admin/api/outbox/:id/again': 'operator',
  'GET /admin/api/slack/check': 'operator',
  // Words and addresses of people, configuration, and who operates.
  'POST /admin/api/entries/:id/reveal': 'admin',
  'GET /admin/api/operators': 'admin',
  'POST /admin/api/operators': 'admin',
  'GET /admin/api/members': 'admin',
  'POST /admin/api/members': 'admin',
  'PATCH /admin/api/members': 'admin',
  'PATCH /admin/api/members/:account': 'admin',
  'POST /admin/api/workspaces': 'admin',
  'POST /admin/api/connections': 'admin',
  'PATCH /admin/api/connections/:name': 'admin',
  'POST /admin/api/models': 'admin',
  'PATCH /admin/api/models/:name': 'admin',
  'PUT /admin/api/bindings': 'admin',
  'PUT /admin/api/budgets': 'admin',
  'POST /admin/api/repositories': 'admin',
  'DELETE /admin/api/repositories/:name': 'admin',
  'POST /admin/api/slack': 'admin',
  'POST /admin/api/slack/disconnect': 'admin',
};
