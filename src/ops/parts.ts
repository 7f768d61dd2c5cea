/**
 * Owns: readiness parts that are read from the database or from what main.ts hands in. Shaped as src/http/ops wants them.
 */

import { countSlots } from '../../db/ledger/slots.ts';
import type { Database } from '../../db/pool.ts';
import { appliedMigrations } from '../../db/web/applied-migrations.ts';

export interface Part {
  readonly name: string;
  readonly required: boolean;
  check(): Promise<{ ok: boolean; why: string }> | { ok: boolean; why: string };
}

const READY = 'ready';

/** The database answers. */
export function databasePart(db: Database): Part {
  return {
    ...{ name: 'database', required: true },
    check: () =>
      appliedMigrations(db).then(
        () => ({ ok: true, why: READY }),
        () => ({ ok: false, why: 'The database does not answer. Check that it runs and that HEPH_DATABASE_URL is right.' }),
      ),
  };
}

/** Every migration of this program (`known`) is applied. */
export function migrationsPart(db: Database, known: readonly string[]): Part {
  return {
    ...{ name: 'migrations', required: true },
    async check() {
      const applied = new Set(await appliedMigrations(db));
      const missing = known.filter((name) => !applied.has(name));
      return missing.length === 0
        ? { ok: true, why: READY }
        : { ok: false, why: `Not applied: ${missing.join(', ')}. Start a newer server once.` };
    },
  };
}

/** Words of other servers arrive. Without them the sweep still does its work every 2 s, so it is told and not required. */
export function listeningPart(listening: () => boolean): Part {
  return {
    ...{ name: 'listener', required: false },
    check: () =>
      listening()
        ? { ok: true, why: READY }
        : {
            ok: false,
            why: 'LISTEN is not connected and is being tried again. Use a direct connection, not a pooler, in HEPH_DATABASE_URL.',
          },
  };
}

/** The server is not shutting down. */
export function drainingPart(draining: () => boolean): Part {
  return {
    ...{ name: 'draining', required: true },
    check: () => (draining() ? { ok: false, why: 'The server shuts down and takes nothing new.' } : { ok: true, why: READY }),
  };
}

/** The slot rows are as many as this server is configured for: otherwise the servers disagree. */
export function capacityPart(db: Database, capacityTurns: number): Part {
  return {
    ...{ name: 'capacity', required: false },
    async check() {
      const { total } = await countSlots(db);
      if (total === capacityTurns) return { ok: true, why: `${total} turns at once` };
      const text = `The installation has ${total} slots and this server is configured for ${capacityTurns}.`;
      return { ok: false, why: `${text} Give every server the same HEPH_AGENT_CAPACITY_TURNS and restart them.` };
    },
  };
}

/** The model of this server's settings is the one in force: otherwise a server with other settings was started after this one. */
export function environmentModelPart(isInForce: () => Promise<boolean>): Part {
  return {
    ...{ name: 'environment-model', required: false },
    async check() {
      if (await isInForce()) return { ok: true, why: READY };
      const text = 'A server with other HEPH_LLM_ variables was started after this one, and its model is in force.';
      return { ok: false, why: `${text} Give every server the same HEPH_LLM_ variables and restart them.` };
    },
  };
}

/** Something that an operator should know. `warning` is null when there is nothing. */
export function notePart(name: string, note: () => { warning: string | null; why: string }): Part {
  return {
    ...{ name, required: false },
    check() {
      const { warning, why } = note();
      return warning === null ? { ok: true, why } : { ok: false, why: warning };
    },
  };
}
