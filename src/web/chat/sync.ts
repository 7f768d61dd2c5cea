/**
 * Owns: reading every loaded page of every loaded conversation again after a snapshot (seed "Live updates").
 * Does not own: what is done with them (store/snapshot.ts), or trying again (controller.ts).
 */
import { LIMITS } from '../../contract/limits.ts';
import type { Entry, EntryPage, Turn } from '../../contract/web.ts';
import type { ChatApi } from '../net/api.ts';
import type { ChatState } from '../store/state.ts';

/** Most pages that one re-read asks for. Who scrolled further back than that loads the rest by scrolling again. */
const rereadPagesMax = 10;

/** Conversation id -> how far back it is loaded: a cursor, null for its beginning, undefined when nothing is loaded yet. */
export function rereadPlan(state: ChatState): Map<string, number | null | undefined> {
  const plan = new Map<string, number | null | undefined>();
  for (const conversation of state.sync?.snapshot.conversations ?? []) {
    const range = state.ranges[conversation.id];
    const isMain = conversation.parentConversationId === null;
    if (range !== undefined || isMain) plan.set(conversation.id, range?.nextBefore);
  }
  return plan;
}

function reached(nextBefore: number | null, until: number | null | undefined): boolean {
  if (nextBefore === null || until === undefined) return true;
  return until !== null && nextBefore <= until;
}

/** One conversation from its newest entry back to `until`. `gone` when it does not exist any more, null when it cannot be read now. */
async function reread(api: ChatApi, conversationId: string, until: number | null | undefined): Promise<EntryPage | 'gone' | null> {
  const entries: Entry[] = [];
  const turns: Turn[] = [];
  const limit = until === undefined ? LIMITS.pageDefaultEntries : LIMITS.pageMaxEntries;
  let before: number | null = null;
  for (let pages = 0; pages < rereadPagesMax; pages++) {
    const result = await api.entries(conversationId, { before, limit });
    if (!result.ok) {
      const { failure } = result;
      return failure.kind === 'problem' && failure.problem.status === 404 ? 'gone' : null;
    }
    entries.push(...result.value.entries);
    turns.push(...result.value.turns);
    before = result.value.nextBefore;
    if (reached(before, until)) break;
  }
  return { entries, turns, nextBefore: before };
}

/** Every page of the plan, or null when one of them cannot be read now. */
export async function rereadPages(
  api: ChatApi,
  plan: ReadonlyMap<string, number | null | undefined>,
): Promise<Record<string, EntryPage> | null> {
  const pages: Record<string, EntryPage> = {};
  for (const [conversationId, until] of plan) {
    const page = await reread(api, conversationId, until);
    if (page === null) return null;
    if (page !== 'gone') pages[conversationId] = page;
  }
  return pages;
}
