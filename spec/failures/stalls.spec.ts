/**
 * Time that goes wrong: a sandbox, a server or a wire that stands still for two leases and then goes on, a tool that says nothing for longer than a
 * lease, a server whose clock is 90 s ahead, and an installation that was killed with all slots busy. cases: B1, B3, B5, B6, B12, B14
 * One of the two servers has the fast clock in every test here.
 */
import { expect } from 'chai';
import { z } from 'zod';
import { closeUnknownCalls } from '../../db/gateway/close-calls.ts';
import { sql } from '../../db/pool.ts';
import { CAPACITY, FaultRig, type Place } from '../support/fault-rig.ts';
import { answer, calls, hold, says } from '../support/model-server.ts';

const LEASE_TTL_MS = 4_000;
const FAST_CLOCK = new URL('../support/fast-clock.ts', import.meta.url).href;
/** A sandbox is there for a conversation, or not at all: none is warm, and none goes because it is idle. */
const ENV = { HEPH_SANDBOX_ALLOW_UNISOLATED: 'true', HEPH_SANDBOX_WARM: '0', HEPH_SANDBOX_IDLE: '10m' };

/** The rig of a describe, with two servers, and what all its tests look at. */
function useRig(env: Readonly<Record<string, string>>) {
  let rig: FaultRig;
  before(async () => {
    rig = await FaultRig.open(LEASE_TTL_MS, [env, { ...env, NODE_OPTIONS: `--import=${FAST_CLOCK}` }]);
  });
  beforeEach(() => rig.ready());
  afterEach(function () {
    return rig.lastWords(this.currentTest);
  });
  after(() => rig.close());
  return {
    rig: () => rig,
    seen: (question: string) => rig.model.seen.filter((one) => one.question === question),
    async allIsWell(): Promise<void> {
      await rig.until('all calls are closed', sql.unsafe`select 1 from llm_usage_event where state = 'OPEN'`, (rows) => rows.length === 0);
      await rig.until('all slots are free', sql.unsafe`select 1 from turn_slot where run_id is not null`, (rows) => rows.length === 0);
      expect(await rig.audit.violations()).to.deep.equal([]);
    },
  };
}

