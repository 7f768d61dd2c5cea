/**
 * Everything at once, and things that break: each accepted question ends exactly once, in its order, never more of them at a time than there
 * are slots, whatever dies on the way. What each commit left is read from the database's own change log.
 * cases: M1, M3
 */
import { expect } from 'chai';
import { reconcileSlots } from '../../db/ledger/slots.ts';
import { type Database, sql } from '../../db/pool.ts';
import type { Change } from '../../src/contract/changes.ts';
import { pause, systemClock, type Timer } from '../../src/kernel/clock.ts';
import { RuntimeFault } from '../../src/kernel/faults.ts';
import { type TurnId, uuidv7 } from '../../src/kernel/ids.ts';
import { heldSlots, type Server, type TurnFacts, turnOf, turnsOf, until, useServers } from '../support/actors.ts';
import { openTestDatabase, useDatabase } from '../support/database.ts';
import { emptyLedger, makeHost, makeMain, makePerson, type Person, run } from '../support/ledger.ts';
import { useAudit } from '../support/ledger-audit.ts';
import { STORM_DEADLINE_MS, Storm } from '../support/ledger-storm.ts';
import { bindModel } from '../support/models.ts';
import { away } from '../support/steered-database.ts';
import { answerAtOnce, done, type TurnScript } from '../support/stub-sandboxes.ts';

describe('the ledger in a storm', function () {
  this.timeout(90_000);
  const startAudit = useAudit();
  const database = useDatabase();
  beforeEach(() => emptyLedger(database.db));

  /** Each session tells its numbers when it ends. */
  async function deadlocks(): Promise<number> {
    const [row] = await run(database.db, sql.unsafe`select deadlocks from pg_stat_database where datname = current_database()`);
    return Number(row?.['deadlocks']);
  }

  it('has no deadlock and no disagreement when all statements run over the same rows from all sides', async function () {
    // rule: R1, R3, R4, R5, R6, R7, R8, R9, R15
    const { db, url } = database;
    const audit = await startAudit(this, url, { capacity: 3, deadlineMs: STORM_DEADLINE_MS });
    await reconcileSlots(db, 3);
    const places = [];
    for (let n = 0; n < 6; n++) {
      const person = await makePerson(db);
      places.push({ person, conversationId: await makeMain(db, person) });
    }
    await bindModel(db, { timeoutMs: STORM_DEADLINE_MS });
    const storm = new Storm(places, await makeHost(db));
    const before = await deadlocks();
    const clients: Database[] = [];
    for (let n = 0; n < 8; n++) clients.push(await openTestDatabase(url, 1));
    await Promise.all(clients.map((client) => storm.client(client, 1_250)));
    await Promise.all(clients.map((client) => client.close()));
    for (const name of ['submit', 'claim', 'refuse', 'stop', 'call', 'note', 'renew', 'end', 'handOn', 'reap', 'endIdle', 'sandbox']) {
      expect(storm.done, 'it was a storm').to.have.property(name).that.is.above(10);
    }
    expect(await deadlocks(), 'a retried deadlock is one, too').to.equal(before);
    expect(await audit.violations()).to.deep.equal([]);
    expect(audit.commits).to.be.above(1_000);
  });
});

const CAPACITY = 4;
const ENDED = new Set(['DONE', 'STOPPED', 'FAILED']);
const chance = (probability: number) => Math.random() < probability;

/** Works like any other, but dies or hands on at any of its steps. */
const mortal: TurnScript = async (turn) => {
  const fate = () => {
    if (chance(0.04)) turn.die();
  };
  fate();
  const context = await turn.context();
  if (context === null) return;
  fate();
  await turn.partial('half of ');
  if (chance(0.06)) return void (await turn.handOn());
  fate();
  await turn.end(done(`Answer to ${context.prompt}`));
  fate();
};

