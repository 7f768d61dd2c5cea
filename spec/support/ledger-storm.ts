/**
 * Owns: many clients that run the ledger's statements against a few conversations at once, in a random order, the way servers do: each reads,
 * decides, writes at the version that it read. What the rows must be like afterwards is the spec's business.
 */

import { failureTexts } from '../../actors/index.ts';
import { openCall } from '../../db/gateway/open-call.ts';
import { type ConversationRows, loadConversation } from '../../db/ledger/conversation.ts';
import { endTurn } from '../../db/ledger/end-turn.ts';
import { noteCall, renewLeases } from '../../db/ledger/fence.ts';
import { handOnRun } from '../../db/ledger/hand-on.ts';
import { takeBackLeases } from '../../db/ledger/reap.ts';
import { refuseTurns } from '../../db/ledger/refuse.ts';
import { endIdleSandbox, endSilentSandboxes } from '../../db/ledger/sandboxes.ts';
import { stopTurn } from '../../db/ledger/stop.ts';
import { type Database, sql } from '../../db/pool.ts';
import { type ConversationId, type HostId, type SandboxId, uuidv7 } from '../../src/kernel/ids.ts';
import { ask, claimFor, makeSandbox, type Person, run } from './ledger.ts';
import { answer } from './scene.ts';

export interface StormPlace {
  readonly person: Person;
  readonly conversationId: ConversationId;
}

/** So short that some leases are lost while their attempt still works. */
const TIMES = { leaseTtlMs: 8, graceMs: 10, refusals: failureTexts('Heph').refusals };
/** The model's timeout in a storm. */
export const STORM_DEADLINE_MS = 40;
const TEXTS = { failed: { code: 'ERROR', text: 'failed' }, deadline: { code: 'DEADLINE', text: 'late' } };

export class Storm {
  /** How often each operation changed something. */
  readonly done: Record<string, number> = {};
  readonly #places: readonly StormPlace[];
  readonly #hostId: HostId;
  readonly #sandboxes = new Map<ConversationId, SandboxId>();

  constructor(places: readonly StormPlace[], hostId: HostId) {
    this.#places = places;
    this.#hostId = hostId;
  }

  /** One client: `rounds` operations one after the other. */
  async client(db: Database, rounds: number): Promise<void> {
    for (let round = 0; round < rounds; round++) {
      const operations = Object.entries(this.#operations);
      const [name, operation] = operations[Math.floor(Math.random() * operations.length)] as (typeof operations)[number];
      const place = this.#places[Math.floor(Math.random() * this.#places.length)] as StormPlace;
      const rows = await loadConversation(db, place.conversationId);
      if (rows && (await operation(db, rows, place))) this.done[name] = (this.done[name] ?? 0) + 1;
    }
  }

  readonly #operations: Record<string, (db: Database, rows: ConversationRows, place: StormPlace) => Promise<boolean>> = {
    submit: async (db, rows, { person, conversationId }) => {
      const sandboxId = rows.leased || rows.queued.length > 0 ? null : (this.#sandboxes.get(conversationId) ?? null);
      return (await ask(db, person, conversationId, { sandboxId, maxFollowUps: 3 })).result.kind === 'written';
    },
    claim: async (db) => {
      const offers = [...this.#sandboxes].map(([conversationId, sandboxId]) => ({ conversationId, sandboxId }));
      return offers.length > 0 && (await claimFor(db, offers, TIMES)).grants.length > 0;
    },
    refuse: async (db, rows, { person }) => {
      await run(
        db,
        sql.unsafe`update workspace_member set ai_allowed = random() < 0.7
          where workspace_id = ${person.workspaceId} and account_id = ${person.accountId} returning 1`,
      );
      return (await refuseTurns(db, [rows.id], TIMES.refusals)).length > 0;
    },
    stop: async (db, rows) => {
      const turnId = rows.leased?.turnId ?? rows.queued[0]?.turnId;
      return turnId !== undefined && (await stopTurn(db, { ...at(rows), turnId, graceMs: TIMES.graceMs })) !== null;
    },
    call: async (db, rows) => {
      if (!rows.leased) return false;
      const { workspaceId, id: conversationId, leased } = rows;
      const { runId, epoch, sandboxId } = leased;
      const call = { callId: uuidv7<'call'>(), hostId: uuidv7<'host'>(), api: 'openai-completions', callsMax: 1_000 } as const;
      return (await openCall(db, { ...call, runId, epoch, sandboxId, workspaceId, conversationId })).kind === 'opened';
    },
    note: async (db, rows) => rows.leased !== null && (await noteCall(db, rows.leased)) !== null,
    renew: async (db) => (await renewLeases(db, await leasedKeys(db), TIMES.leaseTtlMs)).size > 0,
    end: async (db, rows) => {
      if (!rows.leased) return false;
      return (await endTurn(db, { ...at(rows), ...rows.leased, status: 'DONE', error: null, entries: [answer()] })) !== null;
    },
    handOn: async (db, rows) => rows.leased !== null && (await handOnRun(db, { ...at(rows), ...rows.leased })) !== null,
    reap: async (db) => {
      await endSilentSandboxes(db, 100);
      return (await takeBackLeases(db, 100, TEXTS)).length > 0;
    },
    endIdle: async (db, _rows, { conversationId }) => {
      const sandboxId = this.#sandboxes.get(conversationId);
      return sandboxId !== undefined && (await endIdleSandbox(db, sandboxId));
    },
    sandbox: async (db, _rows, { person, conversationId }) => {
      const { id } = await makeSandbox(db, person, conversationId, this.#hostId);
      const [row] = await run(db, sql.unsafe`select id from sandbox where conversation_id = ${conversationId} and state <> 'ENDED'`);
      if (row) this.#sandboxes.set(conversationId, row['id'] as SandboxId);
      return row?.['id'] === id;
    },
  };
}

function at(rows: ConversationRows) {
  return { conversationId: rows.id, version: rows.version };
}

async function leasedKeys(db: Database) {
  const rows = await run(db, sql.unsafe`select id, epoch, sandbox_id from agent_run where state = 'LEASED'`);
  return rows.map((row) => ({ runId: row['id'] as never, epoch: Number(row['epoch']), sandboxId: row['sandbox_id'] as SandboxId }));
}