describe('a turn', function () {
  // rule: R5, R7, R8, R9, R15
  this.timeout(120_000);
  const { rig: opened, seen, allIsWell } = useRig(ENV);
  let rig: FaultRig;
  beforeEach(() => {
    rig = opened();
  });

  /** The first attempt of the question has said half of its answer and is held there. */
  async function halfway(text: string) {
    const silence = hold();
    rig.model.use((one, n) =>
      one.question === text && seen(text).length === 1
        ? { steps: [{ text: 'half of ' }, { hold: silence }, { text: 'an answer' }] }
        : answer()(one, n),
    );
    const conversationId = await rig.thread();
    const { turn } = await rig.ask(rig.places[0], text, conversationId);
    await silence.arrived;
    return { turn, conversationId, silence, place: await rig.placeOf(turn.id), first: seen(text)[0] };
  }

  /** By the database's clock. */
  async function leasesPass(turnId: string, leases: number): Promise<void> {
    await rig.until<{ over: boolean }>(
      `${leases} leases pass`,
      sql.unsafe`select clock_timestamp() > started_at + ${leases * LEASE_TTL_MS}::int * interval '1 ms' as over from mentor_turn where id = ${turnId}`,
      ([row]) => row?.over === true,
    );
  }

  async function answers(conversationId: string): Promise<readonly string[]> {
    const rows = await rig.read(
      z.object({ text: z.string() }),
      sql.unsafe`select text from mentor_entry where conversation_id = ${conversationId} and kind = 'ANSWER' order by seq`,
    );
    return rows.map(({ text }) => text);
  }

  it('is answered by another sandbox when its own stands still for two leases, and its model call is closed', async () => {
    const { turn, conversationId, silence, place, first } = await halfway('Who is there?');
    await place.signalSandboxes('SIGSTOP');
    expect(await rig.ended(turn.id)).to.include({ status: 'DONE', attempt: 2 });
    await first?.aborted; // its server gave the call up, although nobody hung up
    silence.release();
    await place.signalSandboxes('SIGCONT');
    await leasesPass(turn.id, 2);
    expect(await answers(conversationId)).to.deep.equal(['You asked: Who is there?']);
    await allIsWell();
  });

  it('is answered at another server when its own stands still with its sandbox, and what wakes up late changes nothing', async () => {
    const { turn, conversationId, silence, place, first } = await halfway('Are you asleep?');
    const { pid } = await place.server();
    await place.signalSandboxes('SIGSTOP');
    process.kill(pid, 'SIGSTOP');
    try {
      await rig.until(
        'it is done elsewhere',
        sql.unsafe`select 1 from mentor_turn where id = ${turn.id} and status = 'DONE'`,
        (rows) => rows.length === 1,
      );
      await leasesPass(turn.id, 2);
    } finally {
      process.kill(pid, 'SIGCONT');
      await place.signalSandboxes('SIGCONT');
    }
    silence.release(); // the old attempt may hear the rest of its answer now
    await first?.sent;
    const { turn: next } = await rig.ask(place, 'And now?', conversationId);
    expect(await rig.ended(next.id)).to.include({ status: 'DONE', attempt: 1 });
    expect(await answers(conversationId)).to.deep.equal(['You asked: Are you asleep?', 'You asked: And now?']);
    await allIsWell();
  });

  it('leaves nothing outside once its server hears nothing of the database: its call is closed, and no other is made', async () => {
    const { turn, conversationId, silence, place, first } = await halfway('Can you hear me?');
    place.wire.stall();
    try {
      await first?.aborted;
      expect(await rig.ended(turn.id)).to.include({ status: 'DONE', attempt: 2 });
      await leasesPass(turn.id, 2);
      expect(seen('Can you hear me?'), 'one call of each attempt').to.have.length(2);
    } finally {
      place.wire.heal();
    }
    silence.release();
    const { turn: next } = await rig.ask(place, 'Better?', conversationId);
    expect(await rig.ended(next.id)).to.include({ status: 'DONE', attempt: 1 });
    expect(await answers(conversationId)).to.deep.equal(['You asked: Can you hear me?', 'You asked: Better?']);
    expect(seen('Can you hear me?'), 'and none when the wire heals').to.have.length(2);
    await allIsWell();
  });

  it('runs once although its tool says nothing for 3.5 leases, beside a server whose clock is 90 s ahead', async () => {
    const command = `sleep ${(LEASE_TTL_MS / 1_000) * 3.5}; echo through`;
    rig.model.use((one) => (one.toolResults.length === 0 ? calls('bash', { command }) : says('Through.')));
    const asked = await Promise.all(rig.places.map(async (place, n) => rig.ask(place, `Wait ${n}.`, await rig.thread())));
    await rig.until('both run', sql.unsafe`select 1 from agent_run where state = 'LEASED'`, (rows) => rows.length === 2);
    for (const { turn } of asked) await leasesPass(turn.id, 3.5);
    const saidAt = (await rig.places[1].server()).lines.map(({ time }) => Date.parse(String(time)) || 0);
    expect(Math.max(...saidAt) - Date.now(), 'the clock is fast').to.be.above(45_000);
    for (const [n, { turn }] of asked.entries()) {
      expect(await rig.ended(turn.id)).to.include({ status: 'DONE', attempt: 1 });
      expect(seen(`Wait ${n}.`), 'one that calls the tool, one that answers').to.have.length(2);
    }
    const results = sql.unsafe`select id from mentor_entry where kind = 'TOOL_RESULT' and payload::text like '%through%'`;
    expect(await rig.read(z.object({ id: z.string() }), results), 'each tool ran once').to.have.length(2);
    await allIsWell();
  });

  it('is taken back within a lease and 2 s by a server that comes up after all were killed with every slot busy', async () => {
    const silence = hold();
    rig.model.use(async (one, n) => ({ before: silence, reply: await answer()(one, n) }));
    const busy = [];
    for (let n = 0; n < CAPACITY; n++) busy.push(await rig.ask(rig.places[n % 2] as Place, `Busy ${n}?`, await rig.thread()));
    await rig.until('every slot is busy', sql.unsafe`select 1 from turn_slot where run_id is not null`, (rows) => rows.length === CAPACITY);
    await Promise.all(rig.places.map((place) => place.die()));
    silence.release();
    rig.model.use(answer());
    await rig.places[0].server();
    const upAtMs = performance.now();
    const held = sql.unsafe`select 1 from turn_slot s join agent_run r on r.id = s.run_id where r.epoch = 1`;
    await rig.until('no slot is held by the dead', held, (rows) => rows.length === 0);
    expect(performance.now() - upAtMs).to.be.below(LEASE_TTL_MS + 2_000);
    const fresh = await rig.ask(rig.places[0], 'Anybody?', await rig.thread());
    for (const { turn } of [...busy, fresh]) expect(await rig.ended(turn.id)).to.include({ status: 'DONE' });
    await rig.patiently(() => closeUnknownCalls(rig.db, { openMs: 0, overMs: 0 }, 100)); // those of the dead servers
    await allIsWell();
  });
});

describe('a turn whose tool reaches its sandbox', function () {
  // Only without isolation a command can do that.
  this.timeout(120_000);
  const { rig: opened, seen, allIsWell } = useRig({ ...ENV, HEPH_SANDBOX_ISOLATION: 'off' });

  it('that kills its sandbox each time fails at its second attempt, and the others go on', async () => {
    const rig = opened();
    rig.model.use((one, n) => (one.question === 'Fall.' ? calls('bash', { command: 'kill -9 $PPID' }) : answer()(one, n)));
    const [falls, stands] = [await rig.thread(), await rig.thread()];
    const [fallen, behind, beside] = [
      await rig.ask(rig.places[0], 'Fall.', falls),
      await rig.ask(rig.places[1], 'Get up.', falls),
      await rig.ask(rig.places[1], 'Stand.', stands),
    ];
    expect(await rig.ended(fallen.turn.id)).to.include({ status: 'FAILED', attempt: 2, error: 'ERROR' });
    expect(seen('Fall.')).to.have.length(2);
    for (const { turn } of [behind, beside]) expect(await rig.ended(turn.id)).to.include({ status: 'DONE', attempt: 1 });
    await allIsWell();
  });
});
