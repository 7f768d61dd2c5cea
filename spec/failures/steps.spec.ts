/**
 * kill -9 of the sandbox, of the server and of PostgreSQL at every step of a turn, before its statement and after it, and a lost reply of each
 * COMMIT. After each: R1 to R9 and R15 hold at every commit of the change log, the question is answered once, no slot is held, and each call that
 * reached the provider is on record once. cases: A8, I1, L3
 * `npm test` goes through each step and point with one victim; HEPH_TEST_FAULTS=all goes through all of them.
 */
import { expect } from 'chai';
import { z } from 'zod';
import { closeUnknownCalls } from '../../db/gateway/close-calls.ts';
import { sql } from '../../db/pool.ts';
import { CAPACITY, FaultRig, type Place } from '../support/fault-rig.ts';
import { hold } from '../support/model-server.ts';
import { type Fault, faults } from '../support/turn-steps.ts';

const LEASE_TTL_MS = 6_000;
const WHO = {
  sandbox: 'the sandbox is killed',
  server: 'the server is killed',
  postgres: 'PostgreSQL is killed',
  connection: 'the connection is lost',
} as const;
const call = z.object({
  id: z.string(),
  state: z.string(),
  outcome: z.string().nullable(),
  cost: z.string().nullable(),
  attempt: z.number(),
});

describe('a turn is answered once, billed once and leaves no slot behind', function () {
  // rule: R1, R2, R3, R4, R5, R6, R7, R8, R9, R15
  this.timeout(120_000);
  let rig: FaultRig;
  let n = 0;
  before(async () => {
    rig = await FaultRig.open(LEASE_TTL_MS);
  });
  after(() => rig.close());
  afterEach(function () {
    return rig.lastWords(this.currentTest);
  });

  const callsOf = (turnId: string) =>
    rig.read(
      call,
      sql.unsafe`select id, state, outcome, cost::text, attempt from llm_usage_event where turn_id = ${turnId} order by opened_at`,
    );

  /** Kills, at the point where the statement waits. */
  async function strike({ step, point, victim }: Fault): Promise<Place> {
    return rig.strike(step.statement, point, async ({ place, backendPid }) => {
      if (victim === 'server') await place.kill();
      if (victim === 'sandbox') await place.signalSandboxes('SIGKILL');
      if (victim === 'postgres') process.kill(backendPid, 'SIGKILL'); // the others end with it, and it recovers from its log
      return victim === 'sandbox' ? 'pass' : 'drop';
    });
  }

  /** The calls that a killed server left open belong to nobody; all others are closed by their servers. */
  async function allClosed(turnId: string, lost: ReadonlySet<string>) {
    await rig.until<{ id: string }>(
      'the calls are closed',
      sql.unsafe`select id from llm_usage_event where turn_id = ${turnId} and state = 'OPEN'`,
      (rows) => rows.every(({ id }) => lost.has(id)),
    );
    await rig.patiently(() => closeUnknownCalls(rig.db, { openMs: 0, overMs: 0 }, 100));
    return callsOf(turnId);
  }

  async function survives(fault: Fault): Promise<void> {
    await rig.ready();
    const [first, conversationId] = [rig.places[n % 2] as Place, await rig.thread()];
    const text = `question ${++n}`;
    if (fault.step.follows) await rig.ended((await rig.ask(first, 'one before', conversationId)).turn.id);
    const silence = hold();
    if (!fault.step.midway) silence.release();
    rig.model.use((seen) => ({ steps: [{ text: 'You ' }, { hold: silence }, { text: `asked: ${seen.question}` }] }));
    const struck = strike(fault);
    const asking = rig.ask(first, text, conversationId);
    await struck;
    const open = await rig.read(z.object({ id: z.string() }), sql.unsafe`select id from llm_usage_event where state = 'OPEN'`);
    silence.release();
    const { turn } = await asking;
    expect(await rig.ended(turn.id)).to.include({ status: 'DONE', error: null });
    const calls = await allClosed(turn.id, new Set(fault.victim === 'server' ? open.map(({ id }) => id) : []));
    await expectAnsweredOnce(text, conversationId);
    await expectBilledOnce(text, calls);
    const [slots] = await rig.read(
      z.object({ free: z.number(), held: z.number() }),
      sql.unsafe`select count(*) filter (where run_id is null)::int as free, count(run_id)::int as held from turn_slot`,
    );
    expect(slots).to.deep.equal({ free: CAPACITY, held: 0 });
    expect(await rig.audit.violations()).to.deep.equal([]);
  }

  async function expectAnsweredOnce(text: string, conversationId: string): Promise<void> {
    const entries = await rig.read(
      z.object({ kind: z.string(), text: z.string().nullable() }),
      sql.unsafe`select kind, text from mentor_entry where conversation_id = ${conversationId} and text like ${`%${text}`} order by seq`,
    );
    expect(entries.map((entry) => `${entry.kind}: ${entry.text}`)).to.deep.equal([`QUESTION: ${text}`, `ANSWER: You asked: ${text}`]);
  }

  async function expectBilledOnce(text: string, calls: readonly z.infer<typeof call>[]): Promise<void> {
    const reached = rig.model.seen.filter(({ question }) => question === text).length;
    expect(reached, 'a call without a row').to.be.at.most(calls.length);
    expect(calls.filter(({ outcome }) => outcome === 'ok').length, 'a row without its call').to.be.at.most(reached);
    for (const { state, outcome, cost } of calls) {
      expect(state).to.equal('CLOSED');
      if (outcome === 'ok') expect(Number(cost)).to.be.above(0);
    }
  }

  for (const fault of faults(process.env['HEPH_TEST_FAULTS'] === 'all')) {
    it(`when ${WHO[fault.victim]} right ${fault.point} ${fault.step.what}`, () => survives(fault));
  }
});
