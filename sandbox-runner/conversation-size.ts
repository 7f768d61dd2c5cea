/**
 * Owns: how many tokens a conversation has for a model, without asking it. Pure.
 * Does not own: what follows from it (shorten.ts).
 */
import { RUNNER } from './config.ts';
import { pi, type SessionEntry, type SessionProjection } from './pi.ts';

type Message = SessionProjection['messages'][number];

/**
 * What the model would be sent of the conversation: what its provider counted for the last answer, less what notes have replaced since, and
 * an estimate of all that the ledger holds after it, for example the question of a failed turn. A count from before a summary says nothing,
 * and a count of a request that began with a summary says too little once the summary was erased: all that it covered is back. So a count
 * never stands for less than what so many characters are at the very least.
 */
export function conversationTokens(projection: SessionProjection, branch: readonly SessionEntry[], fixedChars: number): number {
  const { entries } = projection;
  const shortened = branch.findLastIndex((entry) => entry.type === 'compaction');
  const trusted = new Set(branch.slice(shortened + 1).map((entry) => entry.id));
  const last = entries.findLastIndex((entry) => trusted.has(entry.sourceEntry.id) && countedTokens(entry.messages) > 0);
  const after = estimate(entries.slice(last + 1).flatMap((entry) => entry.messages));
  if (last < 0) return tokensOf(fixedChars) + after;
  const before = entries.slice(0, last);
  const editedSince = new Set(
    branch
      .slice(branch.findIndex((entry) => entry.id === entries[last]?.sourceEntry.id))
      .flatMap((entry) => (entry.type === 'context_edit' ? [entry.targetId] : [])),
  );
  const replaced = before.filter((entry) => editedSince.has(entry.sourceEntry.id));
  const saved = replaced.reduce((sum, { sourceEntry, messages }) => sum + estimate(wordsOf(sourceEntry)) - estimate(messages), 0);
  const counted = Math.max(0, countedTokens(entries[last]?.messages ?? []) - saved);
  const estimated = tokensOf(fixedChars) + estimate(entries.slice(0, last + 1).flatMap((entry) => entry.messages.map(withoutThinking)));
  return Math.max(counted, Math.floor(estimated * RUNNER.leastPartOfEstimate)) + after;
}

/** Most providers are not sent old thinking again. */
function withoutThinking(message: Message): Message {
  return message.role === 'assistant' ? { ...message, content: message.content.filter(({ type }) => type !== 'thinking') } : message;
}

/** The entry as it was before any edit. */
function wordsOf(entry: SessionEntry): readonly Message[] {
  return entry.type === 'message' ? [entry.message] : [];
}

function estimate(messages: readonly Message[]): number {
  return messages.reduce((sum, message) => sum + (message.role === 'system' ? 0 : pi.estimateTokens(message)), 0);
}

/** The whole request and answer, as the provider counted them; 0 without an answer that was finished. */
function countedTokens(messages: readonly Message[]): number {
  const answer = messages.findLast((message) => message.role === 'assistant');
  if (answer?.role !== 'assistant' || answer.stopReason === 'aborted' || answer.stopReason === 'error') return 0;
  // A forged or foreign answer may have none.
  const usage = answer.usage as typeof answer.usage | undefined;
  return usage === undefined ? 0 : usage.totalTokens || usage.input + usage.output + usage.cacheRead + usage.cacheWrite;
}

/** Pi's own rule of thumb for text. */
export function tokensOf(chars: number): number {
  return Math.ceil(chars / 4);
}
