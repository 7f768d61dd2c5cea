/**
 * Two servers on one database: whatever both do at the same moment, the constraints and the fence decide, and the loser looks again.
 * cases: A3, A12, B8, C4, L1
 */
import { expect } from 'chai';
import { endDeadHosts } from '../../db/ledger/sandboxes.ts';
import { reconcileSlots } from '../../db/ledger/slots.ts';
import { type Database, sql } from '../../db/pool.ts';
import type { Change } from '../../src/contract/changes.ts';
import { type ConversationId, type HostId, uuidv7 } from '../../src/kernel/ids.ts';
import { Gate } from '../support/actor-rig.ts';
import {
  becomes,
  heldSlots,
  playSandbox,
  type Server,
  type ServerOptions,
  sweepOnce,
  turnOf,
  turnsOf,
  until,
  useServers,
} from '../support/actors.ts';
import { openTestDatabase, useDatabase } from '../support/database.ts';
import { claimOne, emptyLedger, makeHost, makeMain, makePerson, makeSandbox, type Person, run } from '../support/ledger.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { named, rendezvous } from '../support/steered-database.ts';
import { answerAtOnce, done } from '../support/stub-sandboxes.ts';

describe('two servers on one database', () => {
  const database = useDatabase();
  const start = useServers(database);
  const pools: Database[] = [];
  beforeEach(() => emptyLedger(database.db));
  after(async () => {
    await Promise.all(pools.splice(0).map((pool) => pool.close()));
  });

  /** Servers with pools of their own that hear of each other's changes. `deaf`: they do not. */
  async function two(options: Partial<ServerOptions> & { deaf?: boolean; capacity?: number } = {}) {
    const { deaf = false, capacity = 4, ...rest } = options;
    const { db } = database;
    await reconcileSlots(db, capacity);
    while (pools.length < 2) pools.push(await openTestDatabase(database.url, 6));
    const clocks = [new ManualClock(), new ManualClock()] as const;
    const a = await start({ clock: clocks[0], ...rest }, pools[0]);
    const b = await start({ clock: clocks[1], ...rest }, pools[1]);
    if (!deaf) {
      a.tell(b);
      b.tell(a);
    }
    return { db, a, b, clocks, person: await makePerson(db) };
  }

  /** The next statement of this name waits at both servers until the other has come as well. */
  function together(servers: readonly Server[], name: string): void {
    const meet = rendezvous(servers.length);
    for (const server of servers) server.db.before = (statement) => (statement.name === name ? meet() : undefined);
  }

  it('accept 10 questions of one conversation at the same moment and answer them one by one in their order', async () => {
    // rule: R1, R3
    const { db, a, b, person } = await two();
    const running: string[] = [];
    let most = 0;
    for (const server of [a, b]) {
      server.host.script = async (turn) => {
        running.push(turn.run.id);
        most = Math.max(most, running.length);
        await answerAtOnce(turn);
        running.splice(running.indexOf(turn.run.id), 1);
      };
    }
    const ids = await Promise.all(Array.from({ length: 10 }, (_, n) => (n % 2 === 0 ? a : b).ask(person, `q${n}`)));
    expect(new Set(ids).size).to.equal(10);
    for (const id of ids) await becomes(db, id, 'DONE');
    expect(most).to.equal(1);
    const rows = await run(
      db,
      sql.unsafe`select t.question_seq as asked, e.seq as answered, t.attempt from mentor_turn t
        join mentor_entry e on e.turn_id = t.id and e.kind = 'ANSWER' order by t.question_seq`,
    );
    const answered = rows.map((row) => Number(row['answered']));
    expect(rows).to.have.length(10);
    expect(answered).to.deep.equal([...answered].sort((x, y) => x - y));
    expect(rows.map((row) => row['attempt'])).to.deep.equal(rows.map(() => 1));
  });

  it('make one turn of one requestId that both get at the same instant', async () => {
    // rule: R2
    const { db, a, b, person } = await two({ capacity: 0, maxFollowUps: 50, deaf: true });
    await a.ask(person, 'first');
    for (let round = 0; round < 12; round++) {
      const requestId = `twice-${round}`;
      together([a, b], 'ledger_submit');
      const ids = await Promise.all([a.ask(person, 'Why?', { requestId }), b.ask(person, 'Why?', { requestId })]);
      expect(ids[0]).to.equal(ids[1]);
    }
    expect(await turnsOf(db)).to.have.length(13);
  });

  it('make one main conversation of the first questions of a person', async () => {
    const { db, a, b } = await two({ capacity: 0 });
    for (let round = 0; round < 6; round++) {
      const person = await makePerson(db);
      await Promise.all([a.ask(person, 'one'), b.ask(person, 'two')]);
      const rows = await run(db, sql.unsafe`select id from mentor_conversation where account_id = ${person.accountId}`);
      expect(rows).to.have.length(1);
    }
    expect(await turnsOf(db)).to.have.length(12);
  });

  it('claim one turn when both claim for one conversation at the same moment', async () => {
    // rule: R1
    const { db, a, b } = await two({ capacity: 4 });
    for (let round = 0; round < 10; round++) {
      const person = await makePerson(db);
      const conversationId = await makeMain(db, person);
      const here = await playSandbox(a, person, conversationId);
      const [first] = [await a.ask(person, 'one'), await b.ask(person, 'two')];
      together([a, b], 'ledger_claim');
      const there = b.runtime.claimNext(here.sandbox, 20_000, new AbortController().signal);
      const runs = await Promise.all([here.pull().answer, there]); // the loser is given the winner's claim: it is the same sandbox
      expect(new Set(runs.map((one) => one?.id)).size).to.equal(1);
      const turns = await turnsOf(db, conversationId);
      expect(turns.map((turn) => [turn.status, turn.epoch])).to.deep.equal([
        ['RUNNING', 1],
        ['QUEUED', 0],
      ]);
      expect(turns[0]?.id).to.equal(first);
      await a.runtime.endTurn(here.attempt(runs[0] ?? null), done('Because.'));
    }
  });

  it('start a question of one at the sandbox that waits at the other, without a timer', async () => {
    const { db, a, b, person } = await two();
    const conversationId = await makeMain(db, person);
    const { parked, attempt } = await playSandbox(b, person, conversationId);
    const pull = await parked();
    const turnId = await a.ask(person, 'Why?');
    const mine = attempt(await pull.answer);
    expect(await a.runtime.publishPartial(mine, { offset: 0, text: 'Be', stage: null, full: true })).to.have.property('kind', 'taken');
    expect(await a.runtime.endTurn(mine, done('Because.'))).to.deep.equal({ kind: 'ended' });
    expect((await turnOf(db, turnId)).answers).to.deep.equal(['Because.']);
  });

  it('give a claim whose reply was lost at one to the pull that comes to the other', async () => {
    const { db, a, b, person } = await two({ deaf: true });
    const conversationId = await makeMain(db, person);
    const { sandbox, parked } = await playSandbox(a, person, conversationId);
    const atB = await b.ask(person, 'Why?'); // B's cache knows the conversation
    a.db.loseReplies(named('ledger_claim'));
    const lost = await parked();
    await until('the claim is written', async () => (await turnOf(db, atB)).status === 'RUNNING');
    lost.hangUp();
    b.actors.changed({ ...(b.changes[0] as Change), version: 99 }); // the sweep of src/live has found a hole
    const given = await b.runtime.claimNext(sandbox, 20_000, new AbortController().signal);
    expect(given).to.include({ epoch: 1 });
    expect(await turnOf(db, atB)).to.include({ attempt: 1 });
  });

  it('stop at one what runs at the other, and let the next question run', async () => {
    const { db, a, b, person } = await two();
    const gate = new Gate();
    a.host.script = async (turn) => {
      await gate.wait();
      await answerAtOnce(turn);
    };
    const first = await a.ask(person, 'one');
    await gate.entered;
    const second = await b.ask(person, 'two');
    expect(await b.runtime.stopTurn(person, first)).to.deep.equal({ kind: 'stopped' });
    gate.open();
    await becomes(db, second, 'DONE');
    expect(await turnOf(db, first)).to.include({ status: 'STOPPED', state: 'ENDED' });
    expect(await a.runtime.stopTurn(person, first), 'once more').to.deep.equal({ kind: 'stopped' });
  });

  it('write at the newest version when they hear nothing of each other', async () => {
    const { db, a, b, person } = await two({ capacity: 0, maxFollowUps: 40, deaf: true });
    for (let n = 0; n < 20; n++) await (n % 2 === 0 ? a : b).ask(person, `q${n}`);
    const [row] = await run(db, sql.unsafe`select array_agg(text order by seq) as texts from mentor_entry`);
    expect(row?.['texts']).to.deep.equal(Array.from({ length: 20 }, (_, n) => `q${n}`));
    const queued = await turnsOf(db);
    const stops = await Promise.all(queued.map((turn, n) => (n % 2 === 0 ? b : a).runtime.stopTurn(person, turn.id)));
    expect(stops.map((stop) => stop.kind)).to.deep.equal(queued.map(() => 'stopped'));
  });

  it('take each lost lease back once when both reapers look at the same moment', async () => {
    // rule: R9
    const { db, a, b } = await two({ capacity: 30, sandboxesMax: 0 }); // what comes back stays in the queue
    const hostId = await makeHost(db);
    const people: { person: Person; conversationId: ConversationId }[] = [];
    for (let n = 0; n < 30; n++) {
      const person = await makePerson(db);
      people.push({ person, conversationId: await makeMain(db, person) });
      await a.ask(person, 'Why?');
    }
    for (const status of ['QUEUED', 'FAILED'] as const) {
      for (const { person, conversationId } of people) {
        const { id } = await makeSandbox(db, person, conversationId, hostId);
        expect(await claimOne(db, conversationId, id)).to.be.an('object');
      }
      await run(db, sql.unsafe`update agent_run set lease_until = clock_timestamp() - interval '1 ms' where state = 'LEASED' returning 1`);
      together([a, b], 'ledger_reap');
      const counts = await Promise.all([a.actors.reap(), b.actors.reap()]);
      const rest = await a.actors.reap();
      expect(counts[0] + counts[1] + rest, 'each lease once').to.equal(30);
      const turns = await turnsOf(db);
      expect(turns.map((turn) => turn.status)).to.deep.equal(turns.map(() => status));
    }
    expect(await heldSlots(db)).to.equal(0);
    const told = [...a.changes, ...b.changes].filter((change) => change.sealedRunIds.length > 0);
    expect(told).to.have.length(60);
  });

  describe('a host of sandboxes', () => {
    const AT_ONCE = { settleMs: 0, suspectMs: 0 };
    const self = { id: uuidv7<'host'>(), predecessorOf: null };

    async function hostRow(id: HostId) {
      const [row] = await run(
        database.db,
        sql.unsafe`select suspected_at is not null as suspected, ended_at is not null as ended from sandbox_host where id = ${id}`,
      );
      return row;
    }

    it('is dead when its lock is free for two looks in a row, and what its sandboxes held is taken back at once', async () => {
      const { db, a, person } = await two();
      const conversationId = await makeMain(db, person);
      const dead = await makeHost(db);
      const { id } = await makeSandbox(db, person, conversationId, dead);
      const turnId = await a.ask(person, 'Why?');
      await claimOne(db, conversationId, id);
      expect(await endDeadHosts(db, self, { settleMs: 0, suspectMs: 60_000 })).to.equal(0);
      expect(await hostRow(dead)).to.deep.equal({ suspected: true, ended: false });
      expect(await endDeadHosts(db, self, { settleMs: 0, suspectMs: 60_000 }), 'too soon for a second look').to.equal(0);
      await run(db, sql.unsafe`update sandbox_host set suspected_at = clock_timestamp() - interval '61 s' where id = ${dead} returning 1`);
      expect(await endDeadHosts(db, self, { settleMs: 0, suspectMs: 60_000 })).to.equal(1);
      expect(await a.actors.reap()).to.equal(1);
      expect(await becomes(db, turnId, 'DONE')).to.include({ attempt: 2 });
    });

    it('is not dead while PostgreSQL has just started', async () => {
      const { db } = await two();
      const quiet = await makeHost(db);
      for (let look = 0; look < 3; look++) expect(await endDeadHosts(db, self, { settleMs: 3_600_000, suspectMs: 0 })).to.equal(0);
      expect(await hostRow(quiet)).to.deep.equal({ suspected: false, ended: false });
    });

    it('is dead at once when a newer boot of its name owns its data directory', async () => {
      const { db } = await two();
      const older = await makeHost(db, 'mine');
      const other = await makeHost(db, 'theirs');
      const newer = await makeHost(db, 'mine');
      expect(await endDeadHosts(db, { id: newer, predecessorOf: 'mine' }, { settleMs: 3_600_000, suspectMs: 3_600_000 })).to.equal(1);
      expect(await hostRow(older)).to.include({ ended: true });
      expect(await hostRow(other)).to.include({ ended: false });
      expect(await hostRow(newer)).to.include({ ended: false });
    });

    it('starts no sandbox once it was ended', async () => {
      const { db, a, clocks, person } = await two();
      await run(db, sql.unsafe`update sandbox_host set ended_at = clock_timestamp() where id = ${a.hostId} returning 1`);
      const turnId = await a.ask(person, 'Why?');
      for (let sweep = 0; sweep < 2; sweep++) await sweepOnce(a, clocks[0]);
      expect(a.host.starts).to.deep.equal([]);
      expect(await run(db, sql.unsafe`select id from sandbox`)).to.deep.equal([]);
      expect(await turnOf(db, turnId)).to.include({ status: 'QUEUED' });
    });

    it('is not dead while it holds its lock', async () => {
      const { db, a, b } = await two();
      for (let look = 0; look < 3; look++) expect(await endDeadHosts(db, self, AT_ONCE)).to.equal(0);
      for (const { hostId } of [a, b]) expect(await hostRow(hostId)).to.deep.equal({ suspected: false, ended: false });
    });
  });
});
