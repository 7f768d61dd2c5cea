/**
 * Which conversations get a sandbox, when one ends, and what becomes of what it held. Time stands still unless a test moves it.
 * cases: B12
 */
import { expect } from 'chai';
import { sql } from '../../db/pool.ts';
import { RuntimeFault } from '../../src/kernel/faults.ts';
import type { SandboxId, TurnId } from '../../src/kernel/ids.ts';
import { Gate } from '../support/actor-rig.ts';
import { becomes, heldSlots, openScene, sweepOnce, turnOf, until, useServers } from '../support/actors.ts';
import { useDatabase } from '../support/database.ts';
import { emptyLedger, makeMain, makePerson, makeSandbox, run } from '../support/ledger.ts';
import { away } from '../support/steered-database.ts';
import { answerAtOnce, type StubTurn } from '../support/stub-sandboxes.ts';

const SWEEP_MS = 1_000;

describe('the sandboxes of one server', () => {
  const database = useDatabase();
  const start = useServers(database);
  beforeEach(() => emptyLedger(database.db));
  const scene = (options: Parameters<typeof openScene>[2] = {}) => openScene(start, database.db, options);

  async function liveSandboxIds(): Promise<readonly string[]> {
    const rows = await run(database.db, sql.unsafe`select id from sandbox where state <> 'ENDED' order by created_at`);
    return rows.map((row) => String(row['id']));
  }

  const isInsert = ({ sql: text }: { sql: string }) => text.includes('insert into sandbox');

  it('gives another conversation a sandbox as soon as one has nothing to do, without waiting for a sweep', async () => {
    const { db, server, person } = await scene({ sandboxesMax: 1 });
    const gate = new Gate();
    server.host.script = async (turn) => {
      await gate.wait();
      await answerAtOnce(turn);
    };
    const first = await server.ask(person, 'one');
    await gate.entered;
    const other = await makePerson(db);
    const second = await server.ask(other, 'two');
    gate.open();
    await becomes(db, second, 'DONE');
    expect(await turnOf(db, first)).to.include({ status: 'DONE', attempt: 1 });
    expect(await liveSandboxIds()).to.have.length(1);
  });

  it('does not start more sandboxes than it may, and keeps one whose turn waits for a slot', async () => {
    const { db, clock, server } = await scene({ capacity: 0, sandboxesMax: 2, sandboxIdleMs: 5_000 });
    for (let n = 0; n < 4; n++) await server.ask(await makePerson(db), 'Why?');
    await until('two have a sandbox', () => server.host.starts.length === 2);
    const before = await liveSandboxIds();
    for (let sweeps = 0; sweeps < 12; sweeps++) await sweepOnce(server, clock);
    expect(await liveSandboxIds()).to.deep.equal(before);
    expect(server.host.starts).to.have.length(2);
  });

  it('asks the database a few things a second while 16 questions wait for a slot, however many wait', async () => {
    const { db, clock, server } = await scene({ capacity: 0 });
    for (let n = 0; n < 16; n++) await server.ask(await makePerson(db), 'Why?');
    await until('each has a sandbox that pulls', () => server.host.list().length === 16);
    await sweepOnce(server, clock);
    const before = server.db.sent.length;
    for (let sweeps = 0; sweeps < 10; sweeps++) await sweepOnce(server, clock);
    expect((server.db.sent.length - before) / 10).to.be.below(10);
  });

  it('ends a sandbox that has nothing to do for long, and starts one again for the next question', async () => {
    const { db, clock, server, person } = await scene({ sandboxIdleMs: 5_000 });
    await becomes(db, await server.ask(person, 'one'), 'DONE');
    await until('its sandbox is idle', () => server.host.list().every((runner) => runner.state === 'idle'));
    await until('it is ended', async () => {
      await clock.advanceAsync(SWEEP_MS);
      return (await liveSandboxIds()).length === 0;
    });
    expect(clock.monotonicMs()).to.be.at.least(5_000);
    await becomes(db, await server.ask(person, 'two'), 'DONE');
    expect(server.host.starts).to.have.length(2);
  });

  it('starts the turn of a sandbox that died again at once, as its second attempt', async () => {
    // rule: R9
    const { db, server, person } = await scene();
    let deaths = 0;
    server.host.script = async (turn: StubTurn) => {
      if (deaths++ === 0) turn.die();
      await answerAtOnce(turn);
    };
    const turnId = await server.ask(person, 'Why?');
    expect(await becomes(db, turnId, 'DONE')).to.deep.include({ attempt: 2, epoch: 2, answers: ['Answer to Why?'] });
    expect(server.cleared, 'the partial answer of the first attempt too').to.deep.equal([turnId, turnId]);
  });

  it('fails a turn that kills its sandbox twice, and goes on with the next question', async () => {
    const { db, server, person } = await scene();
    server.host.script = async (turn: StubTurn) => {
      const context = await turn.context();
      if (context?.prompt === 'deadly') turn.die();
      await turn.end({ outcome: 'DONE', entries: [], lastPartial: null });
    };
    const turnId = await server.ask(person, 'deadly');
    const next = await server.ask(person, 'harmless');
    expect(await becomes(db, turnId, 'FAILED')).to.include({ attempt: 2, error: 'ERROR' });
    await becomes(db, next, 'FAILED');
    expect(await turnOf(db, next)).to.include({ attempt: 1 });
    expect(await heldSlots(db)).to.equal(0);
  });

  it('replaces a sandbox that is silent for longer than its lease, and ends its runner', async () => {
    const { db, clock, server, person } = await scene();
    const frozen = new Gate();
    let first = true;
    server.host.script = async (turn) => {
      if (!first) return answerAtOnce(turn);
      first = false;
      await frozen.wait();
    };
    const turnId = await server.ask(person, 'Why?');
    await frozen.entered;
    const [silent] = await liveSandboxIds();
    await run(db, sql.unsafe`update agent_run set lease_until = clock_timestamp() - interval '1 ms' returning 1`);
    await until('the turn is done by another', async () => {
      await sweepOnce(server, clock);
      return (await turnOf(db, turnId)).status === 'DONE';
    });
    expect(await turnOf(db, turnId)).to.deep.include({ attempt: 2, answers: ['Answer to Why?'] });
    expect(await liveSandboxIds()).to.not.include(silent);
    await until('its runner is told to end', async () => {
      await clock.advanceAsync(SWEEP_MS);
      return server.host.ended.includes(silent as SandboxId);
    });
    frozen.open();
  });

  it('replaces a sandbox that is idle and does not pull although its turn waits', async () => {
    const { db, clock, server, person } = await scene({ sandboxIdleMs: 5_000 });
    const frozen = new Gate();
    let sandboxes = 0;
    server.host.beforePull = async () => {
      sandboxes += 1;
      if (sandboxes === 1) await frozen.wait();
    };
    const end = server.host.end.bind(server.host);
    server.host.end = (sandboxId) => {
      frozen.open(); // as a kill does
      return end(sandboxId);
    };
    const turnId = await server.ask(person, 'Why?');
    await frozen.entered;
    for (let sweeps = 0; server.host.ended.length === 0; sweeps++) {
      expect(sweeps).to.be.below(7);
      await sweepOnce(server, clock);
    }
    expect(await becomes(db, turnId, 'DONE')).to.include({ attempt: 1 });
    expect(server.host.starts).to.have.length(2);
  });

  it('does not lose a conversation to a sandbox whose row was written when the reply was lost', async () => {
    const { db, clock, server, person } = await scene();
    server.db.loseReplies(isInsert);
    const turnId = await server.ask(person, 'Why?');
    await until('the turn is done', async () => {
      await sweepOnce(server, clock);
      return (await turnOf(db, turnId)).status === 'DONE';
    });
    expect(await liveSandboxIds()).to.have.length(1);
  });

  it('ends the row of a sandbox whose runner went while the database was away, and takes back what it held', async () => {
    const { db, clock, server, person } = await scene();
    let deaths = 0;
    let refused = 0;
    server.host.script = async (turn) => {
      if (deaths++ > 0) return answerAtOnce(turn);
      server.db.before = ({ name }) => {
        if (name !== 'ledger_end_sandbox') return;
        refused += 1;
        throw away();
      };
      turn.die();
    };
    const turnId = await server.ask(person, 'Why?');
    await until('its exit could not be written', () => refused > 0);
    server.db.before = () => undefined;
    await until('the turn is done', async () => {
      await sweepOnce(server, clock);
      return (await turnOf(db, turnId)).status === 'DONE';
    });
    expect(await turnOf(db, turnId)).to.include({ attempt: 2 });
    expect(await liveSandboxIds()).to.have.length(1);
  });

  it('starts a sandbox late when starts fail, and pauses longer each time', async () => {
    const { db, clock, server, person } = await scene();
    server.host.startFails = () => new RuntimeFault('INTERNAL', 'no', { retry: 'later' });
    await server.ask(person, 'Why?');
    await until('it was tried', () => server.host.starts.length === 1);
    const triedAt: number[] = [];
    let turnId = null as TurnId | null;
    for (let second = 1; second <= 20; second++) {
      const tries = server.host.starts.length;
      await sweepOnce(server, clock);
      if (server.host.starts.length > tries) triedAt.push(second);
      if (second === 4) turnId = await server.ask(await makePerson(db), 'Why?'); // the first has been given up
    }
    expect(triedAt).to.deep.equal([1, 3, 7, 15]);
    if (turnId === null) throw new Error('no turn');
    const waiting = turnId;
    expect(await liveSandboxIds()).to.deep.equal([]);
    server.host.startFails = () => null;
    await until('the turn is done', async () => {
      await sweepOnce(server, clock);
      return (await turnOf(db, waiting)).status === 'DONE';
    });
  });

  it('tries again at the next sweep when all runners are taken', async () => {
    const { db, clock, server, person } = await scene();
    server.host.startFails = () => (server.host.starts.length < 3 ? new RuntimeFault('BUSY', 'full', { retry: 'later' }) : null);
    const turnId = await server.ask(person, 'Why?');
    await until('the turn is done', async () => {
      await sweepOnce(server, clock);
      return (await turnOf(db, turnId)).status === 'DONE';
    });
    expect(server.host.starts).to.have.length(3);
  });

  it('starts no second sandbox for a conversation that has one on another server', async () => {
    const { db, clock, server, person } = await scene();
    const elsewhere = await start();
    await makeSandbox(db, person, await makeMain(db, person), elsewhere.hostId);
    const turnId = await server.ask(person, 'Why?');
    await sweepOnce(server, clock);
    expect(server.host.starts).to.deep.equal([]);
    expect(await turnOf(db, turnId)).to.include({ status: 'QUEUED' });
  });

  it('starts sandboxes of several conversations side by side', async () => {
    const { db, server } = await scene({ capacity: 3 });
    const allUnderWay = new Gate();
    const real = server.host.start.bind(server.host);
    let under = 0;
    server.host.start = async (request) => {
      under += 1;
      if (under === 3) allUnderWay.open();
      await allUnderWay.wait();
      await real(request);
    };
    const held = new Gate();
    server.db.before = ({ name }) => (name === 'ledger_sandbox_demand' ? held.wait() : undefined);
    const turns = [];
    for (let n = 0; n < 3; n++) turns.push(await server.ask(await makePerson(db), `q${n}`));
    held.open();
    for (const turnId of turns) await becomes(db, turnId, 'DONE');
  });

  it('serves other conversations while one start hangs', async () => {
    const { db, server, person } = await scene({ capacity: 2 });
    const hanging = new Gate();
    const begun = new Gate();
    const real = server.host.start.bind(server.host);
    let starts = 0;
    server.host.start = async (request) => {
      starts += 1;
      if (starts === 1) {
        begun.open();
        await hanging.wait();
      }
      await real(request);
    };
    const first = await server.ask(person, 'Why?');
    await begun.wait();
    await becomes(db, await server.ask(await makePerson(db), 'And why?'), 'DONE');
    expect(await turnOf(db, first)).to.include({ status: 'QUEUED' });
    hanging.open();
    await becomes(db, first, 'DONE');
    expect(starts).to.equal(2);
  });
});
