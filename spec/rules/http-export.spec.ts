/**
 * A person takes their conversation with them: the whole of it, only theirs, in an order that can be read, with memory that does not grow.
 */
import { once } from 'node:events';
import http from 'node:http';
import { expect } from 'chai';
import { reconcileSlots } from '../../db/ledger/slots.ts';
import { type Database, sql } from '../../db/pool.ts';
import { exportPages, readExportHead } from '../../db/web/read-export.ts';
import { type Export, exportSchema } from '../../src/contract/web.ts';
import { contained } from '../../src/http/web/export-markdown.ts';
import { useDatabase } from '../support/database.ts';
import { type HttpRig, useRigs } from '../support/http-rig.ts';
import { emptyLedger, makeMain, makePerson, type Person, run } from '../support/ledger.ts';
import { fillConversation } from '../support/page-history.ts';

/** The person's main conversation with a past, whose questions were all asked at once. */
async function fill(db: Database, person: Person, { questions, words }: { questions: number; words: string }): Promise<string> {
  const id = await makeMain(db, person);
  await fillConversation(db, id, { questions, words, askedAtOnce: true });
  return id;
}

/** Counts the pages of exports that are read through it. */
function counting(db: Database): { db: Database; reads(): number } {
  let reads = 0;
  const counted = new Proxy(db, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (name !== 'any') return typeof value === 'function' ? value.bind(target) : value;
      return (...args: unknown[]) => {
        if ((args[0] as { sql?: string }).sql?.includes('leader as materialized')) reads += 1;
        return (value as (...args: unknown[]) => unknown).apply(target, args);
      };
    },
  });
  return { db: counted, reads: () => reads };
}

