/**
 * The context folder as its sources build it: fixed documents, INDEX.md, item documents over the agent wire, sizes, times and fences.
 */
import { expect } from 'chai';
import fc from 'fast-check';
import type { MentorContextRequest } from '../../db/context/read-request.ts';
import { readContextRequest } from '../../db/context/read-request.ts';
import { reconcileSlots } from '../../db/ledger/slots.ts';
import { sql } from '../../db/pool.ts';
import { ContextDesk } from '../../src/context/desk.ts';
import { documentBytes, fitItems, fitText } from '../../src/context/fit.ts';
import { isFolderPath } from '../../src/context/folder-path.ts';
import { ContextRegistry } from '../../src/context/registry.ts';
import { conversationSource } from '../../src/context/sources/conversation/source.ts';
import { userSource } from '../../src/context/sources/user/source.ts';
import { workspaceSource } from '../../src/context/sources/workspace/source.ts';
import type { ContentSource, ContextLoader } from '../../src/context/spi.ts';
import { tar } from '../../src/context/tar.ts';
import { contextTime } from '../../src/context/times.ts';
import { LIMITS } from '../../src/contract/limits.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import {
  type AccountId,
  type ConversationId,
  type EntryId,
  type RunId,
  type TurnId,
  uuidv7,
  type WorkspaceId,
} from '../../src/kernel/ids.ts';
import { silentLog } from '../../src/kernel/log.ts';
import { useDatabase } from '../support/database.ts';
import { type HttpRig, useRigs } from '../support/http-rig.ts';
import { emptyLedger, makePerson, run } from '../support/ledger.ts';

const REQUEST: MentorContextRequest = {
  workspace: { id: uuidv7<'workspace'>() as WorkspaceId, name: 'Home', slug: 'home' },
  account: { id: uuidv7<'account'>() as AccountId, displayName: 'Ada', timeZone: 'Europe/Berlin' },
  conversationId: uuidv7<'conversation'>() as ConversationId,
  turnId: uuidv7<'turn'>() as TurnId,
  questionEntryId: uuidv7<'entry'>() as EntryId,
  now: '2026-10-12T12:41:00.000Z',
};

function source(more: Partial<ContentSource>): ContentSource {
  const paths = more.paths ?? ['inputs/context/a.json'];
  const documents = async () => paths.map((path) => ({ path, says: 'something', content: { path }, maxBytes: 1_000 }));
  return { name: 'a source', paths, documents, ...more };
}

function loader(prefix: string): ContextLoader {
  return { prefix, index: async () => `## ${prefix}`, load: async () => ({ kind: 'notFound', text: 'no' }) };
}

const registry = (sources: readonly ContentSource[], loaders: readonly ContextLoader[] = []) =>
  new ContextRegistry({ sources, loaders, log: silentLog });

