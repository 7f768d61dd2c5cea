/**
 * Fair order when slots are scarce: a workspace that floods does not keep a quiet one waiting, and no slot stays free meanwhile. Pulls are
 * parked at one, two or three servers (ADR 14); a server is what its claims and its session lock show of it.
 */
import { expect } from 'chai';
import { HostLock } from '../../db/host-lock.ts';
import { claimTurns, type Grant, type Offer, PULL_TTL_MS } from '../../db/ledger/claim.ts';
import { loadConversation } from '../../db/ledger/conversation.ts';
import { endTurn } from '../../db/ledger/end-turn.ts';
import { forgetPulls } from '../../db/ledger/placed.ts';
import { endSandbox } from '../../db/ledger/sandboxes.ts';
import { countSlots, reconcileSlots } from '../../db/ledger/slots.ts';
import { stopTurn } from '../../db/ledger/stop.ts';
import { sql } from '../../db/pool.ts';
import type { HostId } from '../../src/kernel/ids.ts';
import { silentLog } from '../../src/kernel/log.ts';
import { useDatabase } from '../support/database.ts';
import { ask, emptyLedger, makeHost, makeMain, makePerson, makeSandbox, type Person, run, TIMES } from '../support/ledger.ts';
import { answer } from '../support/scene.ts';

const CAPACITY = 4;
/** What the design promises a quiet workspace. */
const RELEASES_MAX = 2;
/** 1,000 turns each. */
const FLOODS = [
  { conversations: 200, each: 5 },
  { conversations: 1, each: 1_000 },
] as const;

/** A server: the pulls that are parked there. */
interface Server {
  readonly hostId: HostId;
  readonly lock: HostLock;
  readonly offers: Offer[];
}

type Attempt = Pick<Grant, 'runId' | 'epoch' | 'sandboxId' | 'conversationId'>;

