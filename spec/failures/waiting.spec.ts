/**
 * Turns that wait: for a slot, for their second attempt, for a model that is asked again. What holds a slot and what does not, and what waiting costs.
 * cases: B11, I4, I5
 */
import { expect } from 'chai';
import { reconcileSlots } from '../../db/ledger/slots.ts';
import type { Change } from '../../src/contract/changes.ts';
import { RuntimeFault } from '../../src/kernel/faults.ts';
import { Gate } from '../support/actor-rig.ts';
import { becomes, heldSlots, type Server, sweepOnce, turnOf, turnsOf, until, useServers } from '../support/actors.ts';
import { useDatabase } from '../support/database.ts';
import { emptyLedger, makeMain, makePerson } from '../support/ledger.ts';
import { useAudit } from '../support/ledger-audit.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { answerAtOnce, done, type StubTurn, type TurnScript } from '../support/stub-sandboxes.ts';

const SWEEP_MS = 1_000;

describe('a turn that waits', function () {
  // rule: R4, R9
  this.timeout(60_000);
  const startAudit = useAudit();
  const database = useDatabase();
  const start = useServers(database);
  beforeEach(() => emptyLedger(database.db));

  it('for its model keeps its slot: the next conversation starts when it has ended (I4)', async function () {
    const { db, url } = database;
    const audit = await startAudit(this, url, { capacity: 1 });
    await reconcileSlots(db, 1);
    const backOff = new Gate();
    const script = async (turn: StubTurn) => {
      const context = await turn.context();
      if (context?.prompt === 'first') await backOff.wait(); // asks its model again in a while
      await turn.end(done('Answer.'));
    };
    const server = await start({ sweepMs: 100, script });
    const first = await server.ask(await makePerson(db), 'first');
    await backOff.entered;
    const second = await server.ask(await makePerson(db), 'second');
    await until('the second has a sandbox', () => server.host.sandboxes.length === 2);
    expect(await turnOf(db, second)).to.include({ status: 'QUEUED' });
    backOff.open();
    for (const turnId of [first, second]) expect(await becomes(db, turnId, 'DONE')).to.include({ attempt: 1 });
    expect(await audit.violations()).to.deep.equal([]);
  });

  it('for its second attempt holds none: another runs meanwhile, and it starts when the slot is free again (I4)', async function () {
    const { db, url } = database;
    const audit = await startAudit(this, url, { capacity: 1 });
    await reconcileSlots(db, 1);
    const secondRuns = new Gate();
    let firstIsAway = false;
    const script = async (turn: StubTurn) => {
      const context = await turn.context();
      if (context?.prompt === 'second') await secondRuns.wait();
      else if (turn.run.epoch === 1) {
        firstIsAway = true;
        turn.die();
      }
      await turn.end(done('Answer.'));
    };
    const server = await start({ sweepMs: 100, script });
    const ada = await makePerson(db);
    const firstConversation = await makeMain(db, ada);
    server.host.startFails = () =>
      firstIsAway && server.host.starts.at(-1) === firstConversation ? new RuntimeFault('BUSY', 'All taken.') : null;
    const first = await server.ask(ada, 'first');
    await until('the first attempt is taken back', async () => firstIsAway && (await turnOf(db, first)).status === 'QUEUED');
    expect(await heldSlots(db)).to.equal(0);
    const second = await server.ask(await makePerson(db), 'second');
    await secondRuns.entered;
    firstIsAway = false;
    await until('the first has a sandbox again', () =>
      server.host.sandboxes.some(({ conversationId }) => conversationId === firstConversation),
    );
    expect(await turnOf(db, first)).to.include({ status: 'QUEUED' });
    secondRuns.open();
    expect(await becomes(db, first, 'DONE')).to.include({ attempt: 2 });
    expect(await becomes(db, second, 'DONE')).to.include({ attempt: 1 });
    expect(await audit.violations()).to.deep.equal([]);
  });

  it('is not taken back by the boot of its own server, in the same millisecond or later (B11)', async () => {
    const { db } = database;
    await reconcileSlots(db, 4);
    const clock = new ManualClock(); // time stands still
    const gate = new Gate();
    const server = await start({
      clock,
      predecessorOf: 'the-data-directory',
      script: afterwards(gate),
    });
    const turnId = await server.ask(await makePerson(db), 'in the same instant');
    const taken = server.actors.reap();
    await gate.entered;
    expect([await taken, await server.actors.reap()]).to.deep.equal([0, 0]);
    gate.open();
    expect(await becomes(db, turnId, 'DONE')).to.include({ attempt: 1, epoch: 1 });
  });

  it('with 15 others for slots that stay full costs three servers a few statements a second, and wakes nobody (I5)', async () => {
    const { db } = database;
    await reconcileSlots(db, 4);
    const gate = new Gate();
    const clock = new ManualClock();
    const servers: Server[] = [];
    for (let n = 0; n < 3; n++) {
      const options = {
        clock,
        sweepMs: SWEEP_MS,
        sandboxesMax: 8,
        script: afterwards(gate),
      };
      servers.push(await start(options));
    }
    const published: Change[] = [];
    for (const server of servers) {
      server.publishes = (change) => {
        published.push(change);
        for (const other of servers) if (other !== server) setImmediate(() => other.actors.changed(change));
      };
    }
    for (let n = 0; n < 20; n++) await (servers[n % 3] as Server).ask(await makePerson(db), `question ${n}`);
    await until('all slots are full', async () => (await heldSlots(db)) === 4);
    for (const server of servers) await sweepOnce(server, clock, SWEEP_MS);
    const from = servers.map(({ db: steered, host }) => ({ statements: steered.sent.length, starts: host.starts.length }));
    published.length = 0;
    const SWEEPS = 20;
    for (let n = 0; n < SWEEPS; n++) for (const server of servers) await sweepOnce(server, clock, SWEEP_MS);
    for (const [n, { db: steered, host }] of servers.entries()) {
      const perSweep = (steered.sent.length - (from[n]?.statements ?? 0)) / (SWEEPS * servers.length);
      expect(perSweep, 'statements of one server in a second').to.be.below(12);
      expect(host.starts.length - (from[n]?.starts ?? 0), 'sandboxes that were started').to.equal(0);
    }
    expect(published, 'nobody is woken for nothing').to.deep.equal([]);
    gate.open();
    await until('all are answered', async () => {
      for (const server of servers) await sweepOnce(server, clock, SWEEP_MS);
      return (await turnsOf(db)).every(({ status }) => status === 'DONE');
    });
  });
});

function afterwards(gate: Gate): TurnScript {
  return async (turn) => {
    await gate.wait();
    await answerAtOnce(turn);
  };
}
