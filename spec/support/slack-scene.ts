/**
 * Scenes of Slack for specs: a connected team, questions that were asked there, their actions, and an outbox of actors on a fake Slack.
 */
import { randomUUID } from 'node:crypto';
import type { OutboxOptions, SlackSender } from '../../actors/index.ts';
import { ActorSystem } from '../../actors/kernel/index.ts';
import { Outbox } from '../../actors/outbox/index.ts';
import type { SlackOrigin } from '../../db/ledger/submit.ts';
import { type Database, sql } from '../../db/pool.ts';
import { connectTeam } from '../../db/slack/connections.ts';
import type { OutboxTimes } from '../../db/slack/outbox.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { silentLog } from '../../src/kernel/log.ts';
import { SecretBox } from '../../src/kernel/secret-box.ts';
import type { Voice } from '../../src/slack/compose.ts';
import { createSender } from '../../src/slack/sender.ts';
import { type Person, run } from './ledger.ts';

export const TEAM = 'T0TEAM';
export const TOKEN = 'xoxb-token-of-the-spec';
export const SECRETS = new SecretBox({ current: Buffer.alloc(32, 7), old: null });
export const VOICE: Voice = {
  assistantName: 'Heph',
  appUrl: 'https://heph.example.com',
  linkUrl: (id) => `https://heph.example.com/slack/link?token=${id}`,
};
/** Short, so that a spec sees each step; the product's are in actors/outbox. */
export const QUICK: OutboxTimes = { leaseMs: 6_000, paceMs: 0, settleMs: 300, readEveryMs: 0, readsMax: 5 };

export async function connect(db: Database, person: Person, teamId: string = TEAM): Promise<string> {
  const id = randomUUID();
  const tokenSealed = SECRETS.seal(TOKEN, id);
  const done = await db.transaction((tx) =>
    connectTeam(tx, { id, workspaceId: person.workspaceId, teamId, botUserId: 'U0BOT', tokenSealed }),
  );
  if (!done) throw new Error('the team is connected elsewhere');
  return id;
}

let count = 0;

/** A message of a user in a direct message. */
export function origin(extra: Partial<SlackOrigin> = {}): SlackOrigin {
  const ts = `1700000000.${String(++count).padStart(6, '0')}`;
  return { teamId: TEAM, channelId: 'D0ADA', userId: 'U0ADA', messageTs: ts, threadTs: ts, ...extra };
}

export interface ActionRow {
  readonly id: string;
  readonly state: string;
  readonly reason: string | null;
  readonly attempts: number;
  readonly reads: number;
  readonly turn_id: string | null;
  readonly notice: string | null;
  readonly message_ts: string | null;
  readonly due: boolean;
}

export async function actions(db: Database): Promise<readonly ActionRow[]> {
  return (await run(
    db,
    sql.unsafe`select id, state, reason, attempts, reads, turn_id, notice, message_ts, due_at is not null as due from outbox_action order by seq`,
  )) as unknown as readonly ActionRow[];
}

/** Posts as rows, without their turns: `count` in each channel, all due. Returns their ids in order, by channel. */
export async function fillOutbox(
  db: Database,
  person: Person,
  [channels, each, firstChannel = 0]: readonly [number, number, number?],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const filled = new Map<string, string[]>();
  for (let n = 0; n < each; n++) {
    for (let c = 0; c < channels; c++) {
      const [channel, id] = [`D${firstChannel + c}`, randomUUID()];
      filled.set(channel, [...(filled.get(channel) ?? []), id]);
    }
  }
  const rows = [...filled].flatMap(([channel, ids]) => ids.map((id) => ({ channel, id })));
  await run(
    db,
    sql.unsafe`insert into outbox_action (id, kind, workspace_id, team_id, channel_id, thread_ts, notice, user_id, event_id, due_at)
      select id, 'SLACK_NOTICE', ${person.workspaceId}, ${TEAM}, channel, '1700000000.000000', 'NO_MEMBER', 'U0ADA', id::text, clock_timestamp()
      from unnest(${sql.array(
        rows.map(({ id }) => id),
        'uuid',
      )}, ${sql.array(
        rows.map(({ channel }) => channel),
        'text',
      )}) with ordinality as g(id, channel, n) order by n returning id`,
  );
  return filled;
}

export interface OutboxRig {
  readonly outbox: Outbox;
  /** Outcomes that were counted. */
  readonly outcomes: string[];
  stop(): Promise<void>;
}

export function sender(apiUrl: string, timeoutMs = 400): SlackSender {
  return createSender({ client: { apiUrl, timeoutMs }, secrets: SECRETS, voice: VOICE });
}

/** The outbox of one server, which looks when it is told to. */
export function openOutbox(db: Database, options: Pick<OutboxOptions, 'sender'> & Partial<OutboxOptions>): OutboxRig {
  const outcomes: string[] = [];
  const system = new ActorSystem({ clock: systemClock, log: silentLog });
  const observer = { outboxOutcome: (state: string) => void outcomes.push(state) };
  const outbox = new Outbox(system, { db, clock: systemClock, log: silentLog }, { times: QUICK, observer, ...options });
  return { outbox, outcomes, stop: async () => void (await system.drain(2_000)) };
}
