/**
 * kill -9 of the process that posts, at every step of posting and of reading back, while Slack answers with time-outs, limits and errors: none is
 * lost, none is doubled, the order of each channel is kept, and what cannot be read back is left to an operator and counted. cases: H3
 * `npm test` kills once at each step among some hundred posts; HEPH_TEST_FAULTS=all kills five times at each among 5,000.
 */
import { expect } from 'chai';
import { sql } from '../../db/pool.ts';
import { outboxSize } from '../../db/slack/outbox.ts';
import { until } from '../support/actors.ts';
import { useDatabase } from '../support/database.ts';
import type { FakeCall, Fate } from '../support/fake-slack.ts';
import { run } from '../support/ledger.ts';
import { useAudit } from '../support/ledger-audit.ts';
import { OutboxProcess } from '../support/outbox-process.ts';
import { shownIn, useOutbox } from '../support/outbox-scene.ts';
import { PgWire, type Point, type Verdict } from '../support/pg-wire.ts';
import { actions, QUICK } from '../support/slack-scene.ts';

const ALL = process.env['HEPH_TEST_FAULTS'] === 'all';
const [POSTS, ROUNDS] = ALL ? [5_000, 5] : [240, 1];
const CHANNELS = 20;
/** Far more than an idle machine takes to start the process and to come to a step. */
const STEP_MAX_MS = 60_000;
/** Its history cannot be read. */
const UNREADABLE = 'D0';
const TIMES = { ...QUICK, readsMax: 50 };

/** Where the process is killed: at a statement, or in the middle of a call. */
type Step = { readonly statement: string; readonly point: Point } | { readonly method: string; readonly fate: 'hang' | 'hangAccepted' };

const STEPS: readonly Step[] = [
  ...['outbox_lease', 'outbox_settle', 'outbox_reading', 'outbox_expire', 'outbox_pause'].flatMap((statement) => [
    { statement, point: 'before' as const },
    { statement, point: 'after' as const },
  ]),
  { method: 'chat.postMessage', fate: 'hang' },
  { method: 'chat.postMessage', fate: 'hangAccepted' },
  { method: 'conversations.replies', fate: 'hang' },
];
const nameOf = (step: Step) => Object.values(step).join(' ');

/** Of a hundred posts: 10 with an unknown outcome, 5 limited, 2 with a 5xx. */
function fateOfPost(n: number): Fate {
  const share = (n * 37) % 100;
  if (share < 5) return 'dropAccepted';
  if (share < 9) return 'drop';
  if (share < 10) return 'hangAccepted';
  if (share < 15) return { limitedS: 0 };
  if (share < 17) return { status: 500, accepted: share === 15 };
  return 'ok';
}

describe('posts of a process that is killed at each step', () => {
  // rule: R14
  const startAudit = useAudit();
  const database = useDatabase();
  const outbox = useOutbox(database);
  let wire: PgWire;
  before(async () => {
    wire = await PgWire.open(database.url);
  });
  after(() => wire.close());

  /** What Slack does when nobody is killed. */
  function usualFates(): (call: FakeCall) => Fate {
    let [posts, odd, reads] = [0, 0, 0];
    return ({ method, fields }) => {
      const unreadable = fields['channel'] === UNREADABLE;
      if (method !== 'chat.postMessage') return unreadable ? { error: 'thread_not_found' } : reads++ % 11 === 0 ? { status: 503 } : 'ok';
      if (unreadable && odd++ % 3 === 0) return odd % 2 === 0 ? 'drop' : 'dropAccepted';
      return fateOfPost(posts++);
    };
  }

  /** Starts the process and kills it when it comes to the step. */
  async function killAt(step: Step): Promise<void> {
    const { slack } = outbox;
    const usual = slack.fate;
    const posting = await start();
    let killed = false;
    const kill = async () => {
      await posting.kill();
      killed = true;
    };
    if ('statement' in step) {
      wire.arm(step.statement, step.point, async (): Promise<Verdict> => {
        await kill();
        return 'drop';
      });
    } else {
      let struck = false;
      slack.fate = (call) => {
        if (struck || call.method !== step.method) return usual(call);
        struck = true;
        void kill();
        return step.fate;
      };
    }
    await until(`it comes to ${nameOf(step)}`, async () => killed, STEP_MAX_MS);
    slack.fate = usual;
    // Nobody holds them any more; without this each kill would take as long as a lease.
    await run(database.db, sql.unsafe`update outbox_action set lease_until = clock_timestamp() where state = 'SENDING' returning 1`);
  }

  const start = () =>
    OutboxProcess.start({ databaseUrl: wire.url(database.url), apiUrl: outbox.slack.apiUrl, times: TIMES, lookEveryMs: 20 });

  const settled = async () => {
    const open = sql.unsafe`select count(*)::int as n from outbox_action where not (state = 'SENT' or (state = 'UNCERTAIN' and due_at is null))`;
    return (await run(database.db, open))[0]?.['n'] === 0;
  };

  it('are neither lost nor doubled, keep their order, and what nobody can know is left to an operator', async function () {
    this.timeout(STEPS.length * ROUNDS * STEP_MAX_MS);
    const audit = await startAudit(this, database.url);
    const filled = await outbox.fill(CHANNELS, POSTS / CHANNELS);
    outbox.slack.fate = usualFates();
    const killed: string[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      for (const step of STEPS) {
        await killAt(step);
        killed.push(nameOf(step));
      }
    }
    expect(new Set(killed)).to.have.length(STEPS.length);
    const last = await start();
    await until('all are settled', settled, POSTS * 500);
    await last.kill();

    const rows = new Map((await actions(database.db)).map((row) => [row.id, row]));
    const seen = outbox.slack.seen();
    const ids = [...filled.values()].flat();
    const lost = ids.filter((id) => !seen.has(id) && rows.get(id)?.state !== 'UNCERTAIN');
    const doubled = ids.filter((id) => (seen.get(id) ?? 0) > 1);
    expect({ lost, doubled }).to.deep.equal({ lost: [], doubled: [] });
    for (const [channel, order] of filled) expect(shownIn(outbox.slack, channel)).to.deep.equal(order.filter((id) => seen.has(id)));
    const uncertain = ids.filter((id) => rows.get(id)?.state === 'UNCERTAIN');
    expect(uncertain.length).to.be.above(0);
    expect(filled.get(UNREADABLE)).to.include.members(uncertain);
    expect((await outboxSize(database.db)).uncertain).to.equal(uncertain.length);
    const [unknown] = await run(database.db, sql.unsafe`select count(*)::int as n from outbox_step where to_state = 'UNCERTAIN'`);
    expect(unknown?.['n']).to.be.at.least(POSTS / 10);
    expect(await audit.violations()).to.deep.equal([]);
  });
});
