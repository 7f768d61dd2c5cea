/**
 * Owns: what readers see of an answer while it is written: the words so far, the stage, and reporting both every 250 ms as deltas.
 * Does not own: the answer (the entries at the end are it) and the labels (stage.ts).
 * Limits: one report under way at a time; a report is a slice that fits a request; after partialMaxChars the words are no longer sent.
 */
import type { PartialRequest, TurnEndRequest } from '../src/contract/agent.ts';
import { LIMITS } from '../src/contract/limits.ts';
import type { Clock } from '../src/kernel/clock.ts';
import { RUNNER } from './config.ts';
import type { Fate } from './fate.ts';
import type { RunClient } from './gateway-client.ts';
import { idleStage } from './stage.ts';

/** Between the words of two messages, or of two blocks of one. */
const SEPARATOR = '\n\n';

export interface PartialOptions {
  readonly client: RunClient;
  readonly fate: Fate;
  readonly clock: Clock;
}

export class PartialAnswer {
  readonly #options: PartialOptions;
  readonly #running = new Map<string, string>();
  /** Words of the messages that are complete; a message that Pi tries again is not among them. */
  #settled = '';
  #current = '';
  #failed = false;
  /** Stage of the last tool that started since the last report: a fast read is shown at least once. */
  #startedStage: string | null = null;
  #sentChars = 0;
  #sentStage: string | null = null;
  #sentAtMs = Number.NEGATIVE_INFINITY;
  #reports = 0;
  #needsFull = false;
  #underWay = false;

  constructor(options: PartialOptions) {
    this.#options = options;
  }

  /** Reports until stopped. */
  start(): { stop(): void } {
    const timer = this.#options.clock.every(LIMITS.partialEveryMs, () => void this.#report());
    return { stop: () => timer.cancel() };
  }

  /** A model call begins to answer. What a failed call wrote before is no part of the answer. */
  messageStarted(): void {
    if (this.#failed) {
      this.#current = '';
      this.#needsFull = true;
    }
    this.#failed = false;
    this.#settled += this.#current;
    this.#current = '';
  }

  /** A new run of words inside the message. */
  blockStarted(): void {
    if (this.#settled + this.#current !== '') this.#current += SEPARATOR;
  }

  wordsWritten(delta: string): void {
    this.#current += delta;
  }

  messageFailed(): void {
    this.#failed = true;
  }

  toolStarted(callId: string, stage: string): void {
    this.#running.set(callId, stage);
    this.#startedStage = stage;
  }

  toolEnded(callId: string): void {
    this.#running.delete(callId);
  }

  /** The last partial answer that may have been published; null when there was none. */
  last(): TurnEndRequest['lastPartial'] {
    return this.#reports > 0 ? { text: this.#text().slice(0, this.#sentChars), stage: this.#sentStage } : null;
  }

  #text(): string {
    return this.#settled + this.#current;
  }

  async #report(): Promise<void> {
    const { client, fate, clock } = this.#options;
    if (this.#underWay || fate.decided.aborted) return;
    const report = this.#compose(clock.monotonicMs());
    if (report === null) return;
    this.#underWay = true;
    const result = await client.partial(report);
    this.#underWay = false;
    if (result.kind === 'ok') {
      if (result.value.stop !== undefined) fate.settle({ kind: 'stopped', stop: result.value.stop });
      if (result.value.resync === true) this.#needsFull = true;
    } else {
      // Nobody knows whether it arrived. The next one says everything.
      this.#needsFull = true;
      if (result.kind === 'refused') fate.hearRefusal(result);
    }
  }

  /** The next report, counted as published; null when there is nothing to say yet. */
  #compose(nowMs: number): PartialRequest | null {
    const stage = this.#startedStage ?? [...this.#running.values()].at(-1) ?? idleStage;
    const text = this.#text();
    const full = this.#needsFull;
    const offset = full ? 0 : this.#sentChars;
    const end = wholeCharacters(text, Math.min(text.length, offset + RUNNER.partialSliceMaxChars, LIMITS.partialMaxChars));
    const news = full || end > offset || stage !== this.#sentStage;
    if (!news && nowMs - this.#sentAtMs < RUNNER.heartbeatEveryMs) return null;
    this.#needsFull = false;
    this.#startedStage = null;
    this.#sentChars = Math.max(end, offset);
    this.#sentStage = stage;
    this.#sentAtMs = nowMs;
    this.#reports += 1;
    return { offset, text: text.slice(offset, end), stage, nth: this.#reports, ...(full ? { full } : {}) };
  }
}

/** `end`, or one less when a character would be cut in half there. */
function wholeCharacters(text: string, end: number): number {
  const last = text.charCodeAt(end - 1);
  return last >= 0xd800 && last <= 0xdbff ? end - 1 : end;
}
