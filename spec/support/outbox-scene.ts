/**
 * An outbox with a fake Slack behind it, for specs: rows to post, servers that post them, and waiting for what becomes of them.
 */
import type { Database } from '../../db/pool.ts';
import type { OutboxTimes } from '../../db/slack/outbox.ts';
import { until } from './actors.ts';
import { FakeSlack, type Fate } from './fake-slack.ts';
import { emptyLedger, makePerson, type Person } from './ledger.ts';
import { type ActionRow, actions, connect, fillOutbox, type OutboxRig, openOutbox, QUICK, sender } from './slack-scene.ts';

export interface OutboxScene {
  readonly slack: FakeSlack;
  readonly person: Person;
  readonly connectionId: string;
  /** `count` channels with `each` posts; ids in order, by channel. */
  /** Channels from `D0` on, or from another number. */
  fill(channels: number, each: number, firstChannel?: number): Promise<ReadonlyMap<string, readonly string[]>>;
  /** A server that posts; it is stopped after the test. `apiUrl`: of another Slack. */
  open(options?: { readonly timeoutMs?: number; readonly times?: OutboxTimes; readonly apiUrl?: string }): OutboxRig;
  /** Looks until the condition holds. */
  work(rig: OutboxRig, what: string, done: (rows: readonly ActionRow[]) => boolean): Promise<void>;
  /** The first action. */
  one(): Promise<ActionRow>;
  /** What becomes of the next posts, one after the other; everything else goes well. */
  fates(...list: readonly Fate[]): void;
}

/** Each test begins with an empty ledger and a connected team; the object's members are those of the present test. */
export function useOutbox(database: { readonly db: Database }): OutboxScene {
  let slack: FakeSlack;
  let person: Person;
  let connectionId: string;
  let rigs: OutboxRig[];
  before(async () => {
    slack = await FakeSlack.start();
  });
  after(() => slack.stop());
  beforeEach(async () => {
    await emptyLedger(database.db);
    slack.messages.length = 0;
    slack.calls.length = 0;
    slack.fate = () => 'ok';
    person = await makePerson(database.db);
    connectionId = await connect(database.db, person);
    rigs = [];
  });
  afterEach(() => Promise.all(rigs.map((rig) => rig.stop())));
  return {
    get slack() {
      return slack;
    },
    get person() {
      return person;
    },
    get connectionId() {
      return connectionId;
    },
    fill: (channels, each, firstChannel) => fillOutbox(database.db, person, [channels, each, firstChannel ?? 0]),
    open: ({ timeoutMs, times = QUICK, apiUrl = slack.apiUrl } = {}) => {
      const rig = openOutbox(database.db, { sender: sender(apiUrl, timeoutMs), times });
      rigs.push(rig);
      return rig;
    },
    work: (rig, what, done) =>
      until(what, async () => {
        rig.outbox.look();
        return done(await actions(database.db));
      }),
    one: async () => (await actions(database.db))[0] as ActionRow,
    fates: (...list) => {
      const left = [...list];
      slack.fate = ({ method }) => (method === 'chat.postMessage' ? (left.shift() ?? 'ok') : 'ok');
    },
  };
}

/** What people see in each channel, by action, oldest first. */
export function shownIn(slack: FakeSlack, channel: string): readonly string[] {
  return slack.messages.filter((message) => message.channel === channel).map(({ metadata }) => String(metadata?.event_payload['action']));
}
