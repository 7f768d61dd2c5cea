/**
 * Stops that meet something else: the end of the same turn, a repeat of a question. Two servers on one database. cases: C1, C12
 */
import { expect } from 'chai';
import { reconcileSlots } from '../../db/ledger/slots.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import { Gate } from '../support/actor-rig.ts';
import { becomes, type Server, turnOf, turnsOf, useServers } from '../support/actors.ts';
import { useDatabase } from '../support/database.ts';
import { emptyLedger, makePerson } from '../support/ledger.ts';
import { useAudit } from '../support/ledger-audit.ts';
import { rendezvous } from '../support/steered-database.ts';
import { answerAtOnce, done } from '../support/stub-sandboxes.ts';

const ROUNDS = 12;

describe('a stop', function () {
  // rule: R2, R5, R7
  this.timeout(60_000);
  const startAudit = useAudit();
  const database = useDatabase();
  const start = useServers(database);
  beforeEach(() => emptyLedger(database.db));

  it('that meets the end of its turn at another server leaves one answer, and says which of them was first (C1)', async function () {
    const { db, url } = database;
    const audit = await startAudit(this, url);
    await reconcileSlots(db, 4);
    const here = await start();
    const there: Server = await start();
    for (let round = 0; round < ROUNDS; round++) {
      const answered = new Gate();
      here.host.script = there.host.script = async (turn) => {
        await turn.context();
        await answered.wait();
        await turn.end(done('The answer.'));
      };
      const person = await makePerson(db);
      const turnId = await here.ask(person, 'Why?');
      await answered.entered;
      const meet = rendezvous(2);
      here.db.before = ({ name }) => (name === 'ledger_end_turn' ? meet() : undefined);
      there.db.before = ({ name }) => (name === 'ledger_stop' ? meet() : undefined);
      answered.open();
      const reply = await there.runtime.stopTurn(person, turnId);
      await becomes(db, turnId, reply.kind === 'stopped' ? 'STOPPED' : 'DONE');
      const ended = await untilEnded(turnId);
      expect(ended.answers, reply.kind).to.deep.equal(['The answer.']);
      expect(reply.kind).to.be.oneOf(['stopped', 'already-ended']);
    }
    expect(await audit.violations()).to.deep.equal([]);
  });

  async function untilEnded(turnId: Parameters<typeof turnOf>[1]) {
    for (;;) {
      const turn = await turnOf(database.db, turnId);
      if (turn.state === 'ENDED') return turn;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  it('answers before its loop has ended, and a question that is sent again behind it is one turn (C12)', async () => {
    const { db } = database;
    await reconcileSlots(db, 4);
    const server = await start();
    const [running, ending] = [new Gate(), new Gate()];
    server.host.script = async (turn) => {
      const context = await turn.context();
      if (context?.prompt !== 'first') return answerAtOnce(turn);
      await running.wait();
      await ending.wait();
      await turn.end({ outcome: 'STOPPED', entries: [], lastPartial: null });
    };
    const person = await makePerson(db);
    const first = await server.ask(person, 'first');
    await running.entered;
    const requestId = `r-${uuidv7()}`;
    const second = await server.ask(person, 'second', { requestId });
    expect(await server.runtime.stopTurn(person, first)).to.deep.equal({ kind: 'stopped' });
    expect(await turnOf(db, first), 'its loop goes on').to.include({ status: 'STOPPED', state: 'LEASED' });
    expect(await server.ask(person, 'second', { requestId }), 'sent again at once').to.equal(second);
    running.open();
    await ending.entered;
    expect(await turnOf(db, second)).to.include({ status: 'QUEUED' });
    ending.open();
    expect(await becomes(db, second, 'DONE')).to.deep.include({ attempt: 1, answers: ['Answer to second'] });
    expect(await server.ask(person, 'second', { requestId }), 'and later').to.equal(second);
    expect(await turnsOf(db)).to.have.length(2);
  });
});
