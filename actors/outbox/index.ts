/**
 * Owns: how the outbox's actors are wired into the tree: who wakes whom, and their bounds.
 */
import type { Database } from '../../db/pool.ts';
import type { ChannelKey, OutboxTimes } from '../../db/slack/outbox.ts';
import type { Clock } from '../../src/kernel/clock.ts';
import type { Log } from '../../src/kernel/log.ts';
import type { ActorKind, ActorSystem, SingleActor } from '../kernel/index.ts';
import type { OutboxObserver, SlackSender } from '../ports.ts';
import { ChannelBehaviour, type ChannelCommand, type ChannelReply, channelId } from './channel.actor.ts';
import { OutboxBehaviour, type OutboxCommand } from './outbox.actor.ts';

export interface OutboxOptions {
  readonly sender: SlackSender;
  readonly times: OutboxTimes;
  readonly observer: OutboxObserver;
}

/**
 * A post is given up after 10 s (src/slack); Slack takes about one message a second in a channel, and history for a reading once a minute from
 * an app that is not in its marketplace.
 */
export const OUTBOX_TIMES: OutboxTimes = { leaseMs: 30_000, paceMs: 1_000, settleMs: 60_000, readEveryMs: 60_000, readsMax: 10 };

const CHANNELS = { mailboxMax: 100, actorsMax: 10_000, idleMs: 60_000, handlerMs: 60_000, sweepMs: 10_000 };
const SINGLE = { mailboxMax: 1_000, handlerMs: 30_000 };

export class Outbox {
  readonly #clock: Clock;
  readonly #times: OutboxTimes;
  readonly #channels: ActorKind<ChannelCommand, ChannelReply, 'outbox-channel'>;
  readonly #single: SingleActor<OutboxCommand, undefined>;
  /** Channels that post, or will when their pace allows. */
  readonly #awake = new Set<string>();

  constructor(system: ActorSystem, deps: { readonly db: Database; readonly clock: Clock; readonly log: Log }, options: OutboxOptions) {
    this.#clock = deps.clock;
    this.#times = options.times;
    this.#channels = system.kind('outbox-channel', new ChannelBehaviour({ ...deps, ...options }), CHANNELS);
    const looks = new OutboxBehaviour({
      ...{ ...deps, times: options.times },
      wake: (channel) => this.#wake(channel),
      read: (action) => void this.#channels.tell(channelId(action), { type: 'Read', action }),
    });
    this.#single = system.single('outbox', looks, SINGLE);
  }

  /** Something may be due. */
  look(): void {
    this.#single.tell({ type: 'Look' });
  }

  #wake(channel: ChannelKey): void {
    const id = channelId(channel);
    if (this.#awake.has(id)) return;
    this.#awake.add(id);
    this.#post(id);
  }

  /** One post, then the next one when the pace allows, until there is nothing more. What fails here is found again by the next look. */
  #post(id: string): void {
    const asked = this.#channels.ask(id, { type: 'Post' }).catch(() => false);
    void asked.then((more) => {
      if (more) this.#clock.after(this.#times.paceMs, () => this.#post(id));
      else this.#awake.delete(id);
    });
  }
}
