/**
 * A server that a Slack team is connected to, for specs: the real listeners and actors, a fake Slack on the other side, and one person.
 * Does not own: deliveries (slack-sender.ts), rows of Slack without a server (slack-scene.ts).
 */
import { expect } from 'chai';
import { reconcileSlots } from '../../db/ledger/slots.ts';
import { type Database, sql } from '../../db/pool.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { silentLog } from '../../src/kernel/log.ts';
import { Slack, type SlackOptions } from '../../src/slack/index.ts';
import { FakeSlack } from './fake-slack.ts';
import { type HttpRig, type SandboxClient, useRigs } from './http-rig.ts';
import { emptyLedger, makePerson, type Person, run } from './ledger.ts';
import { connect, SECRETS, TEAM } from './slack-scene.ts';
import { callback, deliver, SIGNING_SECRET } from './slack-sender.ts';

const RETENTION_MS = 90 * 86_400_000;

/** Slack as a server opens it, with a fake one behind it. */
export function openSlack(db: Database, fake: FakeSlack, extra: Partial<SlackOptions> = {}): Slack {
  return new Slack({
    ...{ db, clock: systemClock, log: silentLog, secrets: SECRETS, apiUrl: fake.apiUrl, signingSecret: SIGNING_SECRET },
    ...{ assistantName: 'Heph', appUrl: 'http://127.0.0.1', publicUrl: null, app: null, retentionMs: RETENTION_MS },
    ...{ observer: { outboxOutcome: () => undefined }, ...extra },
  });
}

export interface SlackRig {
  readonly fake: FakeSlack;
  readonly person: Person;
  readonly slack: Slack;
  readonly rig: HttpRig;
  /** From now on the user is this account. */
  link(user?: string, who?: Person): Promise<void>;
  /** Delivers an event and waits until it is done. Returns the status of the answer. */
  send(event: Record<string, unknown>, extra?: Record<string, unknown>): Promise<number>;
  /** The sandbox of the only main conversation. */
  sandbox(): Promise<SandboxClient>;
  /** Turns with the words of their questions, oldest first. */
  turns(): Promise<
    readonly { readonly status: string; readonly surface: string; readonly text: string | null; readonly erased: boolean }[]
  >;
}

/** Each test begins with an empty ledger and a connected team; the object's members are those of the present test. */
export function useSlack(database: { readonly db: Database; readonly url: string }): SlackRig {
  const rigs = useRigs(database);
  let fake: FakeSlack;
  let parts: Pick<SlackRig, 'person' | 'slack' | 'rig'>;
  before(async () => {
    fake = await FakeSlack.start();
  });
  after(() => fake.stop());
  beforeEach(async () => {
    const { db } = database;
    await emptyLedger(db);
    await run(db, sql.unsafe`truncate slack_event, weekly_sweep`);
    fake.messages.length = 0;
    fake.fate = () => 'ok';
    await reconcileSlots(db, 4);
    const person = await makePerson(db);
    await connect(db, person);
    const slack = openSlack(db, fake);
    parts = { person, slack, rig: await rigs({ person, slack }) };
  });
  return {
    get fake() {
      return fake;
    },
    get person() {
      return parts.person;
    },
    get slack() {
      return parts.slack;
    },
    get rig() {
      return parts.rig;
    },
    link: async (user = 'U0ADA', who = parts.person) => {
      await run(
        database.db,
        sql.unsafe`insert into slack_identity (team_id, user_id, account_id) values (${TEAM}, ${user}, ${who.accountId}) returning 1`,
      );
    },
    send: async (event, extra) => {
      const { status } = await deliver(parts.rig.webPort, callback(event, extra));
      await parts.slack.idle();
      return status;
    },
    sandbox: async () => {
      const mains = await run(database.db, sql.unsafe`select id from mentor_conversation where parent_conversation_id is null`);
      expect(mains, 'one main conversation').to.have.length(1);
      return parts.rig.sandbox(String(mains[0]?.['id']));
    },
    turns: async () =>
      (await run(
        database.db,
        sql.unsafe`select t.status, t.surface, e.text, e.erased_at is not null as erased
          from mentor_turn t join mentor_entry e on e.id = t.question_entry_id order by t.created_at`,
      )) as never,
  };
}
