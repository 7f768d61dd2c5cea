/**
 * Owns: what a screen reader is told when the state changes: start, stage, end, failure. Never the words of an answer.
 * Does not own: the rate of stages (ui/LiveRegion.tsx).
 */
import type { Turn } from '../../contract/web.ts';
import type { ChatState } from './state.ts';
import { runningTurn } from './timeline.ts';

export type Announcement =
  | { kind: 'started' }
  | { kind: 'stage'; stage: string }
  | { kind: 'done' }
  | { kind: 'stopped' }
  | { kind: 'failed'; text: string }
  | { kind: 'unsent' };

function endOf(turn: Turn): Announcement | null {
  if (turn.status === 'DONE') return { kind: 'done' };
  if (turn.status === 'FAILED') return { kind: 'failed', text: turn.error?.text ?? '' };
  return turn.status === 'STOPPED' ? { kind: 'stopped' } : null;
}

function stageOf(state: ChatState, turn: Turn): string | null {
  return state.live[turn.id]?.stage ?? turn.stage;
}

/**
 * What happened between two states, oldest first. Nothing for what was there when the page opened.
 * @param conversationId the conversation in view
 */
export function announcements(before: ChatState, after: ChatState, conversationId: string | null = after.mainId): Announcement[] {
  if (!before.ready) return [];
  const list: Announcement[] = [];
  for (const turn of Object.values(after.turns)) {
    const known = before.turns[turn.id];
    if (turn === known || turn.conversationId !== conversationId || known === undefined || known.status === turn.status) continue;
    const end = endOf(turn);
    if (end !== null) list.push(end);
  }
  const running = runningTurn(after, conversationId);
  const ran = runningTurn(before, conversationId);
  if (running !== null && running.id !== ran?.id) list.push({ kind: 'started' });
  const stage = running === null ? null : stageOf(after, running);
  if (running !== null && stage !== null && (ran === null || stageOf(before, ran) !== stage)) list.push({ kind: 'stage', stage });
  const unsent = (state: ChatState) => state.outbox.filter((item) => item.phase !== 'sending').length;
  if (unsent(after) > unsent(before)) list.push({ kind: 'unsent' });
  return list;
}
