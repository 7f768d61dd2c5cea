/**
 * Owns: the event streams that are open on this server, by account; their bound, pings and closing; when partial answers are sent.
 * Does not own: what is read and sent after a change (pump.ts), HTTP (src/http).
 * rule: R16 (guard.ts is asked before each ping and each partial too: once for all accounts concerned)
 */

import { readWaitingTurns } from '../../db/live/waiting-turns.ts';
import type { SignInProof } from '../../db/people/sessions.ts';
import type { Database } from '../../db/pool.ts';
import type { MemberKey } from '../../db/web/membership.ts';
import type { Change } from '../contract/changes.ts';
import type { Clock, Timer } from '../kernel/clock.ts';
import { RuntimeFault } from '../kernel/faults.ts';
import type { Log } from '../kernel/log.ts';
import { Audience, keyOf } from './audience.ts';
import { Guard } from './guard.ts';
import { LiveStream, partialFrom } from './live-stream.ts';
import type { PartialBus, RunningPartial } from './partial-bus.ts';
import type { StreamSink } from './ports.ts';
import { Pump } from './pump.ts';
import type { VersionBook } from './version-book.ts';

export interface LiveHubOptions {
  readonly db: Database;
  readonly partials: PartialBus;
  readonly book: VersionBook;
  readonly clock: Clock;
  readonly log: Log;
  readonly streamsPerAccountMax: number;
  readonly pingMs: number;
}

const ENDLESS: SignInProof = { sessionId: null, untilMs: null };

/** A reader who takes nothing for this long is closed; it may connect again. */
const STALL_MAX_MS = 45_000;
const PARTIALS_EVERY_MS = 100;
const SLOTS_EVERY_MS = 250;
/** Turns that may be told a new reason after one change of the slots (seed "MentorTurnWaits"). */
const WAITING_TURNS_MAX = 100;
/** Readers of a server that shuts down come back after 1 to 3 s, not all at once. */
const RETRY_MIN_MS = 1_000;
const RETRY_SPREAD_MS = 2_000;

export class LiveHub {
  readonly #options: LiveHubOptions;
  readonly #audiences = new Map<string, Audience>();
  readonly #guard: Guard;
  readonly #pump: Pump;
  readonly #changedPartials = new Map<string, RunningPartial>();
  #pings: Timer | undefined;
  #partialTimer: Timer | undefined;
  #partialsSentAtMs = Number.NEGATIVE_INFINITY;
  #slotTimer: Timer | undefined;
  #slotsReadAtMs = Number.NEGATIVE_INFINITY;
  #streams = 0;
  readonly #perAccount = new Map<string, number>();
  #draining = false;

