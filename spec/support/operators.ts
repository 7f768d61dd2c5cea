/**
 * Owns: an operations listener for specs, with the real reads and actions of operators on the rows of a database, and the command line before it.
 */
import type { Actors } from '../../actors/index.ts';
import { failureTexts } from '../../actors/index.ts';
import type { Database } from '../../db/pool.ts';
import { runAdminCommand } from '../../src/cli/run.ts';
import { createOpsListener, type OpsListenerOptions, requireLocalAdmin } from '../../src/http/index.ts';
import { silentLog } from '../../src/kernel/log.ts';
import { createMetrics, OperatorDesk as Desk, type OperatorHands } from '../../src/ops/index.ts';
import type { InMemory } from '../../src/ops/operator-pages.ts';
import { type Answer, answerOf } from './http-rig.ts';

export interface OperatorDesk {
  readonly url: string;
  readonly hands: OperatorHands & { drains: number };
  get(path: string, headers?: Record<string, string>): Promise<Answer>;
  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  /** `heph …`: its exit code and what it said. */
  heph(...args: readonly string[]): Promise<{ code: number; said: string }>;
  close(): Promise<void>;
}

/** Hands without actors: a stop is refused, and nobody is told. */
function noHands(): Pick<OperatorHands, 'stopTurn' | 'reap' | 'turnEnded'> {
  return { stopTurn: async () => ({ kind: 'no-turn' }), reap: async () => 0, turnEnded: () => undefined };
}

export interface DeskOptions extends Partial<Pick<OpsListenerOptions, 'pageFolder' | 'parts' | 'members' | 'adminGuard' | 'signIn'>> {
  readonly actors?: Actors;
  readonly hostId?: string;
  readonly runners?: InMemory['runners'];
}

export async function openDesk(db: Database, options: DeskOptions = {}): Promise<OperatorDesk> {
  const { actors, hostId = 'this-server', runners = () => [], ...listening } = options;
  const deeds = actors && {
    stopTurn: actors.runtime.stopTurn,
    reap: () => actors.reap(),
    turnEnded: (turn: Parameters<Actors['turnEnded']>[0]) => actors.turnEnded(turn),
  };
  const hands = {
    ...(deeds ?? noHands()),
    drains: 0,
    drain: () => void hands.drains++,
    draining: () => hands.drains > 0,
  };
  const memory = { actors: () => actors?.views() ?? [], runners };
  const operators = new Desk({ db, log: silentLog, hands, hostId, memory, skipped: failureTexts('Heph').skipped });
  const listener = createOpsListener({
    ...{
      parts: [],
      started: () => true,
      metrics: createMetrics(),
      actors: () => actors?.views() ?? [],
      connectionsMax: 50,
      log: silentLog,
    },
    ...{ adminGuard: requireLocalAdmin, ...listening },
    operators,
  });
  const url = `http://127.0.0.1:${await listener.start('127.0.0.1', 0)}`;
  return {
    ...{ url, hands },
    get: async (path, headers = {}) => answerOf(await fetch(`${url}/admin/api/${path}`, { headers })),
    async post(path, body = {}, headers = {}) {
      const init = { method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json', ...headers } };
      return answerOf(await fetch(`${url}/admin/api/${path}`, init));
    },
    async heph(...args) {
      let said = '';
      const say = (text: string) => {
        said += text;
      };
      return { code: await runAdminCommand(args, { opsUrl: url, readInput: async () => '', out: say, err: say }), said };
    },
    close: () => listener.stop(1_000),
  };
}

/** Closes each desk after its test. */
export function useDesks(database: { readonly db: Database }): (options?: DeskOptions) => Promise<OperatorDesk> {
  const open: OperatorDesk[] = [];
  afterEach(async () => {
    await Promise.all(open.splice(0).map((desk) => desk.close()));
  });
  return async (options) => {
    const desk = await openDesk(database.db, options);
    open.push(desk);
    return desk;
  };
}
