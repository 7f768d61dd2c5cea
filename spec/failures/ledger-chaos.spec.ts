/**
 * Everything at once, and things that break: each accepted question ends exactly once, in its order, never more of them at a time than there
 * are slots, whatever dies on the way.
 */
import { expect } from 'chai';
import { reconcileSlots } from '../../db/ledger/slots.ts';
import { type Database, sql } from '../../db/pool.ts';
import { openTestDatabase, useDatabase } from '../support/database.ts';
import { emptyLedger, makeHost, makeMain, makePerson, run } from '../support/ledger.ts';
import { Storm } from '../support/ledger-storm.ts';

describe('the ledger in a storm', function () {
  this.timeout(90_000);
  const database = useDatabase();
  beforeEach(() => emptyLedger(database.db));

  /** Each session tells its numbers when it ends. */
  async function deadlocks(): Promise<number> {
    const [row] = await run(database.db, sql.unsafe`select deadlocks from pg_stat_database where datname = current_database()`);
    return Number(row?.['deadlocks']);
  }

  it('has no deadlock and no disagreement when all statements run over the same rows from all sides', async () => {
    const { db, url } = database;
    await reconcileSlots(db, 3);
    const places = [];
    for (let n = 0; n < 6; n++) {
      const person = await makePerson(db);
      places.push({ person, conversationId: await makeMain(db, person) });
    }
    const storm = new Storm(places, await makeHost(db));
    const before = await deadlocks();
    const clients: Database[] = [];
    for (let n = 0; n < 8; n++) clients.push(await openTestDatabase(url, 1));
    await Promise.all(clients.map((client) => storm.client(client, 1_250)));
    await Promise.all(clients.map((client) => client.close()));
    for (const name of ['submit', 'claim', 'stop', 'call', 'note', 'renew', 'end', 'handOn', 'reap', 'endIdle', 'sandbox']) {
      expect(storm.done, 'it was a storm').to.have.property(name).that.is.above(10);
    }
    console.log(JSON.stringify(storm.done), await deadlocks() - before);
    expect(await deadlocks(), 'a retried deadlock is one, too').to.equal(before);
  });
});
