/**
 * Owns: what stands behind the two listeners that people and operators come to.
 * Does not own: when they open and close (server.ts), their routes (src/http), the listener of sandboxes.
 */
import type { Actors } from '../actors/index.ts';
import type { Config } from './config.ts';
import type { GitRepositories } from './context/loaders/git/index.ts';
import type { OpenedDatabase } from './database.ts';
import { createWebListener, type HttpListener, type OpsListenerOptions } from './http/index.ts';
import { systemClock } from './kernel/clock.ts';
import type { Log } from './kernel/log.ts';
import type { Live } from './live/index.ts';
import { MemberAdmin } from './models/members.ts';
import type { Metrics } from './ops/index.ts';
import type { Sandboxes } from './sandboxes.ts';
import type { Operators } from './server-operators.ts';
import { CONNECTIONS_MAX, modelAdmin, PAGE_FOLDER, readinessParts, type ServerState, sessionFacts } from './server-parts.ts';
import type { PeopleParts } from './server-people.ts';
import type { Slack } from './slack/index.ts';

export interface DoorParts {
  readonly config: Config;
  readonly log: Log;
  readonly opened: OpenedDatabase;
  readonly sandboxes: Sandboxes;
  readonly actors: Actors;
  readonly live: Live;
  readonly metrics: Metrics;
  readonly state: ServerState;
  readonly repositories: GitRepositories | null;
  readonly people: PeopleParts;
  readonly slack: Slack;
  readonly operators: Operators;
}

/** The listener for people; it opens when everything behind it is there. */
export function doorForPeople({ config, log, opened, sandboxes, actors, live, metrics, people, slack }: DoorParts): HttpListener {
  return createWebListener({
    ...{ runtime: actors.runtime, db: opened.db, live: live.hub, stages: live.partials, changes: live.changes, clock: systemClock, log },
    authenticator: people.authenticator,
    ...(people.signIn ? { signIn: people.signIn } : {}),
    slack: slack.door,
    session: sessionFacts(config, sandboxes),
    pageFolder: PAGE_FOLDER,
    embedOrigins: config.embedOrigins,
    connectionsMax: CONNECTIONS_MAX,
    observe: metrics.observeRequest,
  });
}

/** What the operations listener answers from now on. */
export function doorForOperators(parts: DoorParts): OpsListenerOptions {
  const { config, log, opened, sandboxes, actors, live, metrics, state, repositories, people, slack, operators } = parts;
  return {
    parts: readinessParts({ config, opened, live, state, sandboxes }),
    started: () => state.started,
    metrics,
    actors: () => actors.views(),
    // What operators read goes through their own pool, so that it answers while the server's is busy.
    models: modelAdmin(config, operators.db),
    members: new MemberAdmin(operators.db),
    people: people.admin,
    repositories: repositories?.admin ?? null,
    slack: slack.admin(),
    operators: operators.port,
    pageFolder: PAGE_FOLDER,
    adminGuard: operators.guard,
    ...(people.opsSignIn ? { signIn: people.opsSignIn } : {}),
    connectionsMax: CONNECTIONS_MAX,
    log,
  };
}
