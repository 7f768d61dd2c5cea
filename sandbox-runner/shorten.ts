/**
 * Owns: shortening a conversation with Pi's own compaction and Pi's summary prompts (seed, "Compaction"): before a question, and once more
 * when a provider finds the conversation too long. Never on Pi's threshold during a turn: a summary there would take away what the turn read.
 * Does not own: the numbers (compaction.ts), measuring (conversation-size.ts) and where summaries are stored (the end carries them).
 * Traps of Pi that are handled here: it accepts an empty summary; a handler that throws makes it write another summary; a threshold
 * looks at the last answer only; a summary without a cap may spend the model's whole output limit.
 */
import type { CompactionPlan } from './compaction.ts';
import { isPastTrigger, mayAsk } from './compaction.ts';
import { RUNNER } from './config.ts';
import { conversationTokens, tokensOf } from './conversation-size.ts';
import { type AgentSession, type ExtensionFactory, pi } from './pi.ts';
import type { Protocol } from './protocol.ts';

type Preparation = Parameters<typeof pi.compact>[0];
type Compaction = Awaited<ReturnType<typeof pi.compact>>;
type StreamFunction = AgentSession['agent']['streamFunction'];
type Message = Preparation['messagesToSummarize'][number];

export interface ShortenerOptions {
  readonly plan: CompactionPlan;
  /** How summaries leave. */
  readonly fetch: typeof globalThis.fetch;
  /** Everything of a request that is no message of the conversation: system prompt, tools, situation. */
  readonly fixedChars: number;
  readonly log: Protocol['log'];
}

export class Shortener {
  readonly #options: ShortenerOptions;
  #session: AgentSession | null = null;

  constructor(options: ShortenerOptions) {
    this.#options = options;
  }

  /** The session that is shortened; called once, before anything else. */
  attach(session: AgentSession): void {
    this.#session = session;
  }

