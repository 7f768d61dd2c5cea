/**
 * Owns: how long a fresh conversation actor needs until it has answered its first command, for a short and a long conversation. The kind
 * keeps one actor, so asking the two in turn activates each time.
 */

import type { ConversationCommand, ConversationReply } from '../../actors/conversation/commands.ts';
import { ConversationBehaviour } from '../../actors/conversation/conversation.actor.ts';
import { Renewals } from '../../actors/conversation/renewals.ts';
import { failureTexts } from '../../actors/index.ts';
import { type ActorKind, ActorSystem } from '../../actors/kernel/index.ts';
import { type Database, openDatabase } from '../../db/pool.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import type { ConversationId } from '../../src/kernel/ids.ts';
import { silentLog } from '../../src/kernel/log.ts';
import { nowMs } from './clock.ts';

/** Changes nothing: its answer comes as soon as the rows are loaded. */
const FIRST_COMMAND: ConversationCommand = { type: 'Changed', version: 0 };
const WARM_UP = 50;

/** Conversation actors as the server makes them, at most `actorsMax` in memory, without their neighbours. */
export function conversationActors(
  db: Database,
  actorsMax: number,
): ActorKind<ConversationCommand, ConversationReply> & { close(): Promise<boolean> } {
  const times = { leaseTtlMs: 60_000, graceMs: 30_000 };
  const nothing = (): void => {};
  const system = new ActorSystem({ clock: systemClock, log: silentLog });
  const behaviour = new ConversationBehaviour({
    ...{ db, times, clock: systemClock, log: silentLog, maxFollowUps: 10, texts: failureTexts('Bench') },
    active: new Set<ConversationId>(),
    renewals: new Renewals(db, systemClock, times.leaseTtlMs),
    changes: { publish: nothing },
    turns: {
      ...{ turnEnded: nothing, attemptEnded: nothing, attemptTakenBack: nothing, fencingRejected: nothing },
      ...{ sandboxStart: nothing, leaseRenewed: nothing, erased: nothing },
    },
    partials: { publish: () => 'ok', clear: nothing },
    capacity: { offer: nothing, judge: nothing, slotsChanged: nothing },
    sandboxes: { wanted: nothing, idle: nothing },
    claiming: () => true,
    self: { refresh: nothing },
  });
  const bounds = { mailboxMax: 100, idleMs: 600_000, handlerMs: 20_000, sweepMs: 60_000 };
  const kind = system.kind('conversation', behaviour, { ...bounds, actorsMax });
  return Object.assign(kind, { close: () => system.drain(1_000) });
}

export function openBenchDatabase(url: string): Promise<Database> {
  const bounds = { poolMax: 10, waitersMax: 20_000, acquireTimeoutMs: 30_000, statementTimeoutMs: 30_000 };
  return openDatabase({ url, ...bounds, applicationName: 'heph-bench' });
}

export async function activate(actors: ActorKind<ConversationCommand, ConversationReply>, id: string): Promise<void> {
  await actors.ask(id, FIRST_COMMAND);
}

/** Durations of `samples` activations of each conversation, milliseconds, in the order of `ids`. */
export async function measureActivations(url: string, ids: readonly string[], samples: number): Promise<number[][]> {
  const db = await openBenchDatabase(url);
  const actors = conversationActors(db, 1);
  try {
    const durations = ids.map((): number[] => []);
    for (let nth = -WARM_UP; nth < samples; nth++) {
      for (const [at, id] of ids.entries()) {
        const startedMs = nowMs();
        await activate(actors, id);
        if (nth >= 0) durations[at]?.push(nowMs() - startedMs);
      }
    }
    const { activations } = actors.stats;
    if (activations !== ids.length * (samples + WARM_UP)) throw new Error(`${activations} activations: some actor was still in memory`);
    return durations;
  } finally {
    await actors.close();
    await db.close();
  }
}
