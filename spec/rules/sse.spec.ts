/**
 * The event stream over real HTTP: what a reader gets, in which order, and what a reader who is slow, gone or no member any more gets.
 */
import { once } from 'node:events';
import http from 'node:http';
import { expect } from 'chai';
import { reconcileSlots } from '../../db/ledger/slots.ts';
import { sql } from '../../db/pool.ts';
import { useDatabase } from '../support/database.ts';
import { type HttpRig, useRigs } from '../support/http-rig.ts';
import { emptyLedger, makePerson, run } from '../support/ledger.ts';
import { type SseClient, StreamRefused } from '../support/sse-client.ts';

describe('the event stream', () => {
  const database = useDatabase();
  const openRig = useRigs(database);
  let rig: HttpRig;
  beforeEach(async () => {
    await emptyLedger(database.db);
    await reconcileSlots(database.db, 4);
    rig = await openRig();
  });

  async function running(text = 'Why?') {
    const { body } = await rig.ask(text);
    const sandbox = await rig.sandbox(body.turn.conversationId);
    const pulled = await sandbox.next(5_000);
    return { sandbox, turn: body.turn, entry: body.entry, run: pulled.body.run as { id: string; epoch: number } };
  }

  it('begins with a snapshot, also before the first question, and then tells each change with the whole row', async () => {
    const stream = await rig.events();
    expect(stream.headers['content-type']).to.equal('text/event-stream');
    expect(stream.headers['cache-control']).to.equal('no-store, no-transform');
    expect(stream.headers['x-accel-buffering']).to.equal('no');
    expect(await stream.next('snapshot')).to.deep.equal({ conversations: [], partials: [] });
    const { body } = await rig.ask('Why?');
    expect(await stream.next('entry')).to.deep.equal(body.entry);
    expect(await stream.next('turn')).to.deep.equal(body.turn);
    expect(stream.received.map(({ event }) => event)).to.deep.equal(['snapshot', 'entry', 'turn']);
    await stream.close();
  });

  it('shows an answer while it is written, each word once, and the stage of its turn', async () => {
    const { sandbox, run: claimed, turn } = await running();
    const stream = await rig.events();
    await stream.next('snapshot');
    const pieces = ['Be', 'cause', ' it 😀', ' is.'];
    let offset = 0;
    for (const piece of pieces) {
      await sandbox.partial(claimed, offset, piece);
      offset += piece.length;
      await stream.until(() => textOf(stream, turn.id).length === offset);
    }
    expect(textOf(stream, turn.id)).to.equal(pieces.join(''));
    expect((await rig.send('GET', `turns/${turn.id}`)).body.stage).to.equal('Thinking…');
    const late = await rig.events();
    const { partials, conversations } = await late.next('snapshot');
    expect(partials[0]).to.include({ turnId: turn.id, offset: 0, text: pieces.join(''), epoch: 1, stage: 'Thinking…' });
    expect(conversations[0]?.turns[0]).to.include({ id: turn.id, status: 'RUNNING', stage: 'Thinking…' });
    await sandbox.answer(claimed, 'Because it is.');
    expect((await late.next('entry', ({ kind }) => kind === 'answer')).text).to.equal('Because it is.');
    expect(await late.next('turn')).to.include({ status: 'DONE', stage: null });
    expect((await (await rig.events()).next('snapshot')).partials).to.deep.equal([]);
  });

  it('never sends half a character, however the loop cuts its reports', async () => {
    const { sandbox, run: claimed, turn } = await running();
    const stream = await rig.events();
    await stream.next('snapshot');
    await sandbox.partial(claimed, 0, 'x\ud83d');
    await stream.until(() => textOf(stream, turn.id) === 'x');
    await sandbox.partial(claimed, 2, '\ude00y');
    await stream.until(() => textOf(stream, turn.id) === 'x😀y');
    for (const one of stream.received) expect(JSON.stringify(one).isWellFormed()).to.equal(true);
  });

  it('sends a snapshot when the loop takes words back, since a reader who has them cannot unread them', async () => {
    const { sandbox, run: claimed, turn } = await running();
    const stream = await rig.events();
    await stream.next('snapshot');
    await sandbox.partial(claimed, 0, 'The failed call said this');
    await stream.until(() => textOf(stream, turn.id).length === 25);
    await sandbox.call(claimed, 'turn/partial', { offset: 0, text: 'The second', stage: 'Thinking…', full: true });
    const { partials } = await stream.next('snapshot');
    expect(partials[0]?.text).to.equal('The second');
  });

  it('asks the loop for the whole text when the server does not have its beginning', async () => {
    const { sandbox, run: claimed, turn } = await running();
    const stream = await rig.events();
    await stream.next('snapshot');
    expect((await sandbox.partial(claimed, 10, 'world')).body).to.deep.equal({ resync: true });
    await stream.next('partial', ({ stage, text }) => stage === 'Thinking…' && text === '');
    await sandbox.call(claimed, 'turn/partial', { offset: 0, text: 'hello the world', stage: 'Thinking…', full: true });
    await stream.until(() => textOf(stream, turn.id) === 'hello the world');
  });

  for (const text of [
    'a\u2028b\u2029c',
    'lone\rcarriage\r\nreturn\n',
    'data: x\n\ndata: [DONE]\nevent: done\n\n',
    ': comment\nretry: 1',
    '👩‍👩‍👧‍👦\u202e'.repeat(500),
  ]) {
    it(`carries ${JSON.stringify(text).slice(0, 40)} unharmed, and goes on`, async () => {
      const stream = await rig.events();
      await rig.ask(text);
      expect((await stream.next('entry')).text).to.equal(text);
      await rig.ask('next');
      expect((await stream.next('entry')).text).to.equal('next');
      expect(stream.retryMs).to.equal(null);
    });
  }

  it("tells the person's other streams that they have read", async () => {
    const { body } = await rig.ask('Why?');
    const other = await rig.events();
    await other.next('snapshot');
    await rig.send('PUT', 'conversation/read', { body: { lastReadAt: '2026-01-02T00:00:00.000Z' } });
    expect(await other.next('read')).to.deep.equal({ conversationId: body.turn.conversationId, lastReadAt: '2026-01-02T00:00:00.000Z' });
    await rig.send('PUT', 'conversation/read', { body: { lastReadAt: '2026-01-01T00:00:00.000Z' } });
    await rig.ask('one more thing that comes after');
    await other.next('entry');
    expect(other.received.filter(({ event }) => event === 'read')).to.have.length(1);
  });

  it('sends nothing of another account, not even of the same workspace', async () => {
    // rule: R16
    const neighbour = await openRig({ person: await makePerson(database.db, rig.person.workspaceId) });
    const mine = await rig.events();
    const theirs = await neighbour.events();
    await Promise.all([mine.next('snapshot'), theirs.next('snapshot')]);
    await rig.ask('mine');
    await neighbour.ask('theirs');
    expect((await theirs.next('entry')).text).to.equal('theirs');
    await rig.ask('mine again');
    await mine.next('entry', ({ text }) => text === 'mine again');
    expect(mine.received.filter(({ event }) => event === 'entry')).to.have.length(2);
  });

  it('closes the stream of a removed member instead of sending the next event, and lets them open no other', async () => {
    // rule: R16
    const stream = await rig.events();
    await stream.next('snapshot');
    const { body } = await rig.ask('before');
    await stream.next('turn');
    await run(database.db, sql.unsafe`update workspace_member set active = false where account_id = ${rig.person.accountId} returning 1`);
    const seen = stream.received.length;
    rig.live.changes.publish(changeOf(rig, body));
    await stream.ended;
    expect(stream.received.length).to.equal(seen);
    const refused = await rig.events().catch((error: StreamRefused) => error);
    expect(refused).to.be.instanceOf(StreamRefused);
    expect((refused as StreamRefused).problem.code).to.equal('WORKSPACE_NOT_FOUND');
  });

  it('closes the stream of a removed member instead of sending more of an answer, or a ping', async () => {
    // rule: R16
    const { sandbox, run: claimed, turn } = await running();
    const stream = await rig.events();
    await stream.next('snapshot');
    await sandbox.partial(claimed, 0, 'seen');
    await stream.until(() => textOf(stream, turn.id) === 'seen');
    await run(database.db, sql.unsafe`update workspace_member set visible = false where account_id = ${rig.person.accountId} returning 1`);
    await sandbox.partial(claimed, 4, ' secret');
    await stream.ended;
    expect(textOf(stream, turn.id)).to.equal('seen');

    const quiet = await openRig({ pingMs: 20 });
    const pinged = await quiet.events();
    await pinged.until(() => pinged.comments.length > 3);
    await run(database.db, sql.unsafe`delete from workspace_member where account_id = ${quiet.person.accountId} returning 1`);
    await pinged.ended;
  });

  it('gives an account ten streams, says so to the eleventh, and has room again when one is closed', async () => {
    const streams: SseClient[] = [];
    for (let n = 0; n < 10; n++) streams.push(await rig.events());
    const refused = (await rig.events().catch((error: StreamRefused) => error)) as StreamRefused;
    expect([refused.status, refused.problem.code]).to.deep.equal([429, 'TOO_MANY_STREAMS']);
    expect(refused.problem.detail).to.match(/10 event streams.*[Cc]lose/);
    await streams[0]?.close();
    await once(rig.streams, 'closed');
    const again = await rig.events();
    await again.next('snapshot');
  });

  it('answers HEAD without opening a stream', async () => {
    const request = http.request({ port: rig.webPort, host: '127.0.0.1', method: 'HEAD', path: `/workspaces/${rig.slug}/mentor/events` });
    request.end();
    const [response] = (await once(request, 'response')) as [http.IncomingMessage];
    response.resume();
    expect([response.statusCode, rig.live.hub.streams]).to.deep.equal([200, 0]);
  });

  it('ends with a hint when to come back when the server shuts down, and opens no new one', async () => {
    const stream = await rig.events();
    await stream.next('snapshot');
    await rig.live.hub.drain();
    await stream.ended;
    expect(stream.retryMs).to.be.within(1_000, 3_000);
    const refused = (await rig.events().catch((error: StreamRefused) => error)) as StreamRefused;
    expect([refused.status, refused.problem.code]).to.deep.equal([503, 'DRAINING']);
  });
});

/** The words of a turn as a reader folds them. */
function textOf(stream: SseClient, turnId: string): string {
  let text = '';
  for (const one of stream.received) {
    if (one.event === 'snapshot') text = one.data.partials.find((partial) => partial.turnId === turnId)?.text ?? '';
    if (one.event !== 'partial' || one.data.turnId !== turnId) continue;
    expect(one.data.offset, 'no gap and no repeat').to.equal(text.length);
    text += one.data.text;
  }
  return text;
}

function changeOf(rig: HttpRig, { turn, entry }: { turn: { id: string; conversationId: string }; entry: { id: string } }) {
  const { conversationId } = turn;
  return { ...rig.person, conversationId, version: 1, turnIds: [turn.id], entryIds: [entry.id], sealedRunIds: [] };
}
