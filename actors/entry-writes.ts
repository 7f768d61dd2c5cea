/**
 * Owns: writes to entries that are there: erasure, edit, vote. Their statements take the locks; no actor serializes them (several trees may be
 * concerned at once), so the conversations' actors are told afterwards, like of any write that they did not make.
 * A change is published after the commit, never inside the transaction.
 */
import { type EditResult, editQuestion } from '../db/ledger/edit.ts';
import { type ChangedConversation, eraseEntries } from '../db/ledger/erase.ts';
import { voteEntry } from '../db/ledger/vote.ts';
import type { Database } from '../db/pool.ts';
import type { Change } from '../src/contract/changes.ts';
import type { ChangeSink, PartialSink } from './ports.ts';
import type { EntryWrites } from './runtime.ts';

export interface EntryWritesDeps {
  readonly db: Database;
  readonly changes: ChangeSink;
  readonly partials: PartialSink;
  /** For the actors of this server: what they hold is out of date. */
  readonly changed: (change: Change) => void;
  readonly graceMs: number;
}

export function createEntryWrites(deps: EntryWritesDeps): EntryWrites {
  const { db, graceMs } = deps;
  return {
    eraseEntry: async (member, id) => {
      const changed = await db.transaction((tx) => eraseEntries(tx, { ids: [id], reach: member, graceMs }));
      tellChanged(deps, changed);
    },
    editEntry: async (member, id, text) => {
      const result: EditResult = await db.transaction((tx) => editQuestion(tx, { id, text, owner: member }));
      if (result.kind === 'edited') tellChanged(deps, result.changed);
      return { kind: result.kind };
    },
    voteEntry: async (member, id, vote) => {
      const result = await voteEntry(db, { id, vote, owner: member });
      if (result.kind !== 'voted' || result.version === null) return { kind: result.kind };
      const { conversationId, version } = result;
      tellChanged(deps, [{ ...member, conversationId, version, entryIds: [id], turnIds: [], sealedRunIds: [] }]);
      return { kind: 'voted' };
    },
  };
}

/** Tells of entries that changed, after the commit. A stopped turn's words go at once, from every screen; a turn that is stopped while it waits moves those behind it up. */
export function tellChanged(
  { changes, partials, changed }: Pick<EntryWritesDeps, 'changes' | 'partials' | 'changed'>,
  conversations: readonly ChangedConversation[],
): void {
  for (const { turnIds, entryIds, sealedRunIds, ...conversation } of conversations) {
    for (const turnId of turnIds) partials.clear(conversation.conversationId, turnId, null);
    const change: Change = {
      ...conversation,
      ...{ turnIds: [...turnIds], entryIds: [...entryIds], sealedRunIds: [...sealedRunIds] },
      ...(turnIds.length > 0 ? { slots: true } : {}),
    };
    changes.publish(change);
    changed(change);
  }
}
