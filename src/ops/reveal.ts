/**
 * Owns: showing one entry's words to an operator who may and says why (db/ops/reveal.ts writes the log in the same statement).
 */
import { findAction } from '../../db/ops/actions.ts';
import { findEntryPlace, revealEntry } from '../../db/ops/reveal.ts';
import type { Executor } from '../../db/pool.ts';
import type { RevealedEntry, RevealInput } from '../contract/operator-batch.ts';
import type { ActionPreview } from '../contract/operators.ts';
import { RuntimeFault } from '../kernel/faults.ts';
import { uuidv7 } from '../kernel/ids.ts';
import type { Log } from '../kernel/log.ts';
import { planReveal } from './action-plan.ts';
import { keyReused } from './operator-actions.ts';

export interface RevealOrder extends RevealInput {
  readonly entryId: string;
  readonly operator: string;
}

export class Reveal {
  readonly #deps: { readonly db: Executor; readonly log: Log };

  constructor(deps: { readonly db: Executor; readonly log: Log }) {
    this.#deps = deps;
  }

  async preview(entryId: string): Promise<ActionPreview> {
    const place = await this.#place(entryId);
    const { kind, seq, conversation_id: conversation } = place;
    return { action: 'reveal-entry', target: entryId, ...planReveal(place), before: { kind, seq, conversation } };
  }

  /** Throws ENTRY_NOT_FOUND, ACTION_REFUSED for what is erased, KEY_REUSED. */
  async reveal({ entryId, reason, idempotencyKey, operator }: RevealOrder): Promise<RevealedEntry> {
    const { db, log } = this.#deps;
    const row = await revealEntry(db, { id: uuidv7<'action'>(), entryId, reason, idempotencyKey, operator });
    if (!row) throw await this.#why(entryId, idempotencyKey);
    if (row.logged) log.warn('operator action', { action: 'reveal-entry', target: entryId, operator });
    const { id, conversation_id: conversationId, turn_id: turnId, seq, kind, created_at: createdAt, text, payload, cut, logged } = row;
    return {
      entry: { id, conversationId, turnId, seq, kind, createdAt, text, payload, cut },
      action: { operator, reason, repeated: !logged },
    };
  }

  async #why(entryId: string, key: string): Promise<RuntimeFault> {
    const plan = planReveal(await this.#place(entryId));
    if (!plan.allowed) return new RuntimeFault('ACTION_REFUSED', plan.effect);
    const known = await findAction(this.#deps.db, key);
    if (known) return keyReused();
    return new RuntimeFault('BUSY', 'The entry is being written. Try again with the same key.', { retry: 'same' });
  }

  async #place(entryId: string) {
    const place = await findEntryPlace(this.#deps.db, entryId);
    if (place) return place;
    throw new RuntimeFault('ENTRY_NOT_FOUND', 'There is no such entry. The page of its conversation lists their ids.');
  }
}
