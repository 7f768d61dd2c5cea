/**
 * Owns: putting together what operators get: their own small pool (their page answers while the server's pool is busy), reads, actions.
 * Does not own: what they see and do (src/ops), who may (src/http/ops).
 */
import { readFileSync } from 'node:fs';
import { type Actors, failureTexts } from '../actors/index.ts';
import { describeHost, noteDraining } from '../db/ops/hosts.ts';
import { readLoad, readMonthCost } from '../db/ops/overview.ts';
import { readPauses } from '../db/ops/pauses.ts';
import { type Database, openDatabase } from '../db/pool.ts';
import type { OpenedDatabase } from './database.ts';
import type { OperatorPort } from './http/index.ts';
import { errorKind, type Log } from './kernel/log.ts';
import { countStuck, type InstallationLoad, OperatorActions, OperatorView } from './ops/index.ts';
import type { ServerState } from './server-parts.ts';

/** Two readers and one who acts; a page that asks more waits. A statement that takes longer than this tells nobody anything. */
const POOL = { poolMax: 3, waitersMax: 100, acquireTimeoutMs: 5_000, statementTimeoutMs: 5_000, applicationName: 'heph-operators' };

export interface Operators {
  readonly db: Database;
  readonly port: OperatorPort;
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
  readonly assistantName: string;
}

/** Which program this is. */
export function buildName(): string {
  const { name, version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as Record<string, string>;
  return `${name} ${version}, node ${process.versions.node}`;
}

export async function openOperators({ opened, log, actors, state, assistantName }: OperatorsParts): Promise<Operators> {
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
  const view = new OperatorView(db, hostId);
  const actions = new OperatorActions({
    ...{ db, log, hostId, skipped: failureTexts(assistantName).skipped },
    hands: {
      stopTurn: (member, turnId) => actors.runtime.stopTurn(member, turnId),
      reap: () => actors.reap(),
      turnEnded: (turn) => actors.turnEnded(turn),
      ...{ drain, draining: () => state.draining },
    },
  });
  return {
    ...{ db, drainAsked: asked.promise, noteDraining: note },
    port: {
      overview: () => view.overview(),
      turns: (query) => view.turns(query),
      turn: (id) => view.turn(id),
      actions: (before, limit) => view.actions(before, limit),
      preview: (ask) => actions.preview(ask),
      run: (order) => actions.run(order),
    },
    async load() {
      const [load, stuck, pauses, monthCost] = await Promise.all([readLoad(db), countStuck(db), readPauses(db), readMonthCost(db)]);
      return { load, stuck: stuck.byRule, pauses: pauses.length, monthCost };
    },
  };
}