describe('two servers with sandboxes that die', function () {
  this.timeout(120_000);
  const startAudit = useAudit();
  const database = useDatabase();
  const start = useServers(database);
  const pools: Database[] = [];
  const timers: Timer[] = [];
  afterEach(async () => {
    for (const timer of timers.splice(0)) timer.cancel();
    await Promise.all(pools.splice(0).map((pool) => pool.close()));
  });

  /** Words between the servers get lost; what was missed is found by the versions, as src/live does it. */
  function connect(servers: readonly Server[]): void {
    for (const [n, server] of servers.entries()) {
      const other = servers[1 - n] as Server;
      server.publishes = (change) => void (chance(0.8) && setImmediate(() => other.actors.changed(change)));
      timers.push(systemClock.every(200, () => void catchUp(server).catch(() => undefined))); // the database may be away
    }
  }

  async function catchUp({ actors }: Server): Promise<void> {
    const ids = sql.array([...actors.activeConversationIds()], 'uuid');
    const rows = await run(
      database.db,
      sql.unsafe`select id, workspace_id, account_id, version from mentor_conversation where id = any(${ids})`,
    );
    for (const row of rows) {
      const { id: conversationId, workspace_id: workspaceId, account_id: accountId, version } = row;
      const none = { turnIds: [], entryIds: [], sealedRunIds: [], slots: true };
      actors.changed({ ...none, conversationId, workspaceId, accountId, version } as unknown as Change);
    }
  }

  async function twoServers(script: TurnScript) {
    await reconcileSlots(database.db, CAPACITY);
    const servers: Server[] = [];
    for (let n = 0; n < 2; n++) {
      const pool = await openTestDatabase(database.url, 6);
      pools.push(pool);
      servers.push(await start({ script, sweepMs: 200, sandboxesMax: 6, maxFollowUps: 10 }, pool));
    }
    connect(servers);
    const any = () => servers[Math.floor(Math.random() * 2)] as Server;
    return { servers, any };
  }

  /** A person repeats a question until it is accepted, and then, perhaps, stops it. */
  async function insist(any: () => Server, [person, text]: readonly [Person, string], stops: number): Promise<TurnId> {
    const requestId = uuidv7();
    const turnId = await patiently(() => any().ask(person, text, { requestId }));
    if (chance(stops)) await patiently(() => any().runtime.stopTurn(person, turnId));
    return turnId;
  }

  async function allEnd(count: number): Promise<readonly TurnFacts[]> {
    let turns: readonly TurnFacts[] = [];
    await until(
      'every question has ended',
      async () => {
        turns = await turnsOf(database.db);
        return turns.length === count && turns.every((turn) => ENDED.has(turn.status) && turn.state === 'ENDED');
      },
      90_000,
    );
    return turns;
  }

  it('end each of 120 questions exactly once, in order, at most 4 at a time', async function () {
    // rule: R1, R3, R4, R5, R6
    const { db, url } = database;
    const audit = await startAudit(this, url, { capacity: CAPACITY });
    const { servers, any } = await twoServers(mortal);
    for (const server of servers) {
      server.db.before = () => lose(0.01);
      server.db.after = () => lose(0.01); // what was written is written
    }
    const asked = new Map<string, string>();
    const conversations = Array.from({ length: 40 }, async (_, n) => {
      const person = await makePerson(db);
      for (let q = 0; q < 3; q++) {
        const text = `question ${n}.${q}`;
        asked.set(await insist(any, [person, text], 0.15), text);
      }
    });
    await Promise.all(conversations);
    const turns = await allEnd(120);
    expect(await audit.violations()).to.deep.equal([]);
    const steps = await audit.steps();
    for (const turn of turns) {
      const ends = steps.get(turn.id)?.filter((status) => ENDED.has(status));
      expect(ends, 'exactly one end').to.deep.equal([turn.status]);
      const answer = `Answer to ${asked.get(turn.id)}`;
      if (turn.status === 'DONE') expect(turn.answers).to.deep.equal([answer]);
      else if (turn.status === 'FAILED') expect(turn).to.deep.include({ attempt: 2, answers: [] });
      else expect([[], [answer]]).to.deep.include(turn.answers);
    }
    expect(turns.filter((turn) => turn.status === 'DONE').length).to.be.above(60);
    expect(await heldSlots(db)).to.equal(0);
  });

  it('live on and lose nothing when every connection to PostgreSQL is cut again and again', async function () {
    // rule: R2, R5
    const { db, url } = database;
    await emptyLedger(db);
    const audit = await startAudit(this, url, { capacity: CAPACITY });
    const { servers, any } = await twoServers(answerAtOnce);
    const admin = await openTestDatabase(url, 1);
    let cuts = 0;
    timers.push(
      systemClock.every(150, () => {
        if (cuts >= 12) return;
        cuts += 1;
        void run(
          admin,
          sql.unsafe`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`,
        );
      }),
    );
    const asked = new Map<string, string>();
    const conversations = Array.from({ length: 12 }, async (_, n) => {
      const person = await patiently(() => makePerson(admin));
      for (let q = 0; q < 6 || cuts < 12; q++) {
        const text = `question ${n}.${q}`;
        const turnId = await insist(any, [person, text], 0);
        asked.set(turnId, text);
        await until('it has ended', async () => ENDED.has((await patiently(() => turnOf(admin, turnId))).status), 60_000);
      }
    });
    await Promise.all(conversations);
    await until('all locks are held again', () => servers.every(({ hostLock }) => hostLock.held));
    const turns = await turnsOf(admin);
    expect(turns).to.have.length(asked.size);
    for (const turn of turns) {
      expect(turn, 'no attempt is burnt by a lost connection').to.deep.include({
        status: 'DONE',
        attempt: 1,
        answers: [`Answer to ${asked.get(turn.id)}`],
      });
    }
    expect(await heldSlots(admin)).to.equal(0);
    const [dead] = await run(admin, sql.unsafe`select count(*)::int as n from sandbox_host where ended_at is not null`);
    expect(dead).to.deep.equal({ n: 0 });
    expect(await audit.violations()).to.deep.equal([]);
    await admin.close();
  });
});

function lose(probability: number): void {
  if (chance(probability)) throw away();
}

/** Repeats what the server could not do now. */
async function patiently<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 0; ; tries++) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof RuntimeFault) || !['DATABASE_UNAVAILABLE', 'BUSY'].includes(error.code) || tries > 1_000) throw error;
      await pause(systemClock, 5);
    }
  }
}