  /** What Pi asks before it shortens anything. */
  readonly extension: ExtensionFactory = (api) => {
    api.on('session_before_compact', async (event) => {
      if (event.reason === 'threshold' || (event.reason === 'overflow' && !event.willRetry)) return { cancel: true };
      const startedMs = performance.now();
      const compaction = await this.#summarize(event.preparation, event.signal).catch(() => null);
      const durationMs = Math.round(performance.now() - startedMs);
      this.#options.log(compaction === null ? 'warn' : 'info', 'summary', {
        cause: event.reason,
        outcome: compaction === null ? 'failed' : 'written',
        tokensBefore: event.preparation.tokensBefore,
        durationMs,
      });
      return compaction === null ? { cancel: true } : { compaction };
    });
  };

  /**
   * Shortens the conversation when the question would take it past the trigger. Returns whether the question may go out: a summary that
   * could not be written leaves the history whole, and then it need only fit the window.
   */
  async makeRoom(prompt: string): Promise<boolean> {
    const { plan, log } = this.#options;
    const session = this.#attached();
    if (!isPastTrigger(plan, this.#requestTokens(prompt))) return true;
    // It rejects without a summary: one that failed, or nothing old enough to be put into one.
    const shortened = await session.compact().then(
      () => true,
      () => false,
    );
    const tokens = this.#requestTokens(prompt);
    const fits = mayAsk(plan, tokens, shortened);
    if (!fits) log('warn', 'still_too_long', { tokens, windowTokens: plan.windowTokens, shortened });
    return fits;
  }

  /** Tokens of the request that would go out now. */
  #requestTokens(prompt: string): number {
    const { sessionManager } = this.#attached();
    const branch = sessionManager.getBranch();
    return conversationTokens(sessionManager.buildSessionProjection(), branch, this.#options.fixedChars) + tokensOf(prompt.length);
  }

  /** Pi's summary, of a history that is too long for one request in several: each continues the one before it. */
  async #summarize(preparation: Preparation, signal: AbortSignal): Promise<Compaction> {
    const parts = this.#parts(preparation);
    let { previousSummary } = preparation;
    for (const part of parts.slice(0, -1))
      previousSummary = (await this.#write(withPart(preparation, part, previousSummary), signal)).summary;
    const last = { ...preparation, messagesToSummarize: parts.at(-1) ?? [] };
    const written = await this.#write(previousSummary === undefined ? last : { ...last, previousSummary }, signal);
    // Without one the summary keeps nothing; Pi then writes the summary's own id, which its type does not say.
    return { ...written, firstKeptEntryId: this.#firstKeptMessage(written.firstKeptEntryId) as string };
  }

  /** The history as it fits into requests: beside it each has Pi's prompt, the summary before it, and room for the summary that is written. */
  #parts({ messagesToSummarize, previousSummary }: Preparation): Message[][] {
    const { windowTokens, summaryMaxTokens } = this.#options.plan;
    const room = windowTokens - summaryMaxTokens - RUNNER.summaryPromptTokens;
    const whole = inParts(messagesToSummarize, room - tokensOf(previousSummary?.length ?? 0));
    if (whole.length === 1) return whole;
    return inParts(messagesToSummarize, Math.max(room - summaryMaxTokens, Math.floor(windowTokens / RUNNER.summaryPartOfWindow)));
  }

  /**
   * Pi's cut moves back over entries that the model does not see. Those may be ones that the ledger never has, or notes about results that
   * the summary took away, and with its first kept entry a stored summary would lose all that it keeps. So the cut is the message itself.
   */
  #firstKeptMessage(cutId: string): string | null {
    const { entries } = this.#attached().sessionManager.buildSessionProjection();
    const kept = entries.slice(entries.findIndex((entry) => entry.sourceEntry.id === cutId));
    const isMessage = (entry: (typeof kept)[number]): boolean => entry.messages.some((message) => message.role !== 'system');
    return kept.find(isMessage)?.sourceEntry.id ?? null;
  }

  async #write(preparation: Preparation, signal: AbortSignal): Promise<Compaction> {
    const { model } = this.#attached();
    if (model === undefined) throw new Error('the session has no model');
    const retry = { enabled: true, maxRetries: RUNNER.modelRetries, baseDelayMs: RUNNER.modelRetryBaseMs };
    const none = undefined;
    // Thinking is off for the summary only: the level of the session is not touched, so nothing about it is stored.
    const written = await pi.compact(preparation, model, none, none, none, signal, 'off', this.#stream, none, retry);
    signal.throwIfAborted();
    return written;
  }

  /** A summary's request: capped, on its own way out, and never accepted when it is empty. */
  readonly #stream: StreamFunction = async (model, context, options) => {
    const { plan, fetch } = this.#options;
    const stream = await this.#attached().agent.streamFunction(model, context, { ...options, fetch, maxTokens: plan.summaryMaxTokens });
    const { stopReason, content } = await stream.result();
    const words = content.map((block) => (block.type === 'text' ? block.text : '')).join('');
    if (stopReason === 'stop' && words.trim() === '') throw new Error('the summary is empty');
    return stream;
  };

  #attached(): AgentSession {
    if (this.#session === null) throw new Error('no session to shorten');
    return this.#session;
  }
}

/** Consecutive messages, each part at most `maxTokens` unless a single message is longer. At least one part. */
function inParts(messages: readonly Message[], maxTokens: number): Message[][] {
  const parts: Message[][] = [[]];
  let tokens = 0;
  for (const message of messages) {
    const added =
      message.role === 'toolResult' ? Math.min(pi.estimateTokens(message), RUNNER.summaryToolResultTokens) : pi.estimateTokens(message);
    if (tokens > 0 && tokens + added > maxTokens) {
      parts.push([]);
      tokens = 0;
    }
    parts.at(-1)?.push(message);
    tokens += added;
  }
  return parts;
}

function withPart(preparation: Preparation, part: Message[], previousSummary: string | undefined): Preparation {
  const { previousSummary: _first, ...rest } = preparation;
  const files = { read: new Set<string>(), written: new Set<string>(), edited: new Set<string>() };
  const only = { ...rest, messagesToSummarize: part, turnPrefixMessages: [], isSplitTurn: false, fileOps: files };
  return previousSummary === undefined ? only : { ...only, previousSummary };
}
