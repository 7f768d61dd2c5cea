/**
 * Owns: putting together what operators get: their own small pool (their page answers while the server's pool is busy), reads, actions.
 * Does not own: what they see and do (src/ops), who may (src/http/ops).
 */
import { readFileSync } from 'node:fs';
import { type Actors, failureTexts, type RunnerView } from '../actors/index.ts';
import { describeHost, noteDraining } from '../db/ops/hosts.ts';
import { readLoad, readMonthCost } from '../db/ops/overview.ts';
import { readPauses } from '../db/ops/pauses.ts';
import { type Database, openDatabase } from '../db/pool.ts';
import type { Config } from './config.ts';
import type { OpenedDatabase } from './database.ts';
import { type AdminGuard, type BrowserKey, type OperatorPort, operatorDoor } from './http/index.ts';
import { errorKind, type Log } from './kernel/log.ts';
import { countStuck, type InstallationLoad, OperatorDesk } from './ops/index.ts';
import type { ServerState } from './server-parts.ts';
import type { PeopleParts } from './server-people.ts';

/** Two readers and one who acts; a page that asks more waits. A statement that takes longer than this tells nobody anything. */
const POOL = { poolMax: 3, waitersMax: 100, acquireTimeoutMs: 5_000, statementTimeoutMs: 5_000, applicationName: 'heph-operators' };

/** Actors that are looked through for one. */
const ACTORS_MAX = 100_000;

export interface Operators {
  readonly db: Database;
  readonly port: OperatorPort;
  /** Who asks on the operations listener. */
  readonly guard: AdminGuard;
  /** For the gauges. */
  load(): Promise<InstallationLoad>;
  /** Shows the other servers' operators that this one drains; does not throw. */
  noteDraining(): Promise<void>;
  /** Resolves when an operator asks this server to drain. */
  readonly drainAsked: Promise<void>;
}

export interface OperatorsParts {
  readonly opened: OpenedDatabase;
  readonly log: Log;
  readonly actors: Actors;
  readonly state: ServerState;
  readonly config: Config;
  readonly people: PeopleParts;
  /** null: being on this machine proves who asks. */
  readonly browserKey?: BrowserKey | null | undefined;
  /** Of this server. */
  readonly runners: () => readonly RunnerView[];
}

/** Which program this is. */
export function buildName(): string {
  const { name, version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as Record<string, string>;
  return `${name} ${version}, node ${process.versions.node}`;
}

export async function openOperators({
  opened,
  log,
  actors,
  state,
  config,
  people,
  browserKey,
  runners,
}: OperatorsParts): Promise<Operators> {
  const hostId = opened.host.id;
  const db = await openDatabase({ url: opened.url, ...POOL });
  await describeHost(db, hostId, buildName());
  const asked = Promise.withResolvers<void>();
  const note = () => noteDraining(db, hostId).catch((error: unknown) => log.warn('drain not noted', { error: errorKind(error) }));
  const drain = () => {
    state.draining = true;
    actors.stopClaiming();
    void note();
    asked.resolve();
  };
  const port = new OperatorDesk({
    ...{ db, log, hostId, skipped: failureTexts(config.assistantName).skipped },
    memory: { actors: () => actors.views(ACTORS_MAX), runners },
    hands: {
      stopTurn: (member, turnId) => actors.runtime.stopTurn(member, turnId),
      reap: () => actors.reap(),
      turnEnded: (turn) => actors.turnEnded(turn),
      ...{ drain, draining: () => state.draining },
    },
  });
  return {
    ...{ db, port, drainAsked: asked.promise, noteDraining: note, guard: guardOf(config, { ...people, browserKey }, db) },
    async load() {
      const [load, stuck, pauses, monthCost] = await Promise.all([readLoad(db), countStuck(db), readPauses(db), readMonthCost(db)]);
      return { load, stuck: stuck.byRule, pauses: pauses.length, monthCost };
    },
  };
}

/** With a token for a role everybody who is not the one person of this machine says who they are, on this machine, too. */
function guardOf(
  { auth, ops: { tokens, metricsToken } }: Config,
  { opsSignIn, bearer, browserKey = null }: Pick<PeopleParts, 'opsSignIn' | 'bearer'> & Pick<OperatorsParts, 'browserKey'>,
  db: Database,
): AdminGuard {
  const local = auth.kind === 'local' || tokens.length === 0;
  return operatorDoor({ db, tokens, metricsToken, local, keyboard: browserKey, signIn: opsSignIn ?? null, bearer });
}
