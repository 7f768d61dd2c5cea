/**
 * Owns: the ChannelActor: one post after the other in one channel, from its lease to what was learnt of it.
 * The row says SENDING, committed, before the request leaves. Whatever happens to this process then, the row is read back and never repeated
 * blindly. rule: R14 (the steps and the name of the attempt are the rows' guarantee; two servers may host this channel's actor at once)
 */
import { randomUUID } from 'node:crypto';
import type { Database } from '../../db/pool.ts';
import { type ChannelKey, type LeasedAction, leaseNext, type OutboxTimes, pauseTeam, settleAction } from '../../db/slack/outbox.ts';
import type { Clock } from '../../src/kernel/clock.ts';
import type { Log } from '../../src/kernel/log.ts';
import type { Behaviour } from '../kernel/index.ts';
import type { OutboxObserver, SlackSender, Verdict } from '../ports.ts';

export type ChannelCommand = { readonly type: 'Post' } | { readonly type: 'Read'; readonly action: LeasedAction };

/** True: something was posted, so there may be more. */
export type ChannelReply = boolean;

export interface ChannelDeps {
  readonly db: Database;
  readonly clock: Clock;
  readonly log: Log;
  readonly sender: SlackSender;
  readonly times: OutboxTimes;
  readonly observer: OutboxObserver;
}

export function channelId({ teamId, channelId: channel }: ChannelKey): string {
  return `${teamId}/${channel}`;
}

function channelOf(id: string): ChannelKey {
  const [teamId = '', channel = ''] = id.split('/');
  return { teamId, channelId: channel };
}

export class ChannelBehaviour implements Behaviour<null, ChannelCommand, ChannelReply> {
  readonly #deps: ChannelDeps;

  constructor(deps: ChannelDeps) {
    this.#deps = deps;
  }

  async load(): Promise<null> {
    return null;
  }

  async handle(_state: null, command: ChannelCommand, { id }: { readonly id: string }): Promise<{ state: null; reply: ChannelReply }> {
    return { state: null, reply: command.type === 'Post' ? await this.#post(channelOf(id)) : await this.#read(command.action) };
  }

  async #post(channel: ChannelKey): Promise<boolean> {
    const { db, clock, sender, times } = this.#deps;
    const askedMs = clock.monotonicMs();
    const action = await leaseNext(db, { ...channel, leaseId: randomUUID() }, times);
    if (action === null) return false;
    // A process that stood still since the lease must not send what others take for lost.
    const late = clock.monotonicMs() - askedMs > times.leaseMs / 2;
    const verdict: Verdict = late ? { to: { state: 'RETRY', afterMs: 0, reason: 'late' } } : await sender.post(action);
    await this.#settle(action, 'post', verdict);
    return true;
  }

  async #read(action: LeasedAction): Promise<boolean> {
    await this.#settle(action, 'read', await this.#deps.sender.find(action));
    return false;
  }

  async #settle(action: LeasedAction, what: 'post' | 'read', { to, pauseMs }: Verdict): Promise<void> {
    const { db, log, times, observer } = this.#deps;
    const final = to.state === 'UNCERTAIN' && action.reads >= times.readsMax ? { ...to, readAgain: false } : to;
    const settled = await settleAction(db, { id: action.id, leaseId: action.leaseId, to: final }, times);
    const reason = 'reason' in to ? to.reason : null;
    const facts = { actionId: action.id, what, state: to.state, reason, attempts: action.attempts, settled };
    if (to.state === 'SENT' || to.state === 'RETRY') log.info('outbox action settled', facts);
    else log.warn('outbox action settled', facts);
    if (settled) observer.outboxOutcome(to.state);
    if (pauseMs !== undefined) await pauseTeam(db, { connectionId: action.connectionId, what, afterMs: pauseMs });
  }
}
