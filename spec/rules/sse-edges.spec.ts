/**
 * The event stream at its edges: clients and proxies of every kind, who may open one, and when one ends. rule: R16
 */
import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';
import { expect } from 'chai';
import { explain } from '../../db/bench/explain.ts';
import { BenchRows } from '../../db/bench/rows.ts';
import { reconcileSlots } from '../../db/ledger/slots.ts';
import { sql } from '../../db/pool.ts';
import { readOpenConversations } from '../../db/web/read-conversations.ts';
import { until } from '../support/actors.ts';
import { useDatabase } from '../support/database.ts';
import { type HttpRig, useRigs } from '../support/http-rig.ts';
import { ask, emptyLedger, makeMain, makePerson, type Person, run } from '../support/ledger.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { piNote, piSystem, toolTurn } from '../support/pi-turns.ts';
import { useSignIn } from '../support/sign-in-rig.ts';
import { SseClient, type StreamRefused } from '../support/sse-client.ts';

const eventsPath = (slug: string) => `/workspaces/${slug}/mentor/events`;
const refusal = (opening: Promise<SseClient>): Promise<StreamRefused> =>
  opening.then(
    () => Promise.reject(new Error('it was opened')),
    (error: StreamRefused) => error,
  );

describe('an event stream', () => {
  const database = useDatabase();
  const openRig = useRigs(database);
  let rig: HttpRig;
  beforeEach(async () => {
    await emptyLedger(database.db);
    await reconcileSlots(database.db, 4);
    rig = await openRig({ pingMs: 50 });
  });

  it('says its first word at once, is not compressed and has no length: a proxy has nothing to wait for', async () => {
    const stream = await rig.events({ headers: { 'accept-encoding': 'gzip, br' } });
    await stream.next('snapshot');
    const { headers } = stream;
    expect([headers['content-encoding'], headers['content-length']]).to.deep.equal([undefined, undefined]);
    expect([headers['cache-control'], headers['x-accel-buffering']]).to.deep.equal(['no-store, no-transform', 'no']);
    expect(stream.comments[0]?.trim(), 'before anything was read from the database').to.equal('ok');
    await stream.close();
  });

  for (const headers of [
    { 'if-none-match': '*' },
    { 'if-modified-since': 'Fri, 01 Jan 2100 00:00:00 GMT' },
    { 'last-event-id': '42' },
    { range: 'bytes=100-' },
  ]) {
    it(`begins with a snapshot whatever the client says that it has: ${Object.keys(headers)[0]}`, async () => {
      const { body } = await rig.ask('Why?');
      const stream = await rig.events({ headers });
      const { conversations } = await stream.next('snapshot');
      expect(conversations[0]?.turns.map(({ id }) => id)).to.deep.equal([body.turn.id]);
      expect(stream.headers['etag']).to.equal(undefined);
      await stream.close();
    });
  }

  it('is told to a client of HTTP/1.0 without chunks, and ends with its connection', async () => {
    const socket = net.connect(rig.webPort, '127.0.0.1');
    let text = '';
    socket.setEncoding('utf8').on('data', (chunk) => {
      text += chunk;
    });
    socket.write(`GET ${eventsPath(rig.slug)} HTTP/1.0\r\nHost: 127.0.0.1:${rig.webPort}\r\n\r\n`);
    const holds = async (words: RegExp) => {
      while (!words.test(text)) await once(socket, 'data');
    };
    await holds(/event: snapshot\ndata: .*\n\n/);
    await rig.ask('Why?');
    await holds(/event: turn\ndata: .*\n\n/);
    const [head = ''] = text.split('\r\n\r\n', 1);
    expect(head).to.match(/^HTTP\/1\.[01] 200 /);
    expect(head.toLowerCase()).to.not.include('transfer-encoding');
    const ended = once(socket, 'close');
    await rig.live.hub.drain();
    await ended;
  });

  it('of a client that closes its half of the connection is over, and leaves nothing behind', async () => {
    const socket = net.connect({ port: rig.webPort, host: '127.0.0.1', allowHalfOpen: true });
    socket.write(`GET ${eventsPath(rig.slug)} HTTP/1.1\r\nHost: 127.0.0.1:${rig.webPort}\r\n\r\n`);
    await once(socket, 'data');
    expect(rig.live.hub.streams).to.equal(1);
    const gone = once(rig.streams, 'closed');
    socket.end();
    await gone;
    expect([rig.live.hub.streams, rig.live.hub.members()]).to.deep.equal([0, []]);
    socket.destroy();
  });

  it('is refused to HEAD as to GET, and HEAD opens none', async () => {
    const head = async (slug: string) => {
      const request = http.request({ port: rig.webPort, host: '127.0.0.1', method: 'HEAD', path: eventsPath(slug) });
      request.end();
      const [response] = (await once(request, 'response')) as [http.IncomingMessage];
      response.resume();
      return [response.statusCode, response.headers['content-type'], response.headers['cache-control']];
    };
    expect(await head(rig.slug)).to.deep.equal([200, 'text/event-stream', 'no-store, no-transform']);
    expect(await head('elsewhere')).to.deep.equal([404, 'application/problem+json', 'no-store']);
    expect(rig.live.hub.streams).to.equal(0);
  });

  it('closes instead of a snapshot when its account is no member any more', async () => {
    const quiet = await openRig({ pingMs: 3_600_000 });
    const stream = await quiet.events();
    await stream.next('snapshot');
    await run(database.db, sql.unsafe`delete from workspace_member where account_id = ${quiet.person.accountId} returning 1`);
    quiet.live.hub.resnapshot(quiet.person);
    await stream.ended;
    expect(stream.received.map(({ event }) => event)).to.deep.equal(['snapshot']);
  });

  it('closes when its workspace is deleted, and cannot be opened again', async () => {
    const stream = await rig.events();
    await stream.next('snapshot');
    const { workspaceId } = rig.person;
    await database.db.transaction(async (tx) => {
      await tx.any(sql.unsafe`delete from workspace_member where workspace_id = ${workspaceId} returning 1` as never);
      await tx.any(sql.unsafe`delete from workspace where id = ${workspaceId} returning 1` as never);
    });
    await stream.ended;
    expect((await refusal(rig.events())).problem.code).to.equal('WORKSPACE_NOT_FOUND');
    expect(rig.live.hub.streams).to.equal(0);
  });

  it('of an account in two workspaces tells of its own workspace only, and only the one of which it is no member any more closes', async () => {
    const { workspaceId } = await makePerson(database.db);
    const second: Person = { workspaceId, accountId: rig.person.accountId };
    await run(
      database.db,
      sql.unsafe`insert into workspace_member (workspace_id, account_id) values (${workspaceId}, ${second.accountId}) returning 1`,
    );
    const [row] = await run(database.db, sql.unsafe`select slug from workspace where id = ${workspaceId}`);
    const slug = String(row?.['slug']);
    const stream = await rig.events();
    const other = await SseClient.connect(`http://127.0.0.1:${rig.webPort}${eventsPath(slug)}`);
    await Promise.all([stream.next('snapshot'), other.next('snapshot')]);
    await rig.ask('in the first');
    const asked = await rig.send('POST', `/workspaces/${slug}/mentor/questions`, { body: { requestId: 'r', text: 'in the second' } });
    expect(asked.status).to.equal(202);
    expect((await stream.next('entry')).text).to.equal('in the first');
    expect((await other.next('entry')).text).to.equal('in the second');
    await run(
      database.db,
      sql.unsafe`update workspace_member set active = false where workspace_id = ${workspaceId} and account_id = ${second.accountId} returning 1`,
    );
    await other.ended;
    const { body } = await rig.ask('in the first again');
    await stream.next('entry', ({ id }) => id === body.entry.id);
    expect(stream.received.filter(({ event }) => event === 'entry')).to.have.length(2);
  });

  it('tells of an end once, with the messages that are shown; no word of a tool, a system entry or a note is sent', async () => {
    const { body } = await rig.ask('Why?');
    const sandbox = await rig.sandbox(body.turn.conversationId);
    const { run: claimed } = (await sandbox.next(5_000)).body;
    const stream = await rig.events();
    await stream.next('snapshot');
    const told: number[] = [];
    rig.live.changes.onChange(({ entryIds }) => void told.push(entryIds.length));
    const [looked, result, said] = toolTurn('Because.', 'What nobody is shown.');
    if (!looked || !result || !said) throw new Error('no turn');
    const entries = [piSystem('What the model alone is told.'), looked, result, said, piNote(result.id, 'A note that nobody is shown.')];
    expect((await sandbox.call(claimed, 'turn/end', { outcome: 'DONE', entries, lastPartial: null })).status).to.equal(204);
    await stream.next('turn', ({ status }) => status === 'DONE');
    const shown = stream.received.flatMap(({ event, data }) => (event === 'entry' ? [data.text] : []));
    expect(shown).to.deep.equal(['Let me look.', 'Because.']);
    expect(told).to.deep.equal([2]);
    expect(JSON.stringify(stream.received)).to.not.match(/nobody is shown|model alone/);
  });

  it('begins with as few bytes and pages of the database for 10,000 entries as for 10 (F7)', async () => {
    const rows = await BenchRows.open(database.url);
    try {
      const beginning = async (entries: number) => {
        const person = await makePerson(database.db);
        await rows.filled(person, entries);
        await rows.analyze();
        const cost = await explain(database.db, (db) => readOpenConversations(db, [person]));
        const size = JSON.stringify(await readOpenConversations(database.db, [person])).length;
        return { pages: cost.reduce((sum, { pages }) => sum + pages, 0), size };
      };
      const [short, long] = [await beginning(10), await beginning(10_000)];
      expect(long.pages).to.be.at.most(short.pages * 2 + 20);
      expect(long.size).to.be.closeTo(short.size, 20);
    } finally {
      await rows.close();
    }
  });
});

