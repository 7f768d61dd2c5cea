/**
 * Two servers share the slots of one database: the first in claim order gets the slot, at whichever server its pull is parked, and gets to know
 * of it also when no word of it arrives (ADR 14). Time stands still unless a test moves it.
 */
import { expect } from 'chai';
import { sql } from '../../db/pool.ts';
import { heldSlots, openScene, playSandbox, type Server, until, useServers } from '../support/actors.ts';
import { useDatabase } from '../support/database.ts';
import { emptyLedger, makeHost, makeMain, makePerson, makeSandbox, run } from '../support/ledger.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { away, named } from '../support/steered-database.ts';
import { done } from '../support/stub-sandboxes.ts';

describe('a pull that waits at another server than the one that frees a slot', () => {
  const database = useDatabase();
  const start = useServers(database);
  beforeEach(() => emptyLedger(database.db));

  /** One slot. A runs a turn of one workspace and has more of it; the first in order is another workspace's, whose pull is parked at B. */
  async function scene() {
    const { db, server: a } = await openScene(start, database.db, { capacity: 1, sandboxesMax: 0 });
    const clock = new ManualClock();
    const b = await start({ clock, sandboxesMax: 0 });
    const flood = await playOne(a);
    const pull = await flood.parked();
    for (let n = 0; n < 3; n++) await a.ask(flood.person, `q${n}`);
    const busy = flood.attempt(await pull.answer);
    await a.runtime.readContext(busy); // else its sandbox is given the same run again
    const next = await flood.parked();
    const quiet = await playOne(b);
    const waiting = await quiet.parked();
    const turnId = await b.ask(quiet.person, 'Why?');
    await recorded(b, 1);
    // Time stands still for the servers; it does for what they wrote down, too.
    await run(db, sql.unsafe`update waiting_pull set open_until = open_until + interval '1 hour' returning host_id`);
    return { db, a, b, clock, flood, busy, next, quiet, waiting, turnId };
  }

  /** A person whose sandbox is played here. It runs on a machine of its own: no server misses its runner. */
  async function playOne(server: Server) {
    const { db } = database;
    const person = await makePerson(db);
    const conversationId = await makeMain(db, person);
    const { id: sandboxId } = await makeSandbox(db, person, conversationId, await makeHost(db));
    const sandbox = async () => ({ sandboxId, workspaceId: person.workspaceId, conversationId });
    return { person, conversationId, ...(await playSandbox({ ...server, sandbox }, person, conversationId)) };
  }

  /** Waits until the rows show this many waiting pulls of the server. */
  function recorded(server: Server, count: number): Promise<void> {
    return until(`${count} pulls are written down`, async () => {
      const [row] = await run(
        database.db,
        sql.unsafe`select coalesce(sum(cardinality(turn_ids)), 0)::int as n from waiting_pull where host_id = ${server.hostId}`,
      );
      return row?.['n'] === count;
    });
  }

  async function release(it: Awaited<ReturnType<typeof scene>>): Promise<void> {
    expect(await it.a.runtime.endTurn(it.busy, done('Because.'))).to.deep.equal({ kind: 'ended' });
    await until('the slot is taken again', async () => (await heldSlots(it.db)) === 1);
  }

  it('is answered at once, without a timer', async () => {
    const it = await scene();
    // B hears of the free slot and claims beside A. Each passes over what the other one looks at, so the slot could go to A's own pull this time.
    it.next.hangUp();
    await recorded(it.a, 0);
    it.a.tell(it.b);
    await release(it);
    const given = it.quiet.attempt(await it.waiting.answer);
    expect(await it.b.runtime.endTurn(given, done('Because.'))).to.deep.equal({ kind: 'ended' });
  });

  it('is answered by the next sweep of its server when every word of it is lost', async () => {
    const it = await scene();
    await release(it);
    await it.clock.advanceAsync(1_000);
    expect(await it.waiting.answer).to.include({ epoch: 1 });
    const [turn] = await run(it.db, sql.unsafe`select attempt from mentor_turn where id = ${it.turnId}`);
    expect(turn).to.deep.equal({ attempt: 1 });
  });

  it('is passed over once its client has hung up, and once its server stops claiming', async () => {
    for (const end of [
      (it: Awaited<ReturnType<typeof scene>>) => it.waiting.hangUp(),
      (it: Awaited<ReturnType<typeof scene>>) => it.b.actors.stopClaiming(),
    ]) {
      await emptyLedger(database.db);
      const it = await scene();
      end(it);
      await recorded(it.b, 0);
      await release(it);
      expect(await it.next.answer).to.be.an('object');
    }
  });

  it('keeps no slot from others when its server is killed', async () => {
    const it = await scene();
    it.b.db.before = () => {
      throw away(); // nothing of it reaches the database any more
    };
    await it.b.hostLock.close();
    await release(it);
    expect(await it.next.answer).to.be.an('object');
    it.b.db.before = () => undefined;
  });

  it('is given again when its server died after the grant and the sandbox pulls at another one', async () => {
    const it = await scene();
    await release(it); // granted to the pull at B, which hears nothing of it
    it.waiting.hangUp();
    const given = await it.a.runtime.claimNext(it.quiet.sandbox, 20_000, new AbortController().signal);
    expect(given).to.include({ epoch: 1 });
  });

  it('is granted to later when the claim of the server that asked was lost', async () => {
    const it = await scene();
    it.a.db.loseReplies(named('ledger_claim'));
    await release(it);
    await it.clock.advanceAsync(1_000);
    expect(await it.waiting.answer).to.include({ epoch: 1 });
  });
});