describe('the documents of a turn', () => {
  it('show a time with its weekday, in the zone of the account, with the offset of that day', () => {
    expect(contextTime('2026-10-12T12:41:00.000Z', 'Europe/Berlin')).to.equal('Mon 2026-10-12 14:41 +02:00');
    expect(contextTime('2026-12-12T12:41:00.000Z', 'Europe/Berlin')).to.equal('Sat 2026-12-12 13:41 +01:00');
    expect(contextTime('2026-10-12T23:59:00.000Z', 'UTC')).to.equal('Mon 2026-10-12 23:59 +00:00');
    expect(contextTime('2026-10-12T00:10:00.000Z', 'America/St_Johns')).to.equal('Sun 2026-10-11 21:40 -02:30');
    expect(contextTime('2026-10-12T23:10:00.000Z', 'Asia/Kathmandu')).to.equal('Tue 2026-10-13 04:55 +05:45');
  });

  it('are listed once each in INDEX.md, as indented JSON, with the same bytes each time', async () => {
    const whole = registry([userSource, workspaceSource], [loader('repos/')]);
    const files = await whole.files(REQUEST);
    expect(files.map(({ path }) => path)).to.deep.equal(['INDEX.md', 'inputs/context/user.json', 'inputs/context/workspace.json']);
    const index = files[0]?.content ?? '';
    for (const { path } of files.slice(1)) expect(index.split(path)).to.have.length(2);
    expect(index).to.match(/\n## repos\/\n$/);
    expect(files[1]?.content).to.equal('{\n  "name": "Ada",\n  "timeZone": "Europe/Berlin"\n}\n');
    expect(JSON.parse(files[2]?.content ?? '')).to.include({ slug: 'home', preparedAt: 'Mon 2026-10-12 14:41 +02:00' });
    expect(tar(await whole.files(REQUEST)).equals(tar(files))).to.equal(true);
  });

  it('have one owner for each path: a server with two does not start', () => {
    const twice = [source({ name: 'one' }), source({ name: 'two' })];
    expect(() => registry(twice)).to.throw(RangeError, 'inputs/context/a.json');
    const items = source({ items: 'inputs/context/issue/' });
    expect(() => registry([items, source({ paths: ['inputs/context/issue/1.json'] })])).to.throw(RangeError, 'inputs/context/issue/');
    expect(() => registry([items, source({ paths: [], items: 'inputs/context/issue/open/' })])).to.throw(RangeError);
    expect(() => registry([items, source({ paths: [], items: 'inputs/context/issue/' })])).to.throw(RangeError);
    expect(() => registry([], [loader('repos/'), loader('repos/')])).to.throw(RangeError, 'repos/');
    for (const path of ['INDEX.md', '../a.json', 'inputs/context/../a.json', '/inputs/context/a.json', 'elsewhere/a.json'])
      expect(() => registry([source({ paths: [path] })]), path).to.throw(RangeError);
    for (const prefix of ['repos', 'inputs/', 'inputs/context/', '../', '/'])
      expect(() => registry([source({})], [loader(prefix)]), prefix).to.throw(RangeError);
    registry([items], [loader('repos/')]);
  });

  it('never leave over their limit: what a source built too large is said, and not sent', async () => {
    const sized = (bytes: number): ContentSource =>
      source({
        async documents() {
          const bare = documentBytes({ text: '' });
          return [{ path: 'inputs/context/a.json', says: 'a', content: { text: 'x'.repeat(bytes - bare) }, maxBytes: 500 }];
        },
      });
    for (const [bytes, sent] of [
      [499, true],
      [500, true],
      [501, false],
    ] as const) {
      const content = (await registry([sized(bytes)]).files(REQUEST))[1]?.content ?? '';
      if (sent) expect(Buffer.byteLength(content)).to.equal(bytes);
      else expect(JSON.parse(content)).to.deep.equal({ omittedForSize: true, bytes: 501 });
    }
  });

  it('say how much they left out when they are cut to their size, by the item and by the code point', () => {
    const items = Array.from({ length: 40 }, (_, nth) => ({ nth }));
    const build = (kept: readonly unknown[], omitted: number) => ({ kept, ...(omitted > 0 ? { omitted } : {}) });
    const full = documentBytes(build(items, 0));
    expect(fitItems(items, full, build)).to.not.have.property('omitted');
    const cut = fitItems(items, full - 1, build) as { kept: unknown[]; omitted: number };
    expect(cut.kept.length + cut.omitted).to.equal(40);
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.integer({ min: 60, max: 200 }), (text, maxBytes) => {
        const fitted = fitText(text, maxBytes, (kept, truncated) => ({ ...(truncated ? { truncated } : {}), text: kept })) as {
          text: string;
          truncated?: boolean;
        };
        expect(documentBytes(fitted)).to.be.at.most(maxBytes);
        expect(text.startsWith(fitted.text) && fitted.text.isWellFormed()).to.equal(true);
        expect(fitted.text === text).to.equal(fitted.truncated !== true);
      }),
    );
  });

  it('have paths in one normal form', () => {
    for (const path of ['a', 'a/b.json', 'repos/x@feature/y', 'ü/ä', 'a..b/c', 'x'.repeat(LIMITS.documentPathMaxChars)])
      expect(isFolderPath(path), path).to.equal(true);
    const bad = ['', '/', '/a', 'a/', 'a//b', '.', '..', '../a', 'a/../b', 'a/./b', 'a/..', 'a\u0000b', 'a\nb', 'a\\..\\b', 'a\ud800b'];
    for (const path of [...bad, 'x'.repeat(LIMITS.documentPathMaxChars + 1)]) expect(isFolderPath(path), path).to.equal(false);
  });
});