describe('an event stream where people sign in', () => {
  const database = useDatabase();
  const openSignIn = useSignIn(database);

  it('of a person who signs in by another email, too, goes on with the conversation that waited there', async () => {
    await emptyLedger(database.db);
    const clock = new ManualClock();
    const site = await openSignIn({ clock });
    await site.invite('ada@example.com');
    const browser = await site.signedIn();
    const stream = await site.rig.events({ headers: { host: 'heph.example', cookie: browser.cookieHeader } });
    expect((await stream.next('snapshot')).conversations).to.deep.equal([]);
    await site.invite('ada@new.example');
    const [row] = await run(database.db, sql.unsafe`select account_id from account_invitation where email = 'ada@new.example'`);
    const invited = { workspaceId: site.rig.person.workspaceId, accountId: row?.['account_id'] as Person['accountId'] };
    const asked = await ask(database.db, invited, await makeMain(database.db, invited), { text: 'Mine?' });
    site.issuer.person = { ...site.issuer.person, email: 'ada@new.example' };
    await site.signedIn();
    const has = () =>
      stream.received.some(
        ({ event, data }) => event === 'snapshot' && data.conversations.some(({ turns }) => turns.some(({ id }) => id === asked.turnId)),
      );
    await until('the page has it', async () => {
      await clock.advanceAsync(250);
      return has();
    });
    expect(stream.over).to.equal(false);
  });

  it('is opened by no cookie whose session has ended, or that never was one, and the answer says where to sign in', async () => {
    await emptyLedger(database.db);
    const site = await openSignIn();
    await site.invite('ada@example.com');
    const browser = await site.signedIn();
    const stale = browser.cookieHeader;
    const open = (cookie: string) => site.rig.events({ headers: { host: 'heph.example', ...(cookie === '' ? {} : { cookie }) } });
    await (await open(stale)).next('snapshot');
    await browser.fetch('POST', '/auth/logout');
    for (const cookie of [stale, stale.replace(/=.*/, `=${'A'.repeat(43)}`), '__Host-heph_session=', '']) {
      const { status, problem } = await refusal(open(cookie));
      expect([status, problem.code, (problem as unknown as { signInUrl: string }).signInUrl]).to.deep.equal([
        401,
        'SIGNED_OUT',
        '/auth/login',
      ]);
    }
  });
});
