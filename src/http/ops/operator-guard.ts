/**
 * Owns: the guard of the operations listener: each route is asked with the role that roles.ts says it needs, before it runs.
 * Does not own: who asks (`AdminGuard`: this machine, a token, a signed-in account).
 */
import type Koa from 'koa';
import { mayAs, type OpsRole } from '../../contract/operators.ts';
import { RuntimeFault } from '../../kernel/faults.ts';
import type { Route } from '../route.ts';
import { ROUTE_NEEDS } from './roles.ts';

/** Who asks, as the log of actions names them. */
export interface Operator {
  /** `local`, `token:…`, or the id of an account. */
  readonly name: string;
  readonly role: OpsRole;
}

export interface AdminGuard {
  /** Before the page and its files, which hold nothing of anybody. Throws FORBIDDEN or ORIGIN_REFUSED. */
  admit(ctx: Koa.Context): void;
  /** Throws UNAUTHENTICATED, SIGNED_OUT, FORBIDDEN or ORIGIN_REFUSED, each with what to do. */
  who(ctx: Koa.Context): Operator | Promise<Operator>;
  /** Who may read `/metrics`; absent: whoever reaches the port. */
  metrics?(ctx: Koa.Context): void | Promise<void>;
}

/** What to ask for, in the words of the person who was refused. */
const WHAT: Readonly<Record<OpsRole, string>> = {
  viewer: 'To look at this',
  operator: 'To act',
  admin: 'To configure this installation, or to see what people wrote',
};

export function guarded(route: Route, guard: AdminGuard): Route {
  const need = ROUTE_NEEDS[`${route.method} ${route.path}`];
  if (need === undefined) throw new Error(`Nothing says who may ask ${route.method} ${route.path}. Add it to src/http/ops/roles.ts.`);
  if (need === 'open' || need === 'sign-in') return route;
  return {
    ...route,
    async handle(ctx) {
      if (need === 'metrics') await guard.metrics?.(ctx);
      else await admit(ctx, guard, need);
      await route.handle(ctx);
    },
  };
}

async function admit(ctx: Koa.Context, guard: AdminGuard, need: OpsRole): Promise<void> {
  const operator = await guard.who(ctx);
  if (!mayAs(operator.role, need)) {
    const text = `${WHAT[need]} you need the role ${need}; you are ${operator.role}. An admin gives it: heph operator set, or another token.`;
    throw new RuntimeFault('FORBIDDEN', text, { extra: { role: operator.role, needs: need } });
  }
  ctx.state['operator'] = operator;
}

/** Who asks, behind the guard. */
export function operatorOf(ctx: Koa.Context): Operator {
  return ctx.state['operator'] as Operator;
}
