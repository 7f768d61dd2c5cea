/**
 * Threads on the web wire: they begin at a message of the main conversation, and from then on are conversations of their own.
 * rule: R11, R12, R16
 */
import { expect } from 'chai';
import { reconcileSlots } from '../../db/ledger/slots.ts';
import { sql } from '../../db/pool.ts';
import { conversationSchema, threadListSchema } from '../../src/contract/web.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import { useDatabase } from '../support/database.ts';
import { type HttpRig, useRigs } from '../support/http-rig.ts';
import { emptyLedger, makePerson, run } from '../support/ledger.ts';

describe('threads on the web wire', () => {
  const database = useDatabase();
  const openRig = useRigs(database);
  let rig: HttpRig;
  beforeEach(async () => {
    await emptyLedger(database.db);
    await reconcileSlots(database.db, 4);
    rig = await openRig();
  });

  const begin = (parentEntryId: string, requestId: string = uuidv7(), on: HttpRig = rig) =>
    on.send('POST', 'threads', { body: { requestId, parentEntryId } });
  const threadsOf = async (on: HttpRig) => threadListSchema.parse((await on.send('GET', 'threads')).body).threads;

  /** Asks in the main conversation and answers it. */
  async function answered(words: string) {
    const { body } = await rig.ask(words);
    const sandbox = await rig.sandbox(body.turn.conversationId);
    const pulled = await sandbox.next(5_000);
    await sandbox.answer(pulled.body.run, `Answer to: ${words}`);
    const { body: page } = await rig.send('GET', `conversations/${body.turn.conversationId}/entries`);
    return { main: body.turn.conversationId as string, question: body.entry, answer: page.entries.at(-1), sandbox };
  }

  it('begins at a question or an answer, and carries its first words as the title', async () => {
    const { main, question, answer } = await answered(`\n  Why does ${'it '.repeat(40)}work? 🟢\nSecond line`);
    const begun = await begin(question.id);
    expect(begun.status).to.equal(201);
    const thread = conversationSchema.parse(begun.body);
    expect(thread).to.deep.include({ parentConversationId: main, parentEntryId: question.id, latestSeq: 0, turns: [] });
    expect(thread.title)
      .to.match(/^Why does it it/)
      .and.satisfy((title: string) => [...title].length <= 80 && title.isWellFormed());
    const second = await begin(answer.id);
    expect(
      (await threadsOf(rig)).map(({ id }) => id),
      'newest first',
    ).to.deep.equal([second.body.id, thread.id]);
    expect((await rig.send('GET', 'conversation')).body, 'the main conversation has no title').to.not.have.property('title');
  });

  it('is the same for a repeated requestId, one thread also when both arrive at once, and refused for another message', async () => {
    const { question, answer } = await answered('Why?');
    const replies = await Promise.all([begin(question.id, 'same'), begin(question.id, 'same'), begin(question.id, 'same')]);
    expect(replies.map(({ status }) => status)).to.deep.equal([201, 201, 201]);
    expect(new Set(replies.map(({ body }) => body.id)).size).to.equal(1);
    expect(await threadsOf(rig)).to.have.length(1);
    const other = await begin(answer.id, 'same');
    expect([other.status, other.body.code]).to.deep.equal([409, 'REQUEST_ID_REUSED']);
  });

  it('begins only at a message that the account sees in its own main conversation', async () => {
    const { question, main } = await answered('Why?');
    const { body: thread } = await begin(question.id);
    const { body: inThread } = await rig.ask('In a thread', { conversationId: thread.id });
    const stranger = await openRig({ person: await makePerson(database.db, rig.person.workspaceId) });
    await stranger.ask('Mine');
    const hidden = uuidv7();
    await run(
      database.db,
      sql.unsafe`insert into mentor_entry (id, workspace_id, conversation_id, seq, kind, surface, payload)
        values (${hidden}, ${rig.person.workspaceId}, ${main}, 99, 'TOOL_RESULT', 'app', '{}') returning 1`,
    );
    await run(
      database.db,
      sql.unsafe`update mentor_entry set text = null, search_text = null, erased_at = now() where kind = 'ANSWER' returning 1`,
    );
    const [erased] = await run(database.db, sql.unsafe`select id from mentor_entry where kind = 'ANSWER'`);
    const refused = [
      await begin(uuidv7()),
      await begin(inThread.entry.id),
      await begin(hidden),
      await begin(String(erased?.['id'])),
      await begin(question.id, uuidv7(), stranger),
    ];
    expect(refused.map(({ status, body }) => [status, body.code])).to.deep.equal(Array(5).fill([404, 'ENTRY_NOT_FOUND']));
    for (const body of [{}, { requestId: 'a' }, { requestId: 'a b', parentEntryId: question.id }, { requestId: 'a', parentEntryId: 'x' }]) {
      expect((await rig.send('POST', 'threads', { body })).body.code).to.equal('BAD_REQUEST');
    }
  });

  it('is not there for another account: not in its list, its pages, its questions', async () => {
    const { question } = await answered('Why?');
    const { body: thread } = await begin(question.id);
    const stranger = await openRig({ person: await makePerson(database.db, rig.person.workspaceId) });
    expect(await threadsOf(stranger)).to.deep.equal([]);
    const page = await stranger.send('GET', `conversations/${thread.id}/entries`);
    const asked = await stranger.ask('Let me in', { conversationId: thread.id });
    expect([page.body.code, asked.body.code]).to.deep.equal(['CONVERSATION_NOT_FOUND', 'CONVERSATION_NOT_FOUND']);
  });

  it('is not begun for an account whose erasure was requested', async () => {
    const { question } = await answered('Why?');
    await run(database.db, sql.unsafe`update account set erasure_requested_at = now() where id = ${rig.person.accountId} returning 1`);
    const refused = await begin(question.id);
    expect([refused.status, refused.body.code]).to.deep.equal([410, 'PERSON_ERASED']);
  });

  it('has its own queue: main conversation and thread run at the same time, each stops alone, and the stream tells of both', async () => {
    const { main, question, sandbox } = await answered('Why?');
    const { body: thread } = await begin(question.id);
    const events = await rig.events();
    const snapshot = await events.next('snapshot');
    expect(snapshot.conversations.map(({ id }) => id)).to.deep.equal([main, thread.id]);
    const { body: inMain } = await rig.ask('Again?');
    const { body: inThread } = await rig.ask('What is that?', { conversationId: thread.id });
    const { body: behind } = await rig.ask('And then?', { conversationId: thread.id });
    const ofThread = await rig.sandbox(thread.id);
    const [mainRun, threadRun] = [(await sandbox.next(5_000)).body.run, (await ofThread.next(5_000)).body.run];
    const status = async (id: string) => (await rig.send('GET', `turns/${id}`)).body.status;
    expect([await status(inMain.turn.id), await status(inThread.turn.id), await status(behind.turn.id)]).to.deep.equal([
      'RUNNING',
      'RUNNING',
      'QUEUED',
    ]);
    await ofThread.partial(threadRun, 0, 'It is');
    expect((await events.next('partial')).conversationId).to.equal(thread.id);
    expect((await rig.send('PATCH', `turns/${inThread.turn.id}/status`, { body: { status: 'STOPPED' } })).body.status).to.equal('STOPPED');
    expect(await status(inMain.turn.id)).to.equal('RUNNING');
    await ofThread.answer(threadRun, 'It is tested.');
    await sandbox.answer(mainRun, 'Yes.');
    const { body: page } = await rig.send('GET', `conversations/${thread.id}/entries`);
    expect(page.entries.map(({ text }: { text: string }) => text)).to.deep.equal(['What is that?', 'And then?', 'It is tested.']);
    const listed = (await threadsOf(rig))[0];
    expect(listed?.turns.map(({ id }) => id)).to.deep.equal([inThread.turn.id, behind.turn.id]);
    const told = new Set<string>();
    while (!told.has(main) || !told.has(thread.id)) told.add((await events.next('entry')).conversationId);
  });
});