describe('the export of a conversation', () => {
  const database = useDatabase();
  const openRig = useRigs(database);
  let rig: HttpRig;
  beforeEach(async () => {
    await emptyLedger(database.db);
    await reconcileSlots(database.db, 4);
    rig = await openRig();
  });

  const download = async (query: string) => rig.send('GET', `export?${query}`);

  it('has each question followed by its answers, whenever they were asked, and says how the turn ended', async () => {
    await fill(database.db, rig.person, { questions: 45, words: 'Because.' });
    const { status, headers, body } = await download('format=json');
    expect(status).to.equal(200);
    expect(headers.get('content-disposition')).to.match(/^attachment; filename="heph-[a-z0-9-]+-\d{4}-\d\d-\d\d\.json"$/);
    const { entries } = exportSchema.parse(body);
    expect(entries.map(({ kind, text }) => `${kind}: ${text}`)).to.deep.equal(
      Array.from({ length: 45 }, (_, n) => [`question: question ${n + 1}`, 'answer: Because.']).flat(),
    );
    expect(entries.every(({ turn }) => turn?.status === 'DONE')).to.equal(true);
  });

  it('in Markdown has times in the zone of the account, marks what came from Slack, what was deleted, stopped or has no answer', async () => {
    const { db } = database;
    const id = await fill(db, rig.person, { questions: 4, words: 'It is\n\n- hot' });
    await run(db, sql.unsafe`update account set time_zone = 'Asia/Kolkata' where id = ${rig.person.accountId} returning 1`);
    await run(db, sql.unsafe`update mentor_entry set created_at = '2026-10-08T20:00:00Z' where conversation_id = ${id} returning 1`);
    await run(
      db,
      sql.unsafe`update mentor_entry set surface = 'slack', text = E'one\n# two' where seq = 1 and conversation_id = ${id} returning 1`,
    );
    await run(
      db,
      sql.unsafe`update mentor_entry set text = null, search_text = null, erased_at = now() where seq = 6 and conversation_id = ${id} returning 1`,
    );
    await run(db, sql.unsafe`update mentor_turn set status = 'STOPPED' where question_seq = 3 and conversation_id = ${id} returning 1`);
    await run(db, sql.unsafe`delete from mentor_entry where seq = 8 and conversation_id = ${id} returning 1`);
    await run(
      db,
      sql.unsafe`update mentor_turn set status = 'FAILED', error_code = 'ERROR', error_text = 'It broke. Try again.'
        where question_seq = 4 and conversation_id = ${id} returning 1`,
    );
    const { headers, text } = await download('format=markdown');
    expect(headers.get('content-type')).to.equal('text/markdown; charset=utf-8');
    const [head, ...messages] = text.split('\n## ');
    expect(head).to.match(/^# Conversation with \S+\n\nAda · W · \d{4}-\d\d-\d\d \d\d:\d\d · times in Asia\/Kolkata\n$/);
    const name = /^# Conversation with (\S+)/.exec(text)?.[1];
    const at = '2026-10-09 01:30';
    expect(messages).to.deep.equal([
      `You · ${at} · from Slack\n\n> one\n> # two\n`,
      `${name} · ${at}\n\nIt is\n\n- hot\n`,
      `You · ${at}\n\n> question 2\n`,
      `${name} · ${at}\n\n*This message was deleted.*\n`,
      `You · ${at}\n\n> question 3\n`,
      `${name} · ${at}\n\nIt is\n\n- hot\n\n*Stopped.*\n`,
      `You · ${at}\n\n> question 4\n\n*No answer: It broke. Try again.*\n`,
    ]);
  });

  it('says of a deleted entry only that it was there', async () => {
    const id = await fill(database.db, rig.person, { questions: 1, words: 'secret' });
    await run(
      database.db,
      sql.unsafe`update mentor_entry set text = null, search_text = null, erased_at = now() where conversation_id = ${id} returning 1`,
    );
    const { text, body } = await download('format=json');
    expect(text).to.not.include('secret').and.not.include('question 1');
    expect((body as Export).entries.map((entry) => [entry.text, entry.erasedAt !== null])).to.deep.equal([
      ['', true],
      ['', true],
    ]);
  });

  it('is the owner’s alone: another member, a stranger’s id and no conversation at all are the same 404 (rule: R16)', async () => {
    const mine = await fill(database.db, rig.person, { questions: 1, words: 'mine' });
    expect((await download(`format=json&conversationId=${mine}`)).status).to.equal(200);
    const colleague = await openRig({ person: await makePerson(database.db, rig.person.workspaceId) });
    for (const query of ['format=json', 'format=markdown', `format=json&conversationId=${mine}`, 'format=json&conversationId=nonsense']) {
      const { status, body } = await colleague.send('GET', `export?${query}`);
      expect([status, body.code], query).to.deep.equal([404, 'CONVERSATION_NOT_FOUND']);
    }
  });

  it('breaks off when its account is removed from the workspace meanwhile, so that half of it never looks like all of it (rule: R16)', async () => {
    const { db } = database;
    await fill(db, rig.person, { questions: 50, words: 'mine' });
    const head = await readExportHead(db, rig.person, null);
    if (!head) throw new Error('no conversation');
    const pages = exportPages(db, rig.person, head);
    expect((await pages.next()).done).to.equal(false);
    await run(db, sql.unsafe`update workspace_member set active = false where account_id = ${rig.person.accountId} returning 1`);
    const ending = await pages.next().then(
      () => 'went on',
      (error: { code?: string }) => error.code,
    );
    expect(ending).to.equal('CONVERSATION_NOT_FOUND');
    expect((await download('format=json')).body.code).to.equal('WORKSPACE_NOT_FOUND');
  });

  for (const query of ['', 'format=', 'format=pdf', 'format=json&format=markdown']) {
    it(`refuses a format that there is not: ?${query}`, async () => {
      await fill(database.db, rig.person, { questions: 1, words: 'mine' });
      const { status, body } = await download(query);
      expect([status, body.code, body.errors[0].path]).to.deep.equal([400, 'BAD_REQUEST', 'format']);
    });
  }

  it('of 10,000 entries arrives whole, and a page of it is read only when the one before has been taken', async function () {
    this.timeout(60_000);
    const { db } = database;
    const words = 'long words '.repeat(200);
    await fill(db, rig.person, { questions: 5_000, words });
    const { body } = await download('format=json');
    expect((body as Export).entries).to.have.length(10_000);
    const counted = counting(db);
    const head = await readExportHead(db, rig.person, null);
    if (!head) throw new Error('no conversation');
    const pages = exportPages(counted.db, rig.person, head);
    for (let n = 0; n < 3; n++) await pages.next();
    expect(counted.reads(), 'one statement for each page that is taken').to.equal(3);
  });
});

describe('a reader who goes away in the middle of an export', () => {
  const database = useDatabase();
  let counted: ReturnType<typeof counting>;
  const openRig = useRigs({
    get db() {
      return counted.db;
    },
    get url() {
      return database.url;
    },
  });

  it('makes the server read no further: most of the conversation is never touched', async function () {
    this.timeout(60_000);
    counted = counting(database.db);
    await emptyLedger(database.db);
    const rig = await openRig();
    const questions = 1_000;
    await fill(database.db, rig.person, { questions, words: 'w'.repeat(20_000) });
    const response = await new Promise<http.IncomingMessage>((resolve, reject) => {
      const path = `/workspaces/${rig.slug}/mentor/export?format=json`;
      http.get({ host: '127.0.0.1', port: rig.webPort, path, headers: { host: 'localhost' } }, resolve).on('error', reject);
    });
    await once(response, 'readable');
    response.destroy();
    await rig.web.stop(10_000);
    expect(counted.reads())
      .to.be.greaterThan(0)
      .and.be.lessThan(questions / 20 / 2);
  });
});

describe('an answer in a Markdown file', () => {
  for (const [what, given, wanted] of [
    ['an open fence is closed', '```ts\nlet x', '```ts\nlet x\n```'],
    ['a longer fence is closed with its like', '~~~~\n```\nx', '~~~~\n```\nx\n~~~~'],
    ['a closed fence stays', '```\nx\n```\nafter', '```\nx\n```\nafter'],
    ['a comment that never ends is words', 'a\n<!-- b', 'a\n\\<!-- b'],
    ['a script is words', '  <script>alert(1)', '  \\<script>alert(1)'],
    ['HTML in code stays', '```\n<script>\n```', '```\n<script>\n```'],
    ['three backticks inside of a line are no fence', '``` a ` b', '``` a ` b'],
  ] as const) {
    it(`cannot swallow what follows it: ${what}`, () => {
      expect(contained(given)).to.equal(wanted);
    });
  }
});
