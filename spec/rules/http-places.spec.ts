/**
 * How a client finds its place in a long conversation: pages behind a message, one message, one conversation, and how far each was read.
 * rule: R12, R16
 */
import { expect } from 'chai';
import { reconcileSlots } from '../../db/ledger/slots.ts';
import { sql } from '../../db/pool.ts';
import { conversationSchema, entryPageSchema, entrySchema } from '../../src/contract/web.ts';
import { type ConversationId, uuidv7 } from '../../src/kernel/ids.ts';
import { useDatabase } from '../support/database.ts';
import { type HttpRig, useRigs } from '../support/http-rig.ts';
import { emptyLedger, makePerson, run } from '../support/ledger.ts';
import { fillConversation } from '../support/page-history.ts';

const AT = '2026-01-02T00:00:00.000Z';

describe('a place in a long conversation', () => {
  const database = useDatabase();
  const openRig = useRigs(database);
  let rig: HttpRig;
  let main: ConversationId;
  beforeEach(async () => {
    await emptyLedger(database.db);
    await reconcileSlots(database.db, 4);
    rig = await openRig();
    main = uuidv7<'conversation'>();
    await run(
      database.db,
      sql.unsafe`insert into mentor_conversation (id, workspace_id, account_id)
        values (${main}, ${rig.person.workspaceId}, ${rig.person.accountId}) returning 1`,
    );
    await fillConversation(database.db, main, { questions: 30, words: 'words' });
  });

  const page = async (query: string) => entryPageSchema.parse((await rig.send('GET', `conversations/${main}/entries?${query}`)).body);
  const seqs = ({ entries }: { entries: readonly { seq: number }[] }) => entries.map(({ seq }) => seq);
  const begin = async (parentEntryId: string) =>
    conversationSchema.parse((await rig.send('POST', 'threads', { body: { requestId: uuidv7(), parentEntryId } })).body);
  const stranger = async () => openRig({ person: await makePerson(database.db, rig.person.workspaceId) });

  it('is read on towards the end with after: the oldest first, each page with the turns of its entries', async () => {
    const first = await page('after=40&limit=10');
    expect(seqs(first)).to.deep.equal([41, 42, 43, 44, 45, 46, 47, 48, 49, 50]);
    expect([first.nextAfter, first.nextBefore]).to.deep.equal([50, 41]);
    expect(new Set(first.turns.map(({ id }) => id))).to.deep.equal(new Set(first.entries.map(({ turnId }) => turnId)));
    const last = await page(`after=${first.nextAfter}&limit=10`);
    expect([seqs(last).at(-1), last.nextAfter]).to.deep.equal([60, null]);
    expect(await page('after=60')).to.deep.equal({ entries: [], nextBefore: null, nextAfter: null, turns: [] });
    expect(await page('limit=1'), 'the newest page has no nextAfter').to.not.have.property('nextAfter');
  });

  it('takes one direction, a limit from 1 to 200 and no negative place', async () => {
    for (const [query, status] of [
      ['after=0&limit=200', 200],
      ['after=0&limit=201', 400],
      ['after=-1', 400],
      ['after=1&before=9', 400],
    ] as const) {
      expect((await rig.send('GET', `conversations/${main}/entries?${query}`)).status, query).to.equal(status);
    }
  });

  it('is found from one message, and from one conversation, by its owner only', async () => {
    const [entry] = (await page('after=6&limit=1')).entries;
    const thread = await begin(entry?.id ?? '');
    expect(entrySchema.parse((await rig.send('GET', `entries/${entry?.id}`)).body)).to.deep.equal(entry);
    expect((await rig.send('GET', `conversations/${thread.id}`)).body).to.deep.equal(thread);
    expect((await rig.send('GET', `conversations/${main}`)).body.id).to.equal(main);
    const other = await stranger();
    const refused = [
      await other.send('GET', `entries/${entry?.id}`),
      await other.send('GET', `conversations/${thread.id}`),
      await other.send('GET', `conversations/${main}/entries?after=0`),
      await other.send('PUT', `conversations/${thread.id}/read`, { body: { lastReadAt: AT } }),
      await rig.send('GET', `entries/${uuidv7()}`),
      await rig.send('GET', 'conversations/x'),
    ];
    const [noEntry, noConversation] = ['ENTRY_NOT_FOUND', 'CONVERSATION_NOT_FOUND'];
    expect(refused.map(({ body }) => body.code)).to.deep.equal([
      noEntry,
      noConversation,
      noConversation,
      noConversation,
      noEntry,
      noConversation,
    ]);
    await rig.send('DELETE', `entries/${entry?.id}`);
    expect((await rig.send('GET', `entries/${entry?.id}`)).body).to.deep.include({ text: '', parts: [] });
  });

  it('of a thread is how far it was read: it moves forward only, on every device, and is no other conversation’s', async () => {
    const [entry] = (await page('after=6&limit=1')).entries;
    const thread = await begin(entry?.id ?? '');
    const [here, there, other] = [await rig.events(), await rig.events(), await (await stranger()).events()];
    for (const events of [here, there, other]) await events.next('snapshot');
    const put = async (lastReadAt: string) => rig.send('PUT', `conversations/${thread.id}/read`, { body: { lastReadAt } });
    expect((await put(AT)).body).to.deep.include({ id: thread.id, lastReadAt: AT });
    for (const events of [here, there]) expect(await events.next('read')).to.deep.equal({ conversationId: thread.id, lastReadAt: AT });
    expect((await put('2026-01-01T00:00:00.000Z')).body.lastReadAt, 'an earlier time').to.equal(AT);
    expect((await rig.send('GET', 'conversation')).body.lastReadAt, 'the main conversation').to.equal(null);
    const fresh = await rig.events();
    const known = (await fresh.next('snapshot')).conversations.find(({ id }) => id === thread.id);
    expect(known?.lastReadAt).to.equal(AT);
    await rig.send('PUT', 'conversation/read', { body: { lastReadAt: AT } });
    expect((await here.next('read')).conversationId, 'the earlier time was told to nobody').to.equal(main);
    await run(database.db, sql.unsafe`update account set erasure_requested_at = now() where id = ${rig.person.accountId} returning 1`);
    expect((await put('2026-01-03T00:00:00.000Z')).body.code).to.equal('PERSON_ERASED');
  });
});
