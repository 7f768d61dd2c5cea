/**
 * The web wire over real HTTP: questions, pages, turns, the read marker, and every bad input that a client can send.
 */
import { expect } from 'chai';
import { reconcileSlots } from '../../db/ledger/slots.ts';
import { sql } from '../../db/pool.ts';
import { LIMITS } from '../../src/contract/limits.ts';
import { questionResponseSchema, sessionSchema } from '../../src/contract/web.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import { useDatabase } from '../support/database.ts';
import { type HttpRig, useRigs } from '../support/http-rig.ts';
import { emptyLedger, makePerson, run } from '../support/ledger.ts';

describe('the web wire', () => {
  const database = useDatabase();
  const openRig = useRigs(database);
  let rig: HttpRig;
  beforeEach(async () => {
    await emptyLedger(database.db);
    await reconcileSlots(database.db, 4);
    rig = await openRig({ maxFollowUps: 2 });
  });

  it('tells the page who asks, where, and the limits', async () => {
    const { status, body } = await rig.send('GET', '/session');
    expect(status).to.equal(200);
    const session = sessionSchema.parse(body);
    expect(session.workspace.slug).to.equal(rig.slug);
    expect(session.limits).to.deep.equal({ questionMaxChars: 32_000, maxFollowUps: 2 });
  });

  it('accepts a question, and gives the same rows again for a repeated requestId', async () => {
    const first = await rig.ask('Why is it slow?', { requestId: 'one' });
    expect(first.status).to.equal(202);
    const { entry, turn } = questionResponseSchema.parse(first.body);
    expect(entry).to.include({ text: 'Why is it slow?', kind: 'question', turnId: turn.id, surface: 'app' });
    expect(entry.parts).to.deep.equal([{ type: 'text', text: 'Why is it slow?' }]);
    expect(turn).to.include({ status: 'QUEUED', attempt: 0, questionEntryId: entry.id, waitingFor: null, position: null });
    const again = await rig.ask('Why is it slow?', { requestId: 'one' });
    expect(again.status).to.equal(202);
    expect(again.body).to.deep.equal(first.body);
  });

  it('refuses a requestId that was used for other words, and says to take a new one', async () => {
    await rig.ask('Why?', { requestId: 'one' });
    const { status, body } = await rig.ask('Who?', { requestId: 'one' });
    expect(status).to.equal(409);
    expect(body).to.include({ code: 'REQUEST_ID_REUSED', status: 409, retry: 'never' });
    expect(body.detail).to.match(/new requestId/);
  });

  it('stores and shows one and the same text for NUL and half characters', async () => {
    const { body } = await rig.send('POST', 'questions', { raw: '{"requestId":"nul","text":"what\\u0000 is \\ud83d this"}' });
    expect(body.entry.text).to.equal('what\uFFFD is \uFFFD this');
  });

  for (const text of ['', '   \n\t ', '\u00a0\u200b\u2060']) {
    it(`refuses a question without words: ${JSON.stringify(text)}`, async () => {
      const { status, body } = await rig.ask(text);
      expect(status).to.equal(422);
      expect(body.code).to.equal('TEXT_EMPTY');
    });
  }

  it('accepts a question of exactly 32,000 characters and refuses one more, counted by code point', async () => {
    const full = await rig.ask('𝄞'.repeat(LIMITS.questionMaxChars));
    expect(full.status).to.equal(202);
    const over = await rig.ask('𝄞'.repeat(LIMITS.questionMaxChars) + 'x');
    expect(over.status).to.equal(422);
    expect(over.body).to.include({ code: 'TEXT_TOO_LONG', maxChars: 32_000 });
    expect(over.body.detail).to.match(/32,000/);
  });

  for (const [what, requestId] of [
    ['missing', undefined],
    ['empty', ''],
    ['with a space', 'a b'],
    ['not ASCII', 'é'],
    ['too long', 'x'.repeat(129)],
    ['a number', 7],
  ] as const) {
    it(`refuses a requestId that is ${what}, and names the member`, async () => {
      const { status, body } = await rig.send('POST', 'questions', { body: { requestId, text: 'Why?' } });
      expect(status).to.equal(400);
      expect(body.code).to.equal('BAD_REQUEST');
      expect(body.errors[0].path).to.equal('requestId');
    });
  }

  for (const [what, raw, code] of [
    ['no JSON', '{"requestId"', 'BAD_JSON'],
    ['an array', '[]', 'BAD_JSON'],
    ['nothing', '', 'BAD_JSON'],
    ['not UTF-8', Buffer.from([0x7b, 0xff, 0x7d]), 'BAD_JSON'],
  ] as const) {
    it(`refuses a body that is ${what}`, async () => {
      const { status, body, headers } = await rig.send('POST', 'questions', { raw: raw as BodyInit });
      expect(status).to.equal(400);
      expect(headers.get('content-type')).to.match(/^application\/problem\+json/);
      expect(body.code).to.equal(code);
    });
  }

  for (const type of ['text/plain', 'application/json; charset=latin1', 'application/x-www-form-urlencoded', '']) {
    it(`refuses a body of the type ${type || '(none)'}`, async () => {
      const { status, body } = await rig.send('POST', 'questions', { raw: '{}', headers: { 'content-type': type } });
      expect(status).to.equal(415);
      expect(body.code).to.equal('UNSUPPORTED_MEDIA_TYPE');
    });
  }

  it('does not find a conversation that is not there, or is no id', async () => {
    for (const id of [uuidv7(), 'main', uuidv7().toUpperCase()]) {
      const { status, body } = await rig.send('GET', `conversations/${id}/entries`);
      expect([status, body.code], id).to.deep.equal([404, 'CONVERSATION_NOT_FOUND']);
    }
    const { status, body } = await rig.ask('Why?', { conversationId: uuidv7() });
    expect([status, body.code]).to.deep.equal([404, 'CONVERSATION_NOT_FOUND']);
  });

  it("answers another account's conversation and turn exactly like ones that do not exist", async () => {
    // rule: R16
    const other = await openRig({ person: await makePerson(database.db, rig.person.workspaceId) });
    const { body } = await other.ask('private');
    const { conversationId } = body.turn;
    const foreign = [
      await rig.send('GET', `conversations/${conversationId}/entries`),
      await rig.send('GET', `turns/${body.turn.id}`),
      await rig.send('PATCH', `turns/${body.turn.id}/status`, { body: { status: 'STOPPED' } }),
      await rig.ask('Why?', { conversationId }),
    ];
    const unknown = [
      await rig.send('GET', `conversations/${uuidv7()}/entries`),
      await rig.send('GET', `turns/${uuidv7()}`),
      await rig.send('PATCH', `turns/${uuidv7()}/status`, { body: { status: 'STOPPED' } }),
      await rig.ask('Why?', { conversationId: uuidv7() }),
    ];
    const seen = ({ status, body: { instance, ...rest } }: (typeof foreign)[number]) => ({ status, ...rest });
    expect(foreign.map(seen)).to.deep.equal(unknown.map(seen));
    expect((await other.send('GET', `turns/${body.turn.id}`)).body.status).to.equal('QUEUED');
  });

  it('does not find a workspace that the account does not belong to', async () => {
    const other = await makePerson(database.db);
    const [{ slug } = {}] = await run(database.db, sql.unsafe`select slug from workspace where id = ${other.workspaceId}`);
    for (const name of [slug, 'nowhere', '%00', '..%2f']) {
      const { status, body } = await rig.send('GET', `/workspaces/${name}/mentor/conversation`);
      expect([status, body.code], String(name)).to.deep.equal([404, 'WORKSPACE_NOT_FOUND']);
    }
  });

  it('says how many questions may wait when one more is asked, and what to do', async () => {
    await rig.ask('one');
    await rig.ask('two');
    const { status, body } = await rig.ask('three');
    expect(status).to.equal(409);
    expect(body).to.include({ code: 'FOLLOW_UPS_FULL', retry: 'later' });
    expect(body.detail).to.match(/2 questions.*[Ww]ait for an answer or stop/);
  });
});