describe('a quiet workspace beside one that floods', function () {
  this.timeout(240_000);
  const database = useDatabase();
  const locks: HostLock[] = [];
  beforeEach(() => emptyLedger(database.db));
  afterEach(async () => {
    await Promise.all(locks.splice(0).map((lock) => lock.close()));
  });

  async function makeServer(): Promise<Server> {
    const hostId = await makeHost(database.db);
    const [row] = await run(database.db, sql.unsafe`select lock_key from sandbox_host where id = ${hostId}`);
    const lock = await HostLock.take(database.url, Number(row?.['lock_key']), silentLog);
    locks.push(lock);
    return { hostId, lock, offers: [] };
  }

  const claim = (server: Server) => claimTurns(database.db, server, TIMES);

  /** Questions of one person, whose sandbox waits at the server. */
  async function asks(person: Person, count: number, server: Server): Promise<Offer> {
    const { db } = database;
    const conversationId = await makeMain(db, person);
    for (let n = 0; n < count; n++) await ask(db, person, conversationId, { maxFollowUps: count });
    const offer = { conversationId, sandboxId: (await makeSandbox(db, person, conversationId, server.hostId)).id };
    server.offers.push(offer);
    return offer;
  }

  /** `conversations` conversations of one workspace with `each` questions in every one, spread over the servers. */
  async function flood(servers: readonly Server[], { conversations, each }: { conversations: number; each: number }): Promise<void> {
    const first = await makePerson(database.db);
    const others = Array.from({ length: conversations - 1 }, () => makePerson(database.db, first.workspaceId));
    const people = [first, ...(await Promise.all(others))];
    await Promise.all(people.map((person, n) => asks(person, each, servers[n % servers.length] as Server)));
  }

  /** What runs now, at whichever server it was granted. */
  async function leased(): Promise<readonly Attempt[]> {
    const rows = await run(database.db, sql.unsafe`select id, epoch, sandbox_id, conversation_id from agent_run where state = 'LEASED'`);
    return rows.map((row) => ({
      runId: row['id'] as Attempt['runId'],
      epoch: Number(row['epoch']),
      sandboxId: row['sandbox_id'] as Attempt['sandboxId'],
      conversationId: row['conversation_id'] as Attempt['conversationId'],
    }));
  }

  async function release(grant: Attempt): Promise<void> {
    const { db } = database;
    const { runId, epoch, sandboxId, conversationId } = grant;
    const version = (await loadConversation(db, conversationId))?.version ?? -1;
    await endTurn(db, { runId, epoch, sandboxId, conversationId, version, status: 'DONE', error: null, entries: [answer()] });
  }

  const held = async () => (await countSlots(database.db)).held;

  /** What runs after the flood: as many turns as there are slots, or as it has conversations. */
  async function running(servers: readonly Server[]): Promise<Grant[]> {
    const grants: Grant[] = [];
    for (const server of servers) grants.push(...(await claim(server)).grants);
    return grants;
  }

  /** Slot releases until the quiet workspace has its slot. After each one only `asking` claims: the server that floods. */
  async function releasesUntilServed(asking: Server, quiet: Offer, grants: Grant[]): Promise<number> {
    const used = await held();
    for (let releases = 0; ; releases++) {
      const fresh = (await claim(asking)).grants;
      grants.push(...fresh);
      if (fresh.some((grant) => grant.conversationId === quiet.conversationId)) return releases;
      expect(await held(), 'no slot stays free while somebody waits').to.equal(used);
      const oldest = grants.shift();
      if (!oldest) throw new Error('nothing runs');
      await release(oldest);
    }
  }

  for (const servers of [1, 2, 3])
    for (const size of FLOODS)
      it(`waits at most 2 slot releases: 1,000 turns of ${size.conversations} conversations, pulls at ${servers} servers`, async () => {
        const capacity = Math.min(CAPACITY, size.conversations);
        await reconcileSlots(database.db, capacity);
        const all: Server[] = [];
        for (let n = 0; n < servers; n++) all.push(await makeServer());
        const flooding = servers === 1 ? all : all.slice(1);
        await flood(flooding, size);
        const grants = await running(flooding);
        expect(grants).to.have.length(capacity);
        const quiet = await asks(await makePerson(database.db), 1, all[0] as Server);
        expect((await claim(all[0] as Server)).grants, 'every slot is taken').to.deep.equal([]);
        expect(await releasesUntilServed(flooding.at(-1) as Server, quiet, grants)).to.be.at.most(RELEASES_MAX);
        expect(await held()).to.equal(capacity);
      });

  it('is the next one when as many workspaces flood as there are slots', async () => {
    await reconcileSlots(database.db, 2);
    const server = await makeServer();
    for (let workspace = 0; workspace < 2; workspace++) await flood([server], { conversations: 3, each: 2 });
    const grants = [...(await claim(server)).grants];
    const quiet = await asks(await makePerson(database.db), 1, server);
    expect(await releasesUntilServed(server, quiet, grants)).to.equal(1);
  });

  it('takes the oldest question first within one workspace, at whichever server its pull waits', async () => {
    await reconcileSlots(database.db, 1);
    const [here, there] = [await makeServer(), await makeServer()];
    const first = await makePerson(database.db);
    const asked: string[] = [];
    for (const server of [here, there, here, there]) {
      const person = await makePerson(database.db, first.workspaceId);
      asked.push((await asks(person, 1, server)).conversationId);
    }
    const order: string[] = [];
    await claim(here);
    for (let n = 0; n < 4; n++) {
      await claim(there);
      const [now] = await leased();
      if (!now) throw new Error('nothing runs');
      order.push(now.conversationId);
      await release(now);
    }
    expect(order).to.deep.equal(asked);
  });

  describe('a pull that waits at another server', () => {
    /** One slot, held; a question waits at `there` and an older one of nobody's: what `here` claims after the release goes to `there`. */
    async function scene() {
      await reconcileSlots(database.db, 1);
      const [here, there] = [await makeServer(), await makeServer()];
      await asks(await makePerson(database.db), 3, here);
      const [busy] = (await claim(here)).grants;
      if (!busy) throw new Error('nothing was granted');
      const person = await makePerson(database.db);
      const quiet = await asks(person, 1, there);
      await claim(there);
      return { here, there, person, quiet, busy };
    }

    async function servedByHere(it: Awaited<ReturnType<typeof scene>>): Promise<string | undefined> {
      await release(it.busy);
      const { grants } = await claim(it.here);
      expect(await held(), 'the slot is in use at once').to.equal(1);
      return grants[0]?.conversationId;
    }

    it('is granted by whichever server asks, and once', async () => {
      const it = await scene();
      expect(await servedByHere(it)).to.equal(it.quiet.conversationId);
      expect((await claim(it.there)).grants).to.deep.equal([]);
      expect(await run(database.db, sql.unsafe`select host_id from waiting_pull where host_id = ${it.there.hostId}`)).to.deep.equal([]);
    });

    it('blocks nobody once its server is dead', async () => {
      const it = await scene();
      await it.there.lock.close(); // PostgreSQL frees the lock with the connection
      expect(await servedByHere(it)).to.equal(it.here.offers[0]?.conversationId);
    });

    it('blocks nobody once its server has not asked for as long as a pull is good, and is there again when it asks', async () => {
      const late = async (ms: number) =>
        run(database.db, sql.unsafe`update waiting_pull set open_until = open_until - ${ms} * interval '1 ms' returning host_id`);
      for (const [passed, served] of [
        [PULL_TTL_MS - 1_000, 'quiet'],
        [PULL_TTL_MS, 'busy'],
      ] as const) {
        await emptyLedger(database.db);
        const it = await scene();
        await late(passed);
        const offer = served === 'quiet' ? it.quiet : it.here.offers[0];
        expect(await servedByHere(it)).to.equal(offer?.conversationId);
      }
      await emptyLedger(database.db);
      const it = await scene();
      await late(PULL_TTL_MS);
      await forgetPulls(database.db);
      expect(await run(database.db, sql.unsafe`select host_id from waiting_pull`)).to.deep.equal([]);
      await claim(it.there);
      expect(await servedByHere(it)).to.equal(it.quiet.conversationId);
    });

    it('is not granted once it was given up, its sandbox ended, or its question was stopped', async () => {
      const ends = [
        async (it: Awaited<ReturnType<typeof scene>>) => {
          it.there.offers.splice(0);
          await claim(it.there);
        },
        async (it: Awaited<ReturnType<typeof scene>>) => endSandbox(database.db, it.quiet.sandboxId),
        async ({ quiet: { conversationId } }: Awaited<ReturnType<typeof scene>>) => {
          const rows = await loadConversation(database.db, conversationId);
          const turnId = rows?.queued[0]?.turnId;
          if (!rows || !turnId) throw new Error('nothing is queued');
          await stopTurn(database.db, { conversationId, version: rows.version, turnId, graceMs: TIMES.graceMs });
        },
      ];
      for (const end of ends) {
        await emptyLedger(database.db);
        const it = await scene();
        await end(it);
        expect(await servedByHere(it)).to.equal(it.here.offers[0]?.conversationId);
      }
    });

    it('is not granted the next question of its conversation once it was answered', async () => {
      const it = await scene();
      expect(await servedByHere(it)).to.equal(it.quiet.conversationId);
      for (const attempt of await leased()) await release(attempt);
      await ask(database.db, it.person, it.quiet.conversationId); // its sandbox has not pulled again yet
      const { grants } = await claim(it.here);
      expect(grants.map((one) => one.conversationId)).to.deep.equal([it.here.offers[0]?.conversationId]);
    });

    it('is written down only while it waits for a slot', async () => {
      await reconcileSlots(database.db, 2);
      const server = await makeServer();
      await asks(await makePerson(database.db), 1, server);
      expect((await claim(server)).grants).to.have.length(1);
      await claim(server);
      expect(await run(database.db, sql.unsafe`select host_id from waiting_pull`)).to.deep.equal([]);
    });
  });
});
