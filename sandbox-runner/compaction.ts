/**
 * Owns: the numbers of shortening a conversation (seed, "Compaction"), from the window and the output limit of a model. Pure.
 * Does not own: doing it (shorten.ts).
 */

/** Tokens. Each number of the seed once. */
export const COMPACTION = {
  /** Above this the stored conversation is shortened before a question. Less for a small window. */
  triggerMaxTokens: 49_152,
  /** What is kept free at least: this, or this part of a smaller window. */
  reserveMaxTokens: 16_384,
  reservePartOfWindow: 4,
  /** Recent messages are kept up to the smallest of this and these parts of trigger and window. A target, not a bound. */
  keepMaxTokens: 20_000,
  keepPartOfTrigger: 2,
  keepPartOfWindow: 6,
  /** What an answer needs: the model's output limit, or this part of the window. */
  answerPartOfWindow: 8,
} as const;

export interface CompactionPlan {
  readonly windowTokens: number;
  /** A conversation with more tokens than this is shortened before the question goes out. */
  readonly triggerTokens: number;
  /** Pi's reserve: the window less the trigger. It caps a summary's output, too. */
  readonly reserveTokens: number;
  readonly keepRecentTokens: number;
  readonly summaryMaxTokens: number;
  /** What must be left of the window for the answer, after a summary. */
  readonly answerRoomTokens: number;
}

/** The plan for a model. Both limits in tokens, at least those of the smallest model. */
export function compactionPlan(windowTokens: number, outputTokens: number): CompactionPlan {
  const free = Math.min(COMPACTION.reserveMaxTokens, Math.floor(windowTokens / COMPACTION.reservePartOfWindow));
  const triggerTokens = Math.min(COMPACTION.triggerMaxTokens, windowTokens - free);
  const reserveTokens = windowTokens - triggerTokens;
  return {
    windowTokens,
    triggerTokens,
    reserveTokens,
    keepRecentTokens: Math.floor(
      Math.min(COMPACTION.keepMaxTokens, triggerTokens / COMPACTION.keepPartOfTrigger, windowTokens / COMPACTION.keepPartOfWindow),
    ),
    summaryMaxTokens: Math.min(outputTokens, reserveTokens),
    answerRoomTokens: Math.min(outputTokens, Math.floor(windowTokens / COMPACTION.answerPartOfWindow)),
  };
}

/** Whether a request of so many tokens is shortened first. */
export function isPastTrigger(plan: CompactionPlan, tokens: number): boolean {
  return tokens > plan.triggerTokens;
}

/** Whether the question may go out. `shortened`: a summary was made, and then the answer must have room, too. */
export function mayAsk(plan: CompactionPlan, tokens: number, shortened: boolean): boolean {
  return tokens + (shortened ? plan.answerRoomTokens : 0) <= plan.windowTokens;
}
