/**
 * Owns: what running turns have written so far, in memory only, on every server; and each turn's stage.
 * An attempt's reports may reach any server. Whoever takes one passes it on: deltas in the next batch, the beginning again every 5 s for
 * servers that came later. A server that missed the beginning shows the stage until then; one that may have missed words (its connection was
 * new) says hello, and the others say what they know from its beginning.
 * Limits: `partialMaxChars` per turn, `bytesMax` for all (the least recently changed goes first), `AGE_MAX_MS` without a word.
 */

import type { AttemptPartial, PartialSink } from '../../actors/index.ts';
import type { Message } from '../../db/live/payloads.ts';
import type { Clock, Timer } from '../kernel/clock.ts';
import type { ConversationId, TurnId } from '../kernel/ids.ts';
import { EndedAttempts } from './ended-attempts.ts';
import { PartialText } from './partial-text.ts';
import { isHello, type PartialLetter, packHello, packPartial, saysMore, toReport, unpackPartial } from './partial-wire.ts';
import type { PeerSource } from './peer-post.ts';

/** One running turn's words and whose they are. */
export interface RunningPartial {
  readonly workspaceId: string;
  readonly accountId: string;
  readonly conversationId: string;
  readonly turnId: string;
  readonly words: PartialText;
}

interface Held extends RunningPartial {
  changedAtMs: number;
  /** Reports of this turn come to this server: it tells the others. */
  own: boolean;
  /** What the others were told. */
  told: { epoch: number; rewrites: number; sent: number; wholeAtMs: number };
  dirty: boolean;
}

export interface PartialBusOptions {
  readonly serverId: string;
  readonly clock: Clock;
  /** Something waits for the next batch. */
  readonly wake: () => void;
  /** Words of all turns together, in memory. */
  readonly bytesMax?: number;
}

export type PartialListener = (partial: RunningPartial) => void;

const BYTES_MAX = 64 * 1024 * 1024;
const WHOLE_EVERY_MS = 5_000;
/** A longer text is not told again from its beginning. */
const WHOLE_MAX_CHARS = 64_000;
/** Longer than any turn may run: its server died without a word. */
const AGE_MAX_MS = 20 * 60_000;
/** Ends that wait to be told to the others; with more the oldest is left to the rows. */
const CLEARED_MAX = 1_000;
const NOTHING_TOLD = { epoch: -1, rewrites: 0, sent: 0, wholeAtMs: Number.NEGATIVE_INFINITY };

export class PartialBus implements PartialSink, PeerSource {
  readonly #options: PartialBusOptions;
  readonly #listeners: PartialListener[] = [];
  /** The least recently changed first. */
  readonly #turns = new Map<string, Held>();
  readonly #ended = new EndedAttempts();
  #cleared: PartialLetter[] = [];
  #saysHello = false;
  /** What the last batch carried beside words. */
  #taken: { readonly hello: boolean; readonly cleared: readonly PartialLetter[] } = { hello: false, cleared: [] };
  #bytes = 0;
  #timer: Timer | undefined;

  constructor(options: PartialBusOptions) {
    this.#options = options;
  }

  onChange(listener: PartialListener): void {
    this.#listeners.push(listener);
  }

