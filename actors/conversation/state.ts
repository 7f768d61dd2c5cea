/**
 * Owns: the shape of a ConversationActor's memory.
 */
import type { ConversationRows } from '../../db/ledger/conversation.ts';
import type { ConversationId, RunId, SandboxId } from '../../src/kernel/ids.ts';
import type { ParkedPull } from './pulls.ts';

/** What lives in memory: the cached rows and the pulls that are parked here. */
export interface ConversationState {
  readonly id: ConversationId;
  /** null: they changed elsewhere; they are read again when needed. */
  rows: ConversationRows | null;
  readonly parked: Map<SandboxId, ParkedPull>;
  /** When this server heard the first words of the attempt that runs, on the monotonic clock. */
  firstWords: { readonly runId: RunId; readonly epoch: number; readonly atMs: number } | null;
}
