/**
 * Sandboxes that outlive their server: which server answers for one, and what becomes of those that no server wants.
 */
import { expect } from 'chai';
import { followSandboxes, installationId, liveAmong } from '../../db/ledger/outliving.ts';
import { endDeadHosts, endHost, endSandbox, insertSandbox } from '../../db/ledger/sandboxes.ts';
import { sql } from '../../db/pool.ts';
import { type HostId, uuidv7 } from '../../src/kernel/ids.ts';
import { useDatabase } from '../support/database.ts';
import { ask, claimOne, emptyLedger, makeHost, makeMain, makePerson, makeSandbox, run } from '../support/ledger.ts';

const FAR = { settleMs: 3_600_000, suspectMs: 3_600_000 };

describe('a sandbox that outlives its server', () => {
  const database = useDatabase();
  beforeEach(() => emptyLedger(database.db));

  async function outliving(hostId: HostId) {
    const { db } = database;
    const person = await makePerson(db);
    const conversationId = await makeMain(db, person);
    const id = uuidv7<'sandbox'>();
    const credentialHash = Buffer.from(id.replaceAll('-', '').repeat(2), 'hex');
    await insertSandbox(db, { id, conversationId, workspaceId: person.workspaceId, hostId, credentialHash, outlivesHost: true });
    return { id, conversationId, person };
  }

  const idsOf = async (hostId: HostId) => (await followSandboxes(database.db, hostId)).map(({ sandboxId }) => sandboxId);

  it('stays alive when its server ends, and is taken over by one of two others that look at the same moment', async () => {
    const { db } = database;
    const [gone, a, b] = [await makeHost(db), await makeHost(db), await makeHost(db)];
    const boxes = [await outliving(gone), await outliving(gone), await outliving(gone)];
    expect(await idsOf(a), 'of a server that is there').to.deep.equal([]);
    await endHost(db, gone);
    const taken = (await Promise.all([idsOf(a), idsOf(b)])).flat();
    const rest = [...(await idsOf(a)), ...(await idsOf(b))];
    expect(taken).to.have.length(new Set(taken).size);
    expect(rest).to.have.members(boxes.map(({ id }) => id));
  });

  it('is not taken over from a server that lives, nor by one that was itself taken for dead', async () => {
    const { db } = database;
    const [gone, alive, dead] = [await makeHost(db), await makeHost(db), await makeHost(db)];
    const [left, kept] = [await outliving(gone), await outliving(alive)];
    await endHost(db, gone);
    await endHost(db, dead);
    expect(await idsOf(dead)).to.deep.equal([]);
    const self = await makeHost(db);
    expect(await idsOf(self)).to.deep.equal([left.id]);
    expect(await idsOf(alive)).to.deep.equal([kept.id]);
  });

  it('keeps its run, and its lease, when its server is replaced; a local one loses it', async () => {
    const { db } = database;
    const [older, newer] = [await makeHost(db, 'mine'), await makeHost(db, 'mine')];
    const box = await outliving(older);
    await ask(db, box.person, box.conversationId);
    await claimOne(db, box.conversationId, box.id);
    const person = await makePerson(db);
    const local = await makeSandbox(db, person, await makeMain(db, person), older);
    expect(await endDeadHosts(db, { id: newer, predecessorOf: 'mine' }, FAR)).to.equal(1);
    expect(await followSandboxes(db, newer)).to.deep.equal([{ sandboxId: box.id, conversationId: box.conversationId, busy: true }]);
    expect(await liveAmong(db, [box.id, local.id, uuidv7()])).to.deep.equal(new Set([box.id]));
  });

  it('ends when no server has wanted it for two minutes, and not before', async () => {
    const { db } = database;
    const [gone, other] = [await makeHost(db), await makeHost(db)];
    const box = await outliving(gone);
    await endHost(db, gone);
    const self = { id: other, predecessorOf: null };
    const ago = (seconds: number) =>
      run(
        db,
        sql.unsafe`update sandbox_host set ended_at = clock_timestamp() - ${seconds} * interval '1 s' where id = ${gone} returning 1`,
      );
    await ago(110);
    await endDeadHosts(db, self, FAR);
    expect(await liveAmong(db, [box.id])).to.deep.equal(new Set([box.id]));
    await ago(121);
    await endDeadHosts(db, self, FAR);
    expect(await liveAmong(db, [box.id])).to.deep.equal(new Set());
  });

  it('is nobody’s when it has ended', async () => {
    const { db } = database;
    const host = await makeHost(db);
    const box = await outliving(host);
    await endSandbox(db, box.id);
    expect(await followSandboxes(db, host)).to.deep.equal([]);
  });

  it('carries the same installation for ever', async () => {
    expect(await installationId(database.db)).to.equal(await installationId(database.db));
    await run(database.db, sql.unsafe`insert into installation default values returning 1`).catch(() => null);
    expect(await run(database.db, sql.unsafe`select id from installation`)).to.have.length(1);
  });
});
