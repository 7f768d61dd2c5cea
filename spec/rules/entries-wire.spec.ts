/**
 * Owns: proof of the routes that search, vote on and erase messages, for the person and for the sandbox, and of what other tabs hear of it.
 * Does not own: what a search finds (search.spec.ts), what an erasure takes along (erase.spec.ts).
 */
import { expect } from 'chai';
import { reconcileSlots } from '../../db/ledger/slots.ts';
import { sql } from '../../db/pool.ts';
import { searchResponseSchema } from '../../src/contract/agent.ts';
import { LIMITS } from '../../src/contract/limits.ts';
import { entrySchema, webSearchResponseSchema } from '../../src/contract/web.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import { useDatabase } from '../support/database.ts';
import { type HttpRig, type SandboxClient, useRigs } from '../support/http-rig.ts';
import { emptyLedger, makePerson, run } from '../support/ledger.ts';

interface Attempt {
  readonly sandbox: SandboxClient;
  readonly run: { readonly id: string; readonly epoch: number };
  readonly entry: { readonly id: string };
  readonly turn: { readonly id: string; readonly conversationId: string };
}

async function running(rig: HttpRig, text: string): Promise<Attempt> {
  const { body } = await rig.ask(text);
  const sandbox = await rig.sandbox(body.turn.conversationId);
  const pulled = await sandbox.next(5_000);
  return { sandbox, run: pulled.body.run, entry: body.entry, turn: body.turn };
}

