/**
 * rule: R17
 * An operator reads an entry's words only with a reason that stays, and never words that are erased.
 */
import { expect } from 'chai';
import { eraseEntries } from '../../db/ledger/erase.ts';
import { REVEAL_MAX_CHARS, REVEAL_REPEAT_MS } from '../../db/ops/reveal.ts';
import { sql } from '../../db/pool.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import { useDatabase } from '../support/database.ts';
import { ask, emptyLedger, makeMain, makePerson, run } from '../support/ledger.ts';
import { useDesks } from '../support/operators.ts';
import { answer, claimed, endDone } from '../support/scene.ts';

const SECRET = 'where the key lies under the mat';
const order = (reason = 'they asked for help') => ({ reason, idempotencyKey: uuidv7() });

describe('revealing an entry', () => {
  const database = useDatabase();
  const open = useDesks(database);
  beforeEach(async () => {
    await emptyLedger(database.db);
    await run(database.db, sql.unsafe`truncate operator_action`);
  });
  const log = () => run(database.db, sql.unsafe`select * from operator_action order by id`);

  async function question(text = SECRET) {
    const person = await makePerson(database.db);
    const conversationId = await makeMain(database.db, person);
    return { person, conversationId, ...(await ask(database.db, person, conversationId, { text })), desk: await open() };
  }

  it('shows its words and leaves a row that says who and why, without the words', async () => {
    const { desk, entryId, conversationId } = await question();
    const preview = await desk.post(`entries/${entryId}/reveal?preview=true`);
    expect(preview.body).to.deep.include({ action: 'reveal-entry', allowed: true });
    expect(preview.text).to.include(`QUESTION, ${SECRET.length} bytes`).and.not.include(SECRET);
    expect(await log(), 'a preview is none').to.deep.equal([]);

    const { body, headers } = await desk.post(`entries/${entryId}/reveal`, order('they asked for help'));
    expect(body.entry).to.include({ id: entryId, conversationId, kind: 'QUESTION', seq: 1, text: SECRET, cut: false });
    expect(headers.get('cache-control')).to.equal('no-store');
    const rows = await log();
    expect(rows).to.have.length(1);
    expect(rows[0]).to.include({
      action: 'reveal-entry',
      target: entryId,
      operator: 'local',
      reason: 'they asked for help',
      state: 'DONE',
    });
    expect(JSON.stringify(rows)).to.not.include(SECRET);
    expect((await desk.get('actions')).body.actions[0]).to.include({ action: 'reveal-entry', target: entryId });
    expect((await desk.heph('actions')).said).to.match(/reveal-entry +\S+ +local +they asked for help/);
  });

  it('shows an answer as it is stored, too', async () => {
    const it = await claimed(database.db);
    const stored = answer(SECRET);
    await endDone(it, [stored]);
    const { body } = await (await open()).post(`entries/${stored.id}/reveal`, order());
    expect([body.entry.text, JSON.parse(body.entry.payload)]).to.deep.equal([SECRET, JSON.parse(stored.payload as string)]);
  });

  it('shows no word when its row cannot be written', async () => {
    const { desk, entryId } = await question();
    await run(database.db, sql.unsafe`alter table operator_action add constraint full_log check (false) not valid`);
    try {
      const { status, text } = await desk.post(`entries/${entryId}/reveal`, order());
      expect(status).to.equal(500);
      expect(text).to.not.include(SECRET);
    } finally {
      await run(database.db, sql.unsafe`alter table operator_action drop constraint full_log`);
    }
    expect(await log()).to.deep.equal([]);
  });

  it('shows nothing that is erased, or whose person asked to be', async () => {
    const { desk, entryId, person, conversationId } = await question();
    const next = await ask(database.db, person, conversationId, { text: SECRET });
    await database.db.transaction((tx) => eraseEntries(tx, { ids: [entryId], reach: person, graceMs: 1 }));
    const erased = await desk.post(`entries/${entryId}/reveal`, order());
    expect([erased.status, erased.body.code]).to.deep.equal([409, 'ACTION_REFUSED']);
    expect((await desk.post(`entries/${entryId}/reveal?preview=true`)).body.allowed).to.equal(false);
    await run(
      database.db,
      sql.unsafe`update account set erasure_requested_at = clock_timestamp() where id = ${person.accountId} returning 1`,
    );
    const asked = await desk.post(`entries/${next.entryId}/reveal`, order());
    expect([asked.status, asked.text.includes(SECRET)]).to.deep.equal([409, false]);
    expect(await log()).to.deep.equal([]);
  });

  it('shows them again for the same key for a while, with no second row, and for no other entry', async () => {
    const { desk, entryId, person, conversationId } = await question();
    const other = await ask(database.db, person, conversationId, { text: SECRET });
    const asked = order();
    await desk.post(`entries/${entryId}/reveal`, asked);
    const again = await desk.post(`entries/${entryId}/reveal`, asked);
    expect([again.body.entry.text, again.body.action.repeated]).to.deep.equal([SECRET, true]);
    const reused = await desk.post(`entries/${other.entryId}/reveal`, asked);
    expect([reused.body.code, reused.text.includes(SECRET)]).to.deep.equal(['KEY_REUSED', false]);
    expect(await log()).to.have.length(1);
    const aged = REVEAL_REPEAT_MS + 1_000;
    await run(database.db, sql.unsafe`update operator_action set created_at = created_at - ${aged}::int * interval '1 ms' returning 1`);
    expect((await desk.post(`entries/${entryId}/reveal`, asked)).body.code, 'later it is another look').to.equal('KEY_REUSED');
    await run(database.db, sql.unsafe`update operator_action set created_at = clock_timestamp(), operator = 'token:admin' returning 1`);
    expect((await desk.post(`entries/${entryId}/reveal`, asked)).body.code, 'and for another operator').to.equal('KEY_REUSED');
  });

  it('needs a reason and a key, and an entry', async () => {
    const { desk, entryId } = await question();
    for (const body of [
      {},
      { reason: 'x' },
      { idempotencyKey: 'x' },
      { reason: ' ', idempotencyKey: 'x' },
      { ...order(), reason: 'x'.repeat(501) },
    ])
      expect((await desk.post(`entries/${entryId}/reveal`, body)).status).to.equal(400);
    expect((await desk.post(`entries/${uuidv7()}/reveal`, order())).body.code).to.equal('ENTRY_NOT_FOUND');
    expect((await desk.post('entries/it/reveal', order())).body.code).to.equal('ENTRY_NOT_FOUND');
    expect((await desk.heph('entry', 'reveal', entryId)).said).to.include('--reason is missing');
    expect((await desk.heph('entry', 'reveal', entryId, '--reason', 'help')).said).to.include(SECRET);
  });

  for (const [what, length, cut] of [
    ['one character under the bound', REVEAL_MAX_CHARS - 1, false],
    ['at the bound', REVEAL_MAX_CHARS, false],
    ['one over it', REVEAL_MAX_CHARS + 1, true],
  ] as const) {
    it(`says whether it shows everything: ${what}`, async () => {
      const { desk, entryId } = await question();
      await run(database.db, sql.unsafe`update mentor_entry set text = repeat('x', ${length}::int) where id = ${entryId} returning 1`);
      const { entry } = (await desk.post(`entries/${entryId}/reveal`, order())).body;
      expect([entry.cut, entry.text.length]).to.deep.equal([cut, Math.min(length, REVEAL_MAX_CHARS)]);
    });
  }
});
