/**
 * Owns: reading every loaded page of every loaded conversation again after a snapshot (seed "Live updates").
 * Does not own: what is done with them (store/snapshot.ts), or trying again (controller.ts).
 */
import { LIMITS } from '../../contract/limits.ts';
import type { Entry, EntryPage, Turn } from '../../contract/web.ts';
import type { ChatApi } from '../net/api.ts';
import type { ChatState, Island, RereadPage } from '../store/state.ts';

/** Most pages that one re-read asks for. Who scrolled further back than that loads the rest by scrolling again. */
const rereadPagesMax = 10;

/** How far back a conversation is loaded, and so how far it is read again. */
export interface Reread {
  /** The cursor of the next older page; null: it is loaded to its beginning; undefined: nothing is loaded yet. */
  until: number | null | undefined;
  loadedEntries: number;
  /** An older piece that is loaded, too. */
  island: Pick<Island, 'from' | 'to'> | null;
}

/** Conversation id -> how far to read it. */
export function rereadPlan(state: ChatState): Map<string, Reread> {
  const loaded = new Map<string, number>();
  for (const { conversationId } of Object.values(state.entries)) loaded.set(conversationId, (loaded.get(conversationId) ?? 0) + 1);
  const plan = new Map<string, Reread>();
  for (const { id, parentConversationId } of state.sync?.snapshot.conversations ?? []) {
    const range = state.ranges[id];
    if (range === undefined && parentConversationId !== null) continue;
    const until = range?.opening === undefined ? range?.nextBefore : undefined;
    plan.set(id, { until, loadedEntries: loaded.get(id) ?? 0, island: range?.island ?? null });
  }
  return plan;
}

/** As many as are loaded and a page more, for what came since; a page at least. */
function pageSize(loadedEntries: number): number {
  if (loadedEntries === 0) return LIMITS.pageDefaultEntries;
  return Math.min(LIMITS.pageMaxEntries, loadedEntries + LIMITS.pageDefaultEntries);
}

interface Piece {
  /** null: from the newest entry on. */
  before: number | null;
  until: number | null | undefined;
  limit: number;
}

/** One piece of a conversation, from its newest entry back to `until`. `gone` when it does not exist any more, null when it cannot be read now. */
async function rereadPiece(
  api: ChatApi,
  conversationId: string,
  { before: start, until, limit }: Piece,
): Promise<EntryPage | 'gone' | null> {
  const entries: Entry[] = [];
  const turns: Turn[] = [];
  let before = start;
  for (let pages = 0; pages < rereadPagesMax; pages++) {
    const result = await api.entries(conversationId, { before, limit });
    if (!result.ok) return result.failure.kind === 'problem' && result.failure.problem.status === 404 ? 'gone' : null;
    entries.push(...result.value.entries);
    turns.push(...result.value.turns);
    before = result.value.nextBefore;
    // What is older than that was not loaded before: otherwise each reconnection would load a little more.
    if (typeof until === 'number' && (before === null || before <= until)) {
      return { entries: entries.filter((entry) => entry.seq >= until), turns, nextBefore: until };
    }
    if (before === null || until === undefined) break;
  }
  return { entries, turns, nextBefore: before };
}

/** All that is loaded of one conversation. */
async function reread(api: ChatApi, conversationId: string, { until, loadedEntries, island }: Reread): Promise<RereadPage | 'gone' | null> {
  const limit = pageSize(loadedEntries);
  const newest = await rereadPiece(api, conversationId, { before: null, until, limit });
  if (newest === null || newest === 'gone' || island === null) return newest;
  const older = await rereadPiece(api, conversationId, { before: island.to + 1, until: island.from, limit });
  if (older === null || older === 'gone') return older;
  const { entries, turns, nextBefore } = newest;
  return {
    entries: [...older.entries, ...entries],
    turns: [...older.turns, ...turns],
    nextBefore,
    island: { from: older.nextBefore, to: island.to },
  };
}

/** Every page of the plan, or null when one of them cannot be read now. */
export async function rereadPages(api: ChatApi, plan: ReadonlyMap<string, Reread>): Promise<Record<string, RereadPage> | null> {
  const pages: Record<string, RereadPage> = {};
  for (const [conversationId, how] of plan) {
    const page = await reread(api, conversationId, how);
    if (page === null) return null;
    if (page !== 'gone') pages[conversationId] = page;
  }
  return pages;
}
