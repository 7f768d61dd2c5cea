/**
 * The web wire over real HTTP: the conversation, its pages, its turns and the read marker.
 */
import { expect } from 'chai';
import { reconcileSlots } from '../../db/ledger/slots.ts';
import { sql } from '../../db/pool.ts';
import { conversationSchema, entryPageSchema, turnSchema } from '../../src/contract/web.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import { useDatabase } from '../support/database.ts';
import { type HttpRig, useRigs } from '../support/http-rig.ts';
import { emptyLedger, makeMain, makePerson, run } from '../support/ledger.ts';

describe('a conversation on the web wire', () => {
  const database = useDatabase();
  const openRig = useRigs(database);
  let rig: HttpRig;
  beforeEach(async () => {
    await emptyLedger(database.db);
    await reconcileSlots(database.db, 4);
    rig = await openRig({ maxFollowUps: 2 });
  });

  it('has no conversation before the first question and shows it afterwards', async () => {
    const before = await rig.send('GET', 'conversation');
    expect([before.status, before.body.code]).to.deep.equal([404, 'CONVERSATION_NOT_FOUND']);
    const { body } = await rig.ask('Why?');
    const after = conversationSchema.parse((await rig.send('GET', 'conversation')).body);
    expect(after).to.include({ id: body.turn.conversationId, latestSeq: 1, lastReadAt: null });
    expect(after.turns.map(({ id }) => id)).to.deep.equal([body.turn.id]);
  });

  it('pages backwards by seq, without a gap and without a repeat', async () => {
    const conversationId = await makeMain(database.db, rig.person);
    await run(
      database.db,
      sql.unsafe`insert into mentor_entry (id, workspace_id, conversation_id, seq, kind, surface, text)
        select gen_random_uuid(), ${rig.person.workspaceId}, ${conversationId}, n, case when n % 5 = 0 then 'TOOL_RESULT' else 'QUESTION' end,
          'app', 'entry ' || n from generate_series(1, 23) n returning id`,
    );
    const seen: number[] = [];
    let before: number | null = null;
    do {
      const query: string = before === null ? '?limit=7' : `?limit=7&before=${before}`;
      const page = entryPageSchema.parse((await rig.send('GET', `conversations/${conversationId}/entries${query}`)).body);
      seen.unshift(...page.entries.map(({ seq }) => seq));
      before = page.nextBefore;
    } while (before !== null);
    const shown = Array.from({ length: 23 }, (_, at) => at + 1).filter((seq) => seq % 5 !== 0);
    expect(seen).to.deep.equal(shown);
  });

  it('shows an erased entry as an empty place', async () => {
    const { body } = await rig.ask('secret');
    await run(
      database.db,
      sql.unsafe`update mentor_entry set text = null, search_text = null, erased_at = now() where id = ${body.entry.id} returning id`,
    );
    const { body: page } = await rig.send('GET', `conversations/${body.turn.conversationId}/entries`);
    expect(page.entries[0]).to.include({ text: '', kind: 'question' });
    expect(page.entries[0].parts).to.deep.equal([]);
    expect(page.entries[0].erasedAt).to.be.a('string');
  });

  for (const query of ['limit=0', 'limit=201', 'limit=x', 'limit=1&limit=2', 'before=0', 'before=-1', 'before=1e3', 'before=']) {
    it(`refuses the page query ${query}`, async () => {
      const { status, body } = await rig.send('GET', `conversations/${uuidv7()}/entries?${query}`);
      expect([status, body.code]).to.deep.equal([400, 'BAD_REQUEST']);
    });
  }

  it('stops a turn that waits, says so again when it is repeated, and refuses a turn that has ended', async () => {
    const { body } = await rig.ask('Why?');
    const stop = (id: string) => rig.send('PATCH', `turns/${id}/status`, { body: { status: 'STOPPED' } });
    const stopped = await stop(body.turn.id);
    expect(stopped.status).to.equal(200);
    expect(turnSchema.parse(stopped.body).status).to.equal('STOPPED');
    expect((await stop(body.turn.id)).body).to.deep.equal(stopped.body);

    const sandbox = await rig.sandbox(body.turn.conversationId);
    const second = await rig.ask('And now?');
    const { body: pulled } = await sandbox.next(5_000);
    await sandbox.answer(pulled.run, 'Because.');
    const late = await stop(second.body.turn.id);
    expect(late.status).to.equal(409);
    expect(late.body).to.include({ code: 'TURN_ALREADY_ENDED', turnStatus: 'DONE' });
    expect(late.body.detail).to.match(/DONE/);
  });

  it('refuses to set a turn to anything but STOPPED', async () => {
    const { body } = await rig.ask('Why?');
    const answer = await rig.send('PATCH', `turns/${body.turn.id}/status`, { body: { status: 'DONE' } });
    expect([answer.status, answer.body.code]).to.deep.equal([400, 'BAD_REQUEST']);
  });

  it('says which turns wait for a free slot and in which position', async () => {
    await reconcileSlots(database.db, 1);
    const { body: first } = await rig.ask('one');
    const sandbox = await rig.sandbox(first.turn.conversationId);
    await sandbox.next(5_000);
    const other = await openRig({ person: await makePerson(database.db, rig.person.workspaceId) });
    const { body: second } = await other.ask('two');
    expect(second.turn).to.include({ status: 'QUEUED', waitingFor: 'FREE_HEPH', position: 1 });
    const { body: behind } = await rig.ask('behind the running one');
    expect(behind.turn, 'it waits behind its own conversation, not for a slot').to.include({ waitingFor: null, position: null });
  });

  it('moves the read marker forward only, and not into the future', async () => {
    const none = await rig.send('PUT', 'conversation/read', { body: { lastReadAt: '2026-01-01T00:00:00.000Z' } });
    expect([none.status, none.body.code]).to.deep.equal([404, 'CONVERSATION_NOT_FOUND']);
    await rig.ask('Why?');
    const put = async (lastReadAt: string) => (await rig.send('PUT', 'conversation/read', { body: { lastReadAt } })).body.lastReadAt;
    expect(await put('2026-01-02T00:00:00.000Z')).to.equal('2026-01-02T00:00:00.000Z');
    expect(await put('2026-01-01T00:00:00.000Z')).to.equal('2026-01-02T00:00:00.000Z');
    const [row] = await run(database.db, sql.unsafe`select clock_timestamp() as now`);
    const far = await put('9999-01-01T00:00:00.000Z');
    expect(Date.parse(far)).to.be.lessThan(Date.parse(String(row?.['now'])) + 60_000);
    for (const lastReadAt of ['yesterday', '0000-01-01T00:00:00.000Z', 7]) {
      const bad = await rig.send('PUT', 'conversation/read', { body: { lastReadAt } });
      expect([bad.status, bad.body.code], String(lastReadAt)).to.deep.equal([400, 'BAD_REQUEST']);
    }
  });

  it('writes nothing for an account whose erasure was requested', async () => {
    // rule: R12
    await rig.ask('Why?');
    await run(database.db, sql.unsafe`update account set erasure_requested_at = now() where id = ${rig.person.accountId} returning id`);
    const asked = await rig.ask('Again?');
    const read = await rig.send('PUT', 'conversation/read', { body: { lastReadAt: '2026-01-01T00:00:00.000Z' } });
    expect([asked.status, asked.body.code, read.status, read.body.code]).to.deep.equal([410, 'PERSON_ERASED', 410, 'PERSON_ERASED']);
  });

  it('answers an unknown path with 404 and a wrong method with 405 and Allow, both as problems', async () => {
    const unknown = await rig.send('GET', '/nothing/here');
    expect([unknown.status, unknown.body.code]).to.deep.equal([404, 'NOT_FOUND']);
    const wrong = await rig.send('DELETE', 'questions');
    expect([wrong.status, wrong.body.code, wrong.headers.get('allow')]).to.deep.equal([405, 'METHOD_NOT_ALLOWED', 'POST']);
    expect((await rig.send('POST', 'conversation')).headers.get('allow')).to.equal('GET, HEAD');
    for (const { body } of [unknown, wrong]) {
      expect(body).to.have.all.keys('type', 'title', 'status', 'code', 'detail', 'retry', 'instance');
      expect(body.instance).to.match(/^urn:uuid:/);
    }
  });
});
