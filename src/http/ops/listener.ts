/**
 * Owns: the operations listener: probes, metrics, and what operators look at. Who may ask what: roles.ts.
 */
import type Koa from 'koa';
import type { ActorView } from '../../../actors/index.ts';
import { RuntimeFault } from '../../kernel/faults.ts';
import type { Log } from '../../kernel/log.ts';
import { createApp, type RequestObserver } from '../route.ts';
import { securityHeaders } from '../security-headers.ts';
import { createServer, type HttpListener } from '../server.ts';
import { servePage } from '../web/page.ts';
import { adminMemberRoutes, type MemberAdminPort } from './admin-members.ts';
import { adminModelRoutes, type ModelAdminPort } from './admin-models.ts';
import { adminPeopleRoutes, type PeopleAdminPort } from './admin-people.ts';
import { adminRepositoryRoutes, type RepositoryAdminPort } from './admin-repositories.ts';
import { adminSlackRoutes, type SlackAdminPort } from './admin-slack.ts';
import { getActors } from './get-actors.ts';
import { getLivez } from './get-livez.ts';
import { getMetrics, type MetricsSource } from './get-metrics.ts';
import { getReadyz } from './get-readyz.ts';
import { getStartupz } from './get-startupz.ts';
import { type AdminGuard, guarded } from './operator-guard.ts';
import { type OperatorPort, operatorRoutes } from './operator-routes.ts';
import type { ReadinessPart } from './readiness.ts';
import { type OpsSignIn, opsSignInRoutes } from './sign-in.ts';

export interface OpsListenerOptions {
  readonly parts: readonly ReadinessPart[];
  /** True once everything has started. */
  readonly started: () => boolean;
  readonly metrics: MetricsSource;
  readonly actors: () => readonly ActorView[];
  readonly models?: ModelAdminPort;
  readonly members?: MemberAdminPort;
  /** null: this server has no git, and says so. */
  readonly repositories?: RepositoryAdminPort | null;
  readonly people?: PeopleAdminPort;
  readonly slack?: SlackAdminPort;
  readonly operators?: OperatorPort;
  /** Folder of the built page; without it there is no operator page. */
  readonly pageFolder?: string;
  /** Who asks; which role each route needs stands in roles.ts. */
  readonly adminGuard: AdminGuard;
  /** Absent: nobody signs in on this listener. */
  readonly signIn?: OpsSignIn;
  readonly connectionsMax: number;
  readonly log: Log;
  readonly observe?: RequestObserver;
}

const IDLE_TIMEOUT_MS = 30_000;
/** The operator page; of the folder that it shares with the chat, only its own document and the hashed files. */
const OPERATORS = { at: '/ops', index: '/ops/index.html' };
const PAGE_PATHS = /^\/(?:ops$|assets\/|favicon\.svg$)/;

export function createOpsListener(options: OpsListenerOptions): HttpListener {
  return createServer({ ...serverOptions(options), callback: opsApp(options).callback() });
}

/** A listener that answers probes before anything else is there. */
export interface EarlyOpsListener extends HttpListener {
  /** From now on it answers everything. */
  serve(options: OpsListenerOptions): void;
}

/** `stage` says what the server waits for, in a sentence for an operator. */
export function createEarlyOpsListener(options: {
  readonly stage: () => string;
  readonly connectionsMax: number;
  readonly log: Log;
}): EarlyOpsListener {
  const starting = { name: 'starting', required: true, check: () => ({ ok: false, why: options.stage() }) };
  const early = createApp({
    ...{ log: options.log, before: [securityHeaders], routes: [getLivez(), getReadyz([starting]), getStartupz(() => false)] },
    otherwise: () => {
      throw new RuntimeFault('BUSY', 'The server is starting. Try again in a moment.', { retry: 'later' });
    },
  });
  let answer = early.callback();
  const listener = createServer({ ...serverOptions(options), callback: (request, response) => void answer(request, response) });
  return {
    ...listener,
    serve: (all) => {
      answer = opsApp(all).callback();
    },
  };
}

function serverOptions({ connectionsMax }: { readonly connectionsMax: number }) {
  return { portVariable: 'HEPH_OPS_PORT', connectionsMax, idleTimeoutMs: IDLE_TIMEOUT_MS };
}

function opsApp(options: OpsListenerOptions): Koa {
  const { parts, started, metrics, actors, models, members, people, repositories, slack, operators, adminGuard } = options;
  const { log, observe, pageFolder, signIn } = options;
  const routes = [
    getLivez(),
    getReadyz(parts),
    getStartupz(started),
    getMetrics(metrics),
    ...getActors(actors),
    ...(operators ? operatorRoutes(operators) : []),
    ...(models ? adminModelRoutes(models) : []),
    ...(members ? adminMemberRoutes(members) : []),
    ...(repositories === undefined ? [] : adminRepositoryRoutes(repositories)),
    ...(people ? adminPeopleRoutes(people) : []),
    ...(slack ? adminSlackRoutes(slack) : []),
    ...(signIn ? opsSignInRoutes(signIn) : []),
  ].map((route) => guarded(route, adminGuard));
  const page = pageFolder === undefined ? undefined : servePage(pageFolder, OPERATORS);
  const otherwise: Koa.Middleware = async (ctx, next) => {
    if (page === undefined || !PAGE_PATHS.test(ctx.path)) return next();
    adminGuard.admit(ctx);
    await page(ctx, next);
  };
  return createApp({ log, observe, routes, before: [securityHeaders], otherwise });
}