  constructor(options: LiveHubOptions) {
    this.#options = options;
    const dismiss = (audience: Audience) => this.#dismiss(audience);
    this.#guard = new Guard(options);
    this.#pump = new Pump({ ...options, guard: this.#guard, dismiss });
    options.partials.onChange((partial) => this.#partialChanged(partial));
  }

  /** Open streams, for metrics. */
  get streams(): number {
    return this.#streams;
  }

  /** The accounts that somebody looks at here. */
  members(): readonly MemberKey[] {
    return [...this.#audiences.values()].map(({ member }) => member);
  }

  /**
   * Opens a stream, which ends with `proof`; its snapshot follows. `connect` is called only when there is room.
   * Throws TOO_MANY_STREAMS when the account has its maximum open here, in all of its workspaces, DRAINING when the server shuts down.
   */
  open(member: MemberKey, connect: () => StreamSink, proof: SignInProof = ENDLESS): void {
    if (this.#draining) throw new RuntimeFault('DRAINING', 'The server shuts down. Connect again in a moment.', { retry: 'later' });
    const audience = this.#audiences.get(keyOf(member)) ?? new Audience(member);
    const { streamsPerAccountMax } = this.#options;
    if ((this.#perAccount.get(member.accountId) ?? 0) >= streamsPerAccountMax) {
      const text = `This account has ${streamsPerAccountMax} event streams open, which is the limit. Close another tab or client first.`;
      throw new RuntimeFault('TOO_MANY_STREAMS', text, { retry: 'later' });
    }
    const sink = connect();
    const stream = new LiveStream({ sink, proof }, () => this.#pump.wake(audience));
    this.#audiences.set(audience.key, audience);
    audience.streams.add(stream);
    this.#count(member, 1);
    this.#pings ??= this.#options.clock.every(this.#options.pingMs, () => void this.#ping());
    sink.onClose(() => this.#closed(audience, stream));
    this.#pump.wake(audience);
  }

  /** A change was committed, here or elsewhere. */
  changed(change: Change): void {
    const audience = this.#audiences.get(keyOf(change));
    if (audience) {
      audience.changed(change);
      this.#pump.wake(audience);
    }
    if (change.slots) this.#slotsChanged();
  }

  /** A change of this account was missed: its streams get snapshots. */
  resnapshot(member: MemberKey): void {
    const audience = this.#audiences.get(keyOf(member));
    if (!audience) return;
    audience.oweAll();
    this.#pump.wake(audience);
  }

  /** Closes all streams, with a hint when to come back, and takes no more. */
  async drain(): Promise<void> {
    this.#draining = true;
    await this.#pump.stop();
    for (const audience of [...this.#audiences.values()]) {
      for (const { sink } of [...audience.streams]) sink.end(RETRY_MIN_MS + Math.floor(Math.random() * RETRY_SPREAD_MS));
    }
    this.#partialTimer?.cancel();
    this.#slotTimer?.cancel();
  }

  #count({ accountId }: MemberKey, change: 1 | -1): void {
    this.#streams += change;
    const count = (this.#perAccount.get(accountId) ?? 0) + change;
    if (count > 0) this.#perAccount.set(accountId, count);
    else this.#perAccount.delete(accountId);
  }

  #closed(audience: Audience, stream: LiveStream): void {
    if (!audience.streams.delete(stream)) return;
    this.#count(audience.member, -1);
    if (audience.streams.size === 0) this.#audiences.delete(audience.key);
    if (this.#streams > 0) return;
    this.#pings?.cancel();
    this.#pings = undefined;
  }

  #dismiss(audience: Audience): void {
    for (const { sink } of [...audience.streams]) sink.destroy();
  }

  /** Those that may see what comes now; the other streams are closed. Null: the database did not say. */
  async #admitted(audiences: readonly Audience[]): Promise<readonly Audience[] | null> {
    try {
      return [...(await this.#guard.admitted(audiences))];
    } catch (error) {
      this.#options.log.error('live.membership_failed', { accounts: audiences.length }, error);
      return null;
    }
  }

  async #ping(): Promise<void> {
    for (const { streams } of [...this.#audiences.values()]) {
      for (const { sink } of [...streams]) if (sink.stalledMs >= STALL_MAX_MS) sink.destroy();
    }
    for (const { streams } of (await this.#admitted([...this.#audiences.values()])) ?? []) {
      for (const { sink } of streams) sink.ping();
    }
  }

  #partialChanged(partial: RunningPartial): void {
    if (this.#draining || !this.#audiences.has(keyOf(partial))) return;
    this.#changedPartials.set(partial.turnId, partial);
    this.#schedulePartials();
  }

  #schedulePartials(): void {
    const delayMs = this.#partialsSentAtMs + PARTIALS_EVERY_MS - this.#options.clock.monotonicMs();
    this.#partialTimer ??= this.#options.clock.after(Math.max(0, delayMs), () => void this.#sendPartials());
  }

  async #sendPartials(): Promise<void> {
    const changed = [...this.#changedPartials.values()];
    this.#changedPartials.clear();
    const concerned = new Set(changed.flatMap((partial) => this.#audiences.get(keyOf(partial)) ?? []));
    const members = concerned.size > 0 ? await this.#admitted([...concerned]) : [];
    let behind = members === null;
    for (const audience of members ?? []) behind = this.#sendPartialsTo(audience) || behind;
    // Who was behind, or could not be checked, is tried again even when nothing more is written.
    for (const partial of behind ? changed : []) this.#changedPartials.set(partial.turnId, partial);
    this.#partialTimer = undefined;
    this.#partialsSentAtMs = this.#options.clock.monotonicMs();
    if (this.#changedPartials.size > 0 && !this.#draining) this.#schedulePartials();
  }

  /** True when a reader of this account could not take it now. */
  #sendPartialsTo(audience: Audience): boolean {
    const { workspaceId, accountId } = audience.member;
    let behind = false;
    for (const partial of this.#options.partials.of(workspaceId, accountId)) {
      const jsonFrom = partialFrom(partial);
      for (const stream of audience.streams) {
        if (!stream.sendPartial(partial, jsonFrom)) this.#rewritten(audience, stream);
        else if (stream.state === 'live' && !stream.sink.idle) behind = true;
      }
    }
    return behind;
  }

  #rewritten(audience: Audience, stream: LiveStream): void {
    stream.owe();
    this.#pump.wake(audience);
  }

  /** At most every 250 ms: the turns that wait for a slot may have a new reason or another position. */
  #slotsChanged(): void {
    if (this.#draining || this.#streams === 0) return;
    const delayMs = this.#slotsReadAtMs + SLOTS_EVERY_MS - this.#options.clock.monotonicMs();
    this.#slotTimer ??= this.#options.clock.after(Math.max(0, delayMs), () => {
      this.#slotTimer = undefined;
      this.#slotsReadAtMs = this.#options.clock.monotonicMs();
      void this.#tellWaiting();
    });
  }

  async #tellWaiting(): Promise<void> {
    try {
      for (const turn of await readWaitingTurns(this.#options.db, this.members(), WAITING_TURNS_MAX)) {
        const audience = this.#audiences.get(keyOf(turn));
        audience?.turnMayWait(turn.turnId);
        if (audience) this.#pump.wake(audience);
      }
    } catch (error) {
      this.#options.log.error('live.waiting_failed', {}, error); // the next change of the slots, or the next read, says it
    }
  }
}