describe('messages on the wire', () => {
  const database = useDatabase();
  const openRig = useRigs(database);
  let rig: HttpRig;
  beforeEach(async () => {
    await emptyLedger(database.db);
    await reconcileSlots(database.db, 4);
    rig = await openRig();
  });

  const entries = async (conversationId: string) => (await rig.send('GET', `conversations/${conversationId}/entries`)).body.entries;
  const find = (query: string, rest = '', of: HttpRig = rig) => of.send('GET', `search?q=${encodeURIComponent(query)}${rest}`);
  /** Another account of the workspace, whose requests reach the same rows. */
  const colleague = async () => openRig({ person: await makePerson(database.db, rig.person.workspaceId) });
  const leave = (person = rig.person) =>
    run(database.db, sql.unsafe`update workspace_member set active = false where account_id = ${person.accountId} returning 1`);

  it('finds a question and its answer, with the place of the words in the excerpt', async () => {
    const it = await running(rig, 'Where is the harbour?');
    await it.sandbox.answer(it.run, 'The harbour is in the north.');
    const answered = await find('harbour');
    expect(answered.status).to.equal(200);
    const { hits, truncated } = webSearchResponseSchema.parse(answered.body);
    expect(truncated).to.equal(false);
    expect(hits.map((hit) => `${hit.kind}: ${hit.excerpt}`).toSorted()).to.deep.equal([
      'answer: The harbour is in the north.',
      'question: Where is the harbour?',
    ]);
    for (const { excerpt, matches } of hits) expect(matches.map(({ start, end }) => excerpt.slice(start, end))).to.deep.equal(['harbour']);
    expect(hits.every((hit) => hit.conversationId === it.turn.conversationId)).to.equal(true);
  });

  it('takes a limit and says when there is more', async () => {
    for (let n = 0; n < 3; n++) await rig.ask(`harbour ${n}`);
    const { body } = await find('harbour', '&limit=2');
    expect([body.hits.length, body.truncated]).to.deep.equal([2, true]);
  });

  it('refuses a search that is none', async () => {
    for (const query of ['search', 'search?q=', 'search?q=%20', 'search?q=a&q=b', 'search?q=a&limit=21', 'search?q=a&limit=0'])
      expect([(await rig.send('GET', query)).status, query]).to.deep.equal([400, query]);
    expect((await find('x'.repeat(LIMITS.searchQueryMaxChars))).status).to.equal(200);
    expect((await find('x'.repeat(LIMITS.searchQueryMaxChars + 1))).body.code).to.equal('BAD_REQUEST');
    expect((await rig.send('GET', 'search?q=a%00b%20%ED%A0%BD')).status).to.equal(200);
  });

  it('shows a search only what its account may see now', async () => {
    // rule: R16
    const { body } = await rig.ask('the harbour');
    const conversationId: string = body.turn.conversationId;
    expect((await find('harbour', `&conversationId=${conversationId}`)).body.hits).to.have.length(1);
    const other = await colleague();
    expect((await find('harbour', '', other)).body.hits).to.deep.equal([]);
    expect((await find('harbour', `&conversationId=${conversationId}`, other)).body.code).to.equal('CONVERSATION_NOT_FOUND');
    expect((await find('harbour', '&conversationId=x')).body.code).to.equal('CONVERSATION_NOT_FOUND');
    await leave();
    expect([(await find('harbour')).status, (await find('harbour')).body.code]).to.deep.equal([404, 'WORKSPACE_NOT_FOUND']);
  });

  it('erases a message for every tab, and says it again when it is asked again', async () => {
    const it = await running(rig, 'Where is the harbour?');
    await it.sandbox.answer(it.run, 'In the north.');
    const tab = await rig.events();
    await tab.next('snapshot');
    const erased = await rig.send('DELETE', `entries/${it.entry.id}`);
    expect(erased.status).to.equal(200);
    expect(entrySchema.parse(erased.body)).to.deep.include({ id: it.entry.id, text: '', parts: [], kind: 'question' });
    expect(erased.body.erasedAt).to.be.a('string');
    const event = entrySchema.parse(await tab.next('entry'));
    expect(event).to.deep.equal(erased.body);
    expect((await rig.send('DELETE', `entries/${it.entry.id}`)).body).to.deep.equal(erased.body);
    expect((await find('harbour')).body.hits).to.deep.equal([]);
    expect((await entries(it.turn.conversationId)).map((entry: { text: string }) => entry.text)).to.deep.equal(['', 'In the north.']);
  });

  it('erases nothing of another account, of a member who left, or that is not there', async () => {
    // rule: R16
    const { body } = await rig.ask('mine');
    const other = await colleague();
    for (const id of [body.entry.id, uuidv7(), 'x']) {
      const refused = await other.send('DELETE', `entries/${id}`);
      expect([refused.status, refused.body.code]).to.deep.equal([404, 'ENTRY_NOT_FOUND']);
    }
    await leave();
    expect((await rig.send('DELETE', `entries/${body.entry.id}`)).body.code).to.equal('WORKSPACE_NOT_FOUND');
    const [row] = await run(database.db, sql.unsafe`select text from mentor_entry`);
    expect(row).to.deep.equal({ text: 'mine' });
  });

  it('refuses an erasure that another site sends', async () => {
    const { body } = await rig.ask('mine');
    const refused = await rig.send('DELETE', `entries/${body.entry.id}`, { headers: { origin: 'https://elsewhere.example' } });
    expect(refused.body.code).to.equal('ORIGIN_REFUSED');
  });

  it('stops the running turn of an erased question on every server, drops what it had written, and stores nothing of it (J1)', async () => {
    const it = await running(rig, 'Where is the harbour?');
    await it.sandbox.partial(it.run, 0, 'In the no');
    const second = await openRig({ person: rig.person });
    const tab = await rig.events();
    await tab.next('snapshot');
    expect((await second.send('DELETE', `entries/${it.entry.id}`)).status).to.equal(200);
    const turn = await tab.next('turn', (event) => event.status === 'STOPPED');
    expect(turn.id).to.equal(it.turn.id);
    expect((await it.sandbox.call(it.run, 'lease', {})).body.stop).to.equal('developer');
    expect((await it.sandbox.partial(it.run, 9, 'rth')).body.code).to.equal('MENTOR_TURN_STOPPED');
    expect((await it.sandbox.call(it.run, 'turn/search', { query: 'harbour', scope: 'tree' })).body.code).to.equal('MENTOR_TURN_STOPPED');
    const message = { role: 'assistant', content: [{ type: 'text', text: 'In the north.' }], stopReason: 'aborted' };
    const late = { type: 'message', id: uuidv7(), parentId: null, timestamp: new Date().toISOString(), message };
    expect((await it.sandbox.call(it.run, 'turn/end', { outcome: 'STOPPED', entries: [late], lastPartial: null })).status).to.equal(204);
    const after = await rig.events();
    expect((await after.next('snapshot')).partials).to.deep.equal([]);
    const all = await entries(it.turn.conversationId);
    expect(all.map((entry: { kind: string; text: string }) => `${entry.kind}:${entry.text}`)).to.deep.equal(['question:']);
  });

  it('lets the next question run after the erased one was stopped while it waited', async () => {
    const it = await running(rig, 'first');
    const { body: second } = await rig.ask('second');
    const { body: third } = await rig.ask('third');
    await rig.send('DELETE', `entries/${second.entry.id}`);
    expect((await rig.send('GET', `turns/${second.turn.id}`)).body).to.include({ status: 'STOPPED', attempt: 0 });
    await it.sandbox.answer(it.run, 'one');
    const { body: pulled } = await it.sandbox.next(5_000);
    await it.sandbox.answer(pulled.run, 'three');
    expect((await rig.send('GET', `turns/${third.turn.id}`)).body.status).to.equal('DONE');
  });

  it('keeps a vote, and tells the other tabs', async () => {
    const it = await running(rig, 'Why?');
    await it.sandbox.answer(it.run, 'Because.');
    const [question, answer] = await entries(it.turn.conversationId);
    const tab = await rig.events();
    await tab.next('snapshot');
    const voted = await rig.send('PUT', `entries/${answer.id}/vote`, { body: { vote: 'up' } });
    expect([voted.status, entrySchema.parse(voted.body).vote]).to.deep.equal([200, 'up']);
    expect(await tab.next('entry')).to.deep.equal(voted.body);
    expect((await rig.send('PUT', `entries/${answer.id}/vote`, { body: { vote: null } })).body.vote).to.equal(null);
    expect((await rig.send('PUT', `entries/${answer.id}/vote`, { body: { vote: 'sideways' } })).body.code).to.equal('BAD_REQUEST');
    expect((await rig.send('PUT', `entries/${question.id}/vote`, { body: { vote: 'up' } })).body.code).to.equal('ENTRY_NOT_FOUND');
    const other = await colleague();
    expect((await other.send('PUT', `entries/${answer.id}/vote`, { body: { vote: 'up' } })).body.code).to.equal('ENTRY_NOT_FOUND');
    await run(database.db, sql.unsafe`update account set erasure_requested_at = now() where id = ${rig.person.accountId} returning 1`);
    // rule: R12
    const refused = await rig.send('PUT', `entries/${answer.id}/vote`, { body: { vote: 'up' } });
    expect([refused.status, refused.body.code]).to.deep.equal([410, 'PERSON_ERASED']);
  });

  it('edits a question for every tab', async () => {
    const { body } = await rig.ask('old words');
    const tab = await rig.events();
    await tab.next('snapshot');
    expect(await rig.actors.runtime.editEntry(rig.person, body.entry.id, 'new words')).to.deep.equal({ kind: 'edited' });
    expect(await tab.next('entry')).to.deep.equal({
      ...body.entry,
      text: 'new words',
      parts: [{ type: 'text', text: 'new words' }],
    });
    expect([(await find('old')).body.hits.length, (await find('new')).body.hits.length]).to.deep.equal([0, 1]);
  });

  it('gives a running turn what it looks for, with the time as the model reads it', async () => {
    await run(database.db, sql.unsafe`update account set time_zone = 'Europe/Berlin' where id = ${rig.person.accountId} returning 1`);
    const it = await running(rig, 'Where is the harbour?');
    const answered = await it.sandbox.call(it.run, 'turn/search', { query: 'harbour', scope: 'tree' });
    const { hits } = searchResponseSchema.parse(answered.body);
    expect(hits.map(({ entryId, kind, text }) => ({ entryId, kind, text }))).to.deep.equal([
      { entryId: it.entry.id, kind: 'question', text: 'Where is the harbour?' },
    ]);
    expect(hits[0]?.at).to.match(/^(Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d{4}-\d\d-\d\d \d\d:\d\d Europe\/Berlin$/);
    expect((await it.sandbox.call(it.run, 'turn/search', { query: 'harbour', scope: 'everywhere' })).status).to.equal(400);
  });

  it('gives an attempt that has lost its run, or another sandbox, nothing', async () => {
    const it = await running(rig, 'Where is the harbour?');
    const look = (attempt: { id: string; epoch: number }) => it.sandbox.call(attempt, 'turn/search', { query: 'harbour', scope: 'tree' });
    expect((await look({ ...it.run, epoch: 2 })).body).to.include({ status: 409, code: 'MENTOR_LEASE_LOST' });
    expect((await look({ ...it.run, id: uuidv7() })).body).to.include({ code: 'MENTOR_LEASE_LOST' });
    const other = await colleague();
    const theirs = await running(other, 'mine');
    expect((await theirs.sandbox.call(it.run, 'turn/search', { query: 'harbour', scope: 'tree' })).body.code).to.equal('SANDBOX_UNKNOWN');
    expect((await theirs.sandbox.call(theirs.run, 'turn/search', { query: 'harbour', scope: 'tree' })).body.hits).to.deep.equal([]);
    await leave();
    // rule: R16
    expect((await look(it.run)).body.hits).to.deep.equal([]);
    await it.sandbox.answer(it.run, 'done');
    expect((await look(it.run)).body.code).to.equal('MENTOR_LEASE_LOST');
  });

  it('erases the search result of a turn that ran while what it quotes was erased', async () => {
    const first = await running(rig, 'the secret harbour');
    await first.sandbox.answer(first.run, 'noted');
    const it = await running(rig, 'What did I say?');
    const { body: found } = await it.sandbox.call(it.run, 'turn/search', { query: 'harbour', scope: 'tree' });
    await rig.send('DELETE', `entries/${first.entry.id}`);
    const at = { parentId: null, timestamp: new Date().toISOString() };
    const call = {
      role: 'assistant',
      content: [{ type: 'toolCall', id: 'c1', name: 'search_conversation', arguments: {} }],
      stopReason: 'toolUse',
    };
    const result = {
      role: 'toolResult',
      toolCallId: 'c1',
      toolName: 'search_conversation',
      content: [{ type: 'text', text: JSON.stringify(found) }],
    };
    const said = { role: 'assistant', content: [{ type: 'text', text: 'Nothing.' }], stopReason: 'stop' };
    const stored = [call, result, said].map((message) => ({ type: 'message', id: uuidv7(), ...at, message }));
    const end = await it.sandbox.call(it.run, 'turn/end', { outcome: 'DONE', entries: stored, lastPartial: null });
    expect(end.status).to.equal(204);
    const rows = await run(database.db, sql.unsafe`select payload::text as payload from mentor_entry order by seq`);
    expect(JSON.stringify(rows)).to.not.include('secret');
    expect(JSON.stringify(rows)).to.include('toolResult');
  });
});