describe('item documents over the agent wire', () => {
  const database = useDatabase();
  const openRig = useRigs(database);
  let rig: HttpRig;
  beforeEach(async () => {
    await emptyLedger(database.db);
    await reconcileSlots(database.db, 4);
    rig = await open();
  });

  const whole = () => registry([userSource, workspaceSource, conversationSource(database.db)]);
  const open = (person?: HttpRig['person']) =>
    openRig({
      items: new ContextDesk({ db: database.db, registry: whole(), clock: systemClock, log: silentLog }),
      ...(person ? { person } : {}),
    });

  async function running(of: HttpRig = rig, text = 'Why?', conversationId?: string) {
    const { body } = await of.ask(text, conversationId ? { conversationId } : {});
    const sandbox = await of.sandbox(body.turn.conversationId);
    const pulled = await sandbox.next(5_000);
    const claim = pulled.body.run as { id: string; epoch: number };
    const read = async (path: string) => sandbox.call(claim, 'turn/sandbox/document', { path });
    const message = (entryId: string) => read(`inputs/context/message/${entryId}.json`);
    return { sandbox, entry: body.entry, turn: body.turn, claim, read, message };
  }

  async function facts(claim: { id: string }) {
    const request = await readContextRequest(database.db, claim.id as RunId);
    if (!request) throw new Error('no request');
    const file = (await whole().files(request)).find(({ path }) => path === 'inputs/context/conversation.json');
    return JSON.parse(file?.content ?? '');
  }

  it('tell how the questions of the conversation ended, and lead to each message', async () => {
    const first = await running();
    await first.sandbox.answer(first.claim, 'Because.');
    const second = await running(rig, 'And this?', first.turn.conversationId);
    await second.sandbox.call(second.claim, 'turn/end', { outcome: 'FAILED', reason: 'ERROR', entries: [], lastPartial: null });
    const third = await running(rig, 'Once more?', first.turn.conversationId);
    await rig.ask('Later', { conversationId: first.turn.conversationId });
    const told = await facts(third.claim);
    expect(told).to.deep.include({ kind: 'main conversation', questions: { asked: 2, answered: 1, stopped: 0, failed: 1 }, threads: [] });
    expect(told).to.not.have.any.keys('omittedMessages', 'omittedThreads');
    expect(told.latestMessages.map((one: { kind: string; ended?: string }) => [one.kind, one.ended])).to.deep.equal([
      ['question', 'FAILED'],
      ['answer', undefined],
      ['question', 'DONE'],
    ]);
    expect(JSON.stringify(told)).to.not.match(/Why|Because|Once more|Later/);
    const answer = await third.read(told.latestMessages[1].resource);
    expect(answer.status).to.equal(200);
    expect(answer.body.path).to.equal(told.latestMessages[1].resource);
    expect(JSON.parse(answer.body.content)).to.include({ text: 'Because.', from: 'the assistant', surface: 'app', untrusted: true });
    expect(JSON.parse((await third.read(told.latestMessages[2].resource)).body.content)).to.include({
      text: 'Why?',
      from: 'the developer',
    });
  });

  it('list 20 messages and count the others', async () => {
    const first = await running();
    await first.sandbox.answer(first.claim, 'Because.');
    await run(
      database.db,
      sql.unsafe`
        insert into mentor_entry (id, workspace_id, conversation_id, seq, kind, surface, text)
        select gen_random_uuid(), ${rig.person.workspaceId}, ${first.turn.conversationId}, 100 + n, 'DIGEST', 'app', 'digest ' || n
        from generate_series(1, 18) n returning id`,
    );
    await run(database.db, sql.unsafe`update mentor_conversation set last_seq = 200 where id = ${first.turn.conversationId} returning id`);
    const second = await running(rig, 'More?', first.turn.conversationId);
    expect((await facts(second.claim)).latestMessages).to.have.length(20);
    expect(await facts(second.claim)).to.not.have.property('omittedMessages');
    await second.sandbox.answer(second.claim, 'Yes.');
    const third = await running(rig, 'And?', first.turn.conversationId);
    const told = await facts(third.claim);
    expect([told.latestMessages.length, told.omittedMessages]).to.deep.equal([20, 2]);
  });

  it('cut a very long message to 256 KiB and say so', async () => {
    const first = await running();
    await first.sandbox.answer(first.claim, '\u0001ü'.repeat(100_000));
    const [entry] = await run(database.db, sql.unsafe`select id from mentor_entry where kind = 'ANSWER'`);
    const second = await running(rig, 'More?', first.turn.conversationId);
    const { body } = await second.message(String(entry?.['id']));
    const content = JSON.parse(body.content);
    expect(Buffer.byteLength(body.content)).to.be.within(LIMITS.documentMaxBytes - 10, LIMITS.documentMaxBytes);
    expect([content.truncated, content.text.slice(0, 4)]).to.deep.equal([true, '\u0001ü\u0001ü']);
  });

  it('are those of the account’s own tree: another account’s, an erased one and one that still waits are all the same 404', async () => {
    // rule: R16
    const own = await running();
    const colleague = await makePerson(database.db, rig.person.workspaceId);
    const theirs = await running(await open(colleague), 'A secret?');
    const stranger = await running(await open(await makePerson(database.db)), 'Another secret?');
    const waiting = await rig.ask('Later', { conversationId: own.turn.conversationId });
    expect((await own.message(own.entry.id)).status).to.equal(200);
    for (const id of [
      theirs.entry.id,
      stranger.entry.id,
      waiting.body.entry.id,
      uuidv7(),
      'x',
      '',
      '../user',
      own.entry.id.toUpperCase(),
    ]) {
      const answer = await own.message(id);
      expect([answer.status, answer.body.code], id).to.deep.equal([404, 'DOCUMENT_NOT_FOUND']);
    }
    await run(
      database.db,
      sql.unsafe`update mentor_entry set text = null, search_text = null, erased_at = now() where id = ${own.entry.id} returning id`,
    );
    expect((await own.message(own.entry.id)).status).to.equal(404);
  });

  it('are found from a thread of the same tree too', async () => {
    const own = await running();
    await own.sandbox.answer(own.claim, 'Because.');
    const threadId = uuidv7();
    await run(
      database.db,
      sql.unsafe`insert into mentor_conversation (id, workspace_id, account_id, parent_conversation_id, parent_entry_id)
        values (${threadId}, ${rig.person.workspaceId}, ${rig.person.accountId}, ${own.turn.conversationId}, ${own.entry.id}) returning id`,
    );
    const inThread = await running(rig, 'In the thread?', threadId);
    expect(JSON.parse((await inThread.message(own.entry.id)).body.content)).to.include({
      text: 'Why?',
      conversation: 'the main conversation',
    });
    expect((await facts(inThread.claim)).kind).to.equal('thread');
    const main = await running(rig, 'Main again', own.turn.conversationId);
    const told = await facts(main.claim);
    expect(told.threads).to.deep.equal([{ startedAt: told.threads[0].startedAt, resource: `inputs/context/message/${own.entry.id}.json` }]);
    expect(JSON.parse((await main.message(inThread.entry.id)).body.content)).to.include({ conversation: 'a thread' });
  });

  it('are 404 at a path that no source has, and at every path that is in no normal form', async () => {
    const { read } = await running();
    for (const path of [
      ...['inputs/context/user.json', 'inputs/context/issue/1.json', 'INDEX.md', '/etc/passwd', '../../etc/passwd', 'repos/x'],
      ...['inputs/context/message/../user.json', './inputs/context/message/x.json', 'inputs//context/message/x.json', 'a\u0000b', '\ud800'],
    ]) {
      const answer = await read(path);
      expect([answer.status, answer.body.code], path).to.deep.equal([404, 'DOCUMENT_NOT_FOUND']);
    }
    for (const path of ['', 'x'.repeat(LIMITS.documentPathMaxChars + 1)]) expect((await read(path)).status).to.equal(400);
    expect((await read('x'.repeat(LIMITS.documentPathMaxChars))).status).to.equal(404);
  });

  it('are refused to an attempt that lost its run, was stopped or is past its deadline, and to a removed member', async () => {
    // rule: R5
    const own = await running();
    const refusedWith = async (call: Promise<{ status: number; body: { code: string; stop?: string } }>) => {
      const { status, body } = await call;
      return [status, body.code, body.stop];
    };
    const stale = own.sandbox.call({ ...own.claim, epoch: 0 }, 'turn/sandbox/document', {
      path: `inputs/context/message/${own.entry.id}.json`,
    });
    expect(await refusedWith(stale)).to.deep.equal([409, 'MENTOR_LEASE_LOST', undefined]);
    const member = (active: boolean) =>
      run(database.db, sql.unsafe`update workspace_member set active = ${active} where account_id = ${rig.person.accountId} returning 1`);
    await member(false);
    expect((await own.message(own.entry.id)).status).to.equal(404);
    await member(true);
    await run(database.db, sql.unsafe`update agent_run set deadline_at = now() - interval '1 ms' where id = ${own.claim.id} returning id`);
    expect(await refusedWith(own.message(own.entry.id))).to.deep.equal([409, 'MENTOR_TURN_STOPPED', 'deadline']);
    await rig.send('PATCH', `turns/${own.turn.id}/status`, { body: { status: 'STOPPED' } });
    expect(await refusedWith(own.message(own.entry.id))).to.deep.equal([409, 'MENTOR_TURN_STOPPED', 'developer']);
  });
});
