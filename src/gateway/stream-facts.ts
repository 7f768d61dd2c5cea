/**
 * Owns: what the bytes of an answer say about the call: tokens, whether the model finished, whether an error came in the stream. It reads all
 * three wires. rule: R15 (the tokens of the one row of a call)
 * Counts are normalised so that they never overlap: OpenAI's prompt tokens contain the cached ones, Anthropic's do not.
 */
import type { CallOutcome, TokenUsage } from '../../db/gateway/close-calls.ts';
import type { LlmApi } from '../contract/agent.ts';
import { EventSkimmer } from './event-skimmer.ts';
import { type JsonObject, objectsIn, parseObject, toObject } from './json.ts';
import { SseDecoder, type SseEvent } from './sse-decoder.ts';

/** An event holds at most the whole answer (`response.completed` repeats it). */
const EVENT_MAX_BYTES = 8 * 1024 * 1024;
/** Events by which a provider only says that it is alive. */
const KEEP_ALIVES = new Set(['ping', 'keepalive']);
/** The bulk of a stream on the two wires whose events have names: content, and nothing that has to be read. */
const PLAIN_DELTA = /^(content_block_delta|response\..+\.delta)$/;

export const NO_USAGE: TokenUsage = { inputTokens: null, outputTokens: null, cacheReadTokens: null, cacheWriteTokens: null };

/** Reads an answer while it passes. */
export class StreamFacts {
  readonly #api: LlmApi;
  readonly #skimmer: EventSkimmer;
  #usage: TokenUsage = NO_USAGE;
  #finished = false;
  #over = false;
  #failed = false;
  #contentEvents = 0;

  constructor(api: LlmApi) {
    this.#api = api;
    const decoder = new SseDecoder((event) => this.#read(event), EVENT_MAX_BYTES);
    this.#skimmer = new EventSkimmer(decoder, () => {
      this.#contentEvents += 1;
    });
  }

  get usage(): TokenUsage {
    return this.#usage;
  }

  /** The model said that its answer is complete. */
  get finished(): boolean {
    return this.#finished;
  }

  /** The last event of the stream has passed: only the end of its bytes is missing. (After a chat's finish its usage still comes.) */
  get over(): boolean {
    return this.#over;
  }

  /** Rises with events that were more than a sign of life; those that arrive together may count once. */
  get contentEvents(): number {
    return this.#contentEvents;
  }

  get betweenEvents(): boolean {
    return this.#skimmer.betweenEvents;
  }

  /** How a stream ended that nobody cut. An error counts more than a finish: such an answer is not complete. */
  get outcome(): Extract<CallOutcome, 'ok' | 'provider_error' | 'truncated'> {
    if (this.#failed) return 'provider_error';
    return this.#finished ? 'ok' : 'truncated';
  }

  push(chunk: Uint8Array): void {
    this.#skimmer.push(chunk);
  }

  end(): void {
    this.#skimmer.end();
  }

  /** An answer in one piece, to a request that did not ask for a stream. */
  readWhole(json: JsonObject): void {
    this.#finished = true;
    this.#failed = isPresent(json['error']) || json['type'] === 'error' || json['status'] === 'failed';
    this.#note(toObject(json['usage']));
  }

  #read({ name, data }: SseEvent): void {
    if (PLAIN_DELTA.test(name)) {
      this.#contentEvents += 1;
      return;
    }
    if (data.trim() === '[DONE]') {
      this.#finished = this.#over = true;
      return;
    }
    const json = parseObject(data);
    const type = typeof json?.['type'] === 'string' ? json['type'] : name;
    if (KEEP_ALIVES.has(type)) return;
    this.#contentEvents += 1;
    if (type === 'error' || name === 'error' || isPresent(json?.['error'])) this.#failed = true;
    if (!json) return;
    if (this.#api === 'openai-completions') this.#readChat(json);
    else if (this.#api === 'openai-responses') this.#readResponses(type, json);
    else this.#readAnthropic(type, json);
  }

  #readChat(json: JsonObject): void {
    const choices = objectsIn(json['choices']);
    // The usage chunk has no choices; some providers put it into a choice.
    this.#note(toObject(json['usage']) ?? toObject(choices[0]?.['usage']));
    for (const { finish_reason: reason } of choices) {
      if (reason === 'error' || reason === 'network_error') this.#failed = true;
      else if (typeof reason === 'string' && reason !== '') this.#finished = true;
    }
  }

  #readResponses(type: string, json: JsonObject): void {
    if (!/^response\.(completed|incomplete|failed|cancelled)$/.test(type)) return;
    if (type === 'response.completed' || type === 'response.incomplete') this.#finished = true;
    else this.#failed = true;
    this.#over = true;
    this.#note(toObject(toObject(json['response'])?.['usage']));
  }

  #readAnthropic(type: string, json: JsonObject): void {
    if (type === 'message_start') this.#note(toObject(toObject(json['message'])?.['usage']));
    else if (type === 'message_delta') this.#note(toObject(json['usage']));
    else if (type === 'message_stop') this.#finished = this.#over = true;
  }

  /** Later numbers replace earlier ones (they are running totals); what a report leaves out stays. */
  #note(usage: JsonObject | undefined): void {
    if (!usage) return;
    const now = this.#api === 'anthropic-messages' ? anthropicUsage(usage) : openAiUsage(usage);
    this.#usage = {
      inputTokens: now.inputTokens ?? this.#usage.inputTokens,
      outputTokens: now.outputTokens ?? this.#usage.outputTokens,
      cacheReadTokens: now.cacheReadTokens ?? this.#usage.cacheReadTokens,
      cacheWriteTokens: now.cacheWriteTokens ?? this.#usage.cacheWriteTokens,
    };
  }
}

function anthropicUsage(usage: JsonObject): TokenUsage {
  return {
    inputTokens: toCount(usage['input_tokens']),
    outputTokens: toCount(usage['output_tokens']),
    cacheReadTokens: toCount(usage['cache_read_input_tokens']),
    cacheWriteTokens: toCount(usage['cache_creation_input_tokens']),
  };
}

/** Chat completions says prompt and completion where responses says input and output; providers place the cached count differently. */
function openAiUsage(usage: JsonObject): TokenUsage {
  const details = toObject(usage['prompt_tokens_details']) ?? toObject(usage['input_tokens_details']);
  const all = toCount(usage['prompt_tokens']) ?? toCount(usage['input_tokens']);
  const read = toCount(details?.['cached_tokens']) ?? toCount(usage['prompt_cache_hit_tokens']) ?? toCount(usage['cached_tokens']);
  const write = toCount(details?.['cache_write_tokens']);
  return {
    inputTokens: all === null ? null : Math.max(0, all - (read ?? 0) - (write ?? 0)),
    outputTokens: toCount(usage['completion_tokens']) ?? toCount(usage['output_tokens']),
    cacheReadTokens: read,
    cacheWriteTokens: write,
  };
}

/** A number of tokens that the ledger can hold; null for anything else. */
function toCount(value: unknown): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null;
}

function isPresent(value: unknown): boolean {
  return value !== undefined && value !== null;
}