  /** Bytes and turns held, for metrics. */
  get size(): { turns: number; bytes: number } {
    return { turns: this.#turns.size, bytes: this.#bytes };
  }

  publish(partial: AttemptPartial): 'ok' | 'resync' {
    if (this.#ended.has(partial.turnId, partial.epoch)) return 'ok';
    const held = this.#hold(partial, partial.epoch);
    const missed = held.words.hasMissed(partial);
    const answer = this.#fold(held, missed ? { ...partial, offset: null } : partial);
    held.own = true;
    held.dirty = true;
    this.#options.wake();
    return missed ? 'resync' : answer;
  }

  clear(conversationId: ConversationId, turnId: TurnId, epoch: number | null): void {
    const held = this.#turns.get(turnId);
    this.#end(turnId, epoch);
    const whose = { s: this.#options.serverId, w: held?.workspaceId ?? '', a: held?.accountId ?? '', c: conversationId, t: turnId };
    this.#cleared.push({ ...whose, e: null, o: null, x: '', g: null, u: epoch });
    this.#options.wake();
  }

  /** The turn is over for good: drops its words here, without a word to others, who read the same rows. */
  forget(turnId: string): void {
    this.#end(turnId, null);
  }

  /** null: all attempts. undefined: a server of an older version did not say which; what is held goes, and nothing is remembered. */
  #end(turnId: string, epoch: number | null | undefined): void {
    const last = epoch ?? Number.POSITIVE_INFINITY;
    if (epoch !== undefined) this.#ended.note(turnId, last);
    const held = this.#turns.get(turnId);
    if (held && held.words.epoch <= last) this.#drop(turnId);
  }

  #drop(turnId: string): void {
    const held = this.#turns.get(turnId);
    if (!held) return;
    this.#bytes -= held.words.bytes;
    this.#turns.delete(turnId);
    if (this.#turns.size > 0) return;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /** What the assistant does in this turn right now, for a person; null when nobody said. */
  stageOf(turnId: string): string | null {
    return this.#turns.get(turnId)?.words.stage ?? null;
  }

  /** The running turns of one account. */
  of(workspaceId: string, accountId: string): readonly RunningPartial[] {
    return [...this.#turns.values()].filter((held) => held.accountId === accountId && held.workspaceId === workspaceId);
  }

  /** A payload of the partial channel. */
  receive(payload: string): void {
    const letter = unpackPartial(payload, this.#options.serverId);
    if (!letter && isHello(payload, this.#options.serverId)) this.#sayAgain();
    if (!letter) return;
    const { e: epoch, t: turnId } = letter;
    if (epoch === null) {
      this.#end(turnId, letter.u);
      return;
    }
    if (this.#ended.has(turnId, epoch)) return;
    const held = this.#hold({ workspaceId: letter.w, accountId: letter.a, conversationId: letter.c, turnId }, epoch);
    // A letter that was overtaken says less than is known here: what came here is still ours to tell.
    const words = { ...letter, e: epoch };
    if (saysMore(words, held.words, this.#options.serverId)) held.own = false;
    this.#fold(held, toReport(words, held.words));
  }

  /** Words of other servers may have been missed. */
  missed(): void {
    this.#saysHello = true;
    this.#options.wake();
  }

  take(): readonly Message[] {
    this.#taken = { hello: this.#saysHello, cleared: this.#cleared };
    this.#saysHello = false;
    this.#cleared = [];
    const hello = this.#taken.hello ? [packHello(this.#options.serverId)] : [];
    const cleared = this.#taken.cleared.flatMap(packPartial);
    const told = [...this.#turns.values()].filter((held) => held.own && held.dirty).flatMap((held) => this.#tell(held));
    return [...hello, ...cleared, ...told];
  }

  unsent(): void {
    this.#saysHello ||= this.#taken.hello;
    this.#cleared = [...this.#taken.cleared, ...this.#cleared].slice(-CLEARED_MAX);
    this.#taken = { hello: false, cleared: [] };
    this.#tellAnew();
  }

  #tellAnew(): void {
    for (const held of this.#turns.values()) {
      held.told = { ...NOTHING_TOLD };
      held.dirty = held.own;
    }
  }

  #sayAgain(): void {
    this.#tellAnew();
    this.#options.wake();
  }

  /** Drops everything and stops. */
  close(): void {
    for (const turnId of [...this.#turns.keys()]) this.#drop(turnId);
  }

  #hold(turn: Omit<RunningPartial, 'words'>, epoch: number): Held {
    const known = this.#turns.get(turn.turnId);
    // A conversation that was given to another account is answered there by a new attempt.
    if (known && (known.accountId === turn.accountId || known.words.epoch >= epoch)) return known;
    this.#drop(turn.turnId);
    const { workspaceId, accountId, conversationId, turnId } = turn;
    const words = new PartialText();
    const held: Held = {
      ...{ workspaceId, accountId, conversationId, turnId, words },
      ...{ changedAtMs: 0, own: false, told: { ...NOTHING_TOLD }, dirty: false },
    };
    this.#turns.set(turnId, held);
    this.#timer ??= this.#options.clock.every(WHOLE_EVERY_MS, () => this.#tick());
    return held;
  }

  #fold(held: Held, report: Parameters<PartialText['take']>[0]): 'ok' | 'resync' {
    const before = held.words.bytes;
    const answer = held.words.take(report);
    this.#bytes += held.words.bytes - before;
    held.changedAtMs = this.#options.clock.monotonicMs();
    this.#turns.delete(held.turnId);
    this.#turns.set(held.turnId, held);
    const bytesMax = this.#options.bytesMax ?? BYTES_MAX;
    for (const [turnId] of this.#turns) {
      if (this.#bytes <= bytesMax || turnId === held.turnId) break;
      this.#drop(turnId);
    }
    for (const listener of this.#listeners) listener(held);
    return answer;
  }

  /** What the others do not know yet. */
  #tell(held: Held): readonly Message[] {
    const { words, told } = held;
    const nowMs = this.#options.clock.monotonicMs();
    const anew = told.epoch !== words.epoch || told.rewrites !== words.rewrites;
    const whole = anew || (nowMs - told.wholeAtMs >= WHOLE_EVERY_MS && words.length <= WHOLE_MAX_CHARS);
    const from = whole ? 0 : Math.min(told.sent, words.length);
    held.dirty = false;
    held.told = { epoch: words.epoch, rewrites: words.rewrites, sent: words.length, wholeAtMs: whole ? nowMs : told.wholeAtMs };
    const rewritten = told.epoch === words.epoch && told.rewrites !== words.rewrites;
    return packPartial({
      ...{ s: this.#options.serverId, w: held.workspaceId, a: held.accountId, c: held.conversationId, t: held.turnId },
      ...{ e: words.epoch, o: words.known ? from : null, x: words.from(from), g: words.stage, n: words.nth },
      ...(rewritten ? { f: true } : {}),
    });
  }

  #tick(): void {
    const nowMs = this.#options.clock.monotonicMs();
    for (const held of this.#turns.values()) {
      if (nowMs - held.changedAtMs >= AGE_MAX_MS) this.#drop(held.turnId);
      else if (held.own) held.dirty = true;
    }
    this.#options.wake();
  }
}
