/**
 * Owns: ending a connection: nothing more is stored at once, then everything that was written through it is erased, then it is over. Each server
 * takes up what another one left.
 */
import type { Actors } from '../../actors/index.ts';
import type { Database } from '../../db/pool.ts';
import { beginDisconnect, type EndingConnection, endingConnections, eraseSlackBatch, finishDisconnect } from '../../db/slack/disconnect.ts';
import { LIMITS } from '../contract/limits.ts';
import type { Log } from '../kernel/log.ts';

export interface DisconnectDeps {
  readonly db: Database;
  readonly log: Log;
  readonly actors: Pick<Actors, 'entriesErased'>;
}

export class Disconnector {
  readonly #deps: DisconnectDeps;
  #working: Promise<void> | null = null;

  constructor(deps: DisconnectDeps) {
    this.#deps = deps;
  }

  /** Resolves when everything is erased. False: the team was not connected. */
  async end(teamId: string, why: string): Promise<boolean> {
    const begun = await beginDisconnect(this.#deps.db, teamId, why);
    if (begun) this.#deps.log.warn('slack disconnected', { teamId, why });
    await this.#working?.catch(() => undefined); // it may have looked before this connection was ending
    await this.run();
    return begun;
  }

  /** Erases what connections that are being ended have left. */
  run(): Promise<void> {
    this.#working ??= this.#run().finally(() => {
      this.#working = null;
    });
    return this.#working;
  }

  async #run(): Promise<void> {
    for (const connection of await endingConnections(this.#deps.db)) await this.#erase(connection);
  }

  async #erase(connection: EndingConnection): Promise<void> {
    const { db, log, actors } = this.#deps;
    let conversations = 0;
    for (;;) {
      const changed = await eraseSlackBatch(db, { workspaceId: connection.workspaceId, graceMs: LIMITS.stopGraceMs });
      if (changed === null) break;
      actors.entriesErased(changed);
      conversations += changed.length;
    }
    await finishDisconnect(db, connection);
    log.info('slack content erased', { teamId: connection.teamId, conversations });
  }
}
