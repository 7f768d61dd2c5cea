/**
 * Owns: proof of what a search finds, in which order, for whom, and that no text fails a write because it is searched.
 * Does not own: the wires (search-wire.spec.ts), what an erasure takes along (erase.spec.ts).
 */
import { expect } from 'chai';
import { type Database, sql } from '../../db/pool.ts';
import { search } from '../../db/search/search.ts';
import { LIMITS } from '../../src/contract/limits.ts';
import type { ConversationId } from '../../src/kernel/ids.ts';
import { parseSearch } from '../../src/kernel/search-text.ts';
import { useDatabase } from '../support/database.ts';
import { ask, emptyLedger, makeMain, makePerson, type Person, run } from '../support/ledger.ts';
import { answer, claimed, endDone } from '../support/scene.ts';
import { makeThread, storeEntry } from '../support/threads.ts';

interface Look {
  readonly conversationId?: ConversationId;
  readonly hitsMax?: number;
}

async function find(
  [db, person]: readonly [Database, Person],
  query: string,
  { conversationId, hitsMax = LIMITS.searchHitsMax }: Look = {},
) {
  const { hits } = await search(db, { member: person, conversationId: conversationId ?? null, terms: parseSearch(query), hitsMax });
  return hits.map(({ words }) => words);
}

describe('a search of one’s conversations', () => {
  const database = useDatabase();
  let person: Person;
  let mainId: ConversationId;
  beforeEach(async () => {
    await emptyLedger(database.db);
    person = await makePerson(database.db);
    mainId = await makeMain(database.db, person);
  });

  const say = (text: string, kind: 'QUESTION' | 'ANSWER' | 'DIGEST' = 'ANSWER') =>
    storeEntry(database.db, { person, conversationId: mainId }, { kind, text });
  const found = (query: string, look?: Look) => find([database.db, person], query, look);

  it('finds questions, answers and digests, and nothing that is not shown', async () => {
    await say('the harbour in the question', 'QUESTION');
    await say('the harbour in the answer');
    await say('the harbour in the digest', 'DIGEST');
    for (const kind of ['TOOL_RESULT', 'SUMMARY', 'SYSTEM'] as const)
      await storeEntry(database.db, { person, conversationId: mainId }, { kind, text: `the harbour in a ${kind}` });
    expect((await found('harbour')).sort()).to.deep.equal([
      'the harbour in the answer',
      'the harbour in the digest',
      'the harbour in the question',
    ]);
  });

  it('shows the entry that says it more often first, and of equal ones the newest', async () => {
    await say('harbour, once');
    await say('harbour, later');
    await say('harbour harbour harbour');
    expect(await found('harbour')).to.deep.equal(['harbour harbour harbour', 'harbour, later', 'harbour, once']);
  });

  it('finds what a turn asked and answered', async () => {
    const it = await claimed(database.db);
    await endDone(it, [answer('Because of the lighthouse.')]);
    expect(await find([database.db, it.person], 'lighthouse')).to.deep.equal(['Because of the lighthouse.']);
    expect(await find([database.db, it.person], 'why')).to.deep.equal(['Why?']);
  });

  const cases: readonly [name: string, text: string, queries: readonly string[], not?: readonly string[]][] = [
    [
      'words inside of a path or a link',
      'see src/kernel/text.ts or https://example.org/a-b?c=d_e',
      ['kernel', 'text.ts', 'text', 'example', 'a-b', 'kernel/text', 'c=d_e'],
    ],
    ['words whatever their case, accents kept', 'Die ÜBUNG in der École', ['übung', 'ÉCOLE', 'die übung']],
    ['words in curly quotes, dashes and brackets', '“hello”—(world)…', ['hello', 'world', '“hello”']],
    ['the beginning of the last word', 'the deployment is done', ['deploy', 'the depl', 'deployment'], ['deploys']],
    [
      'words in quotes only next to each other',
      'red apples and green pears',
      ['"red apples"', '"green pears'],
      ['"red pears"', '"apples red"'],
    ],
    ['entries without an unwanted word', 'one fish two fish', ['fish -red', 'fish -"two red"'], ['fish -one', 'fish -"two fish"']],
    ['Chinese inside of a sentence', '今天北京的天气很好。', ['天气', '北京', '今天', '北京 天气', '"天气很好"'], ['气天', '京北']],
    ['Japanese and Thai inside of a sentence', '明日の天気はどうですか สวัสดีครับ', ['天気', 'どう', 'สวัสดี']],
    ['Korean by the beginning of a word', '데이터베이스를 시작합니다', ['데이터베이스', '시작']],
    ['Arabic and Hebrew with Latin words and digits', 'مرحبا world 42 שלום', ['مرحبا', 'שלום', '42', 'world']],
    ['a part of a word, when no word begins with it', 'the workflow', ['flow', 'orkfl']],
    ['signs and emoji as they are written', 'done 🟢 100% a_b', ['🟢', '100%', '%', 'a_b']],
    ['Persian words with a joiner', 'می‌خواهم', ['می‌خواهم', 'خواهم']],
  ];
  for (const [name, text, queries, not = []] of cases) {
    it(`finds ${name}`, async () => {
      await say(text);
      await say('something else');
      for (const query of queries) expect(await found(query), query).to.deep.equal([text]);
      for (const query of not) expect(await found(query), query).to.not.include(text);
    });
  }

  it('finds entries with any of the words when none has all of them', async () => {
    await say('the staging server');
    await say('the deploy script');
    expect((await found('staging deploy zebra')).sort()).to.deep.equal(['the deploy script', 'the staging server']);
    expect(await found('zebra -staging')).to.deep.equal([]);
  });

  it('finds nothing for a query that has no words, and takes every sign of the query language', async () => {
    await say('a & b | !c');
    for (const query of ['"', '-', '""', '-""', "'", '\\', ':*', '& | ! ( ) <->', '" " -" "', "a'b:*", '-a -b']) await found(query);
    expect(await found('-a')).to.deep.equal([]);
  });

  it('looks in the main conversation, in a thread, or in all of them', async () => {
    const parent = await say('harbour of the main conversation');
    const threadId = await makeThread(database.db, person, { mainId, entryId: parent });
    await storeEntry(database.db, { person, conversationId: threadId }, { kind: 'ANSWER', text: 'harbour of the thread' });
    expect(await found('harbour', { conversationId: mainId })).to.deep.equal(['harbour of the main conversation']);
    expect(await found('harbour', { conversationId: threadId })).to.deep.equal(['harbour of the thread']);
    expect(await found('harbour')).to.have.length(2);
  });

  for (const [count, truncated] of [
    [LIMITS.searchHitsMax - 1, false],
    [LIMITS.searchHitsMax, false],
    [LIMITS.searchHitsMax + 1, true],
  ] as const) {
    it(`says ${truncated ? 'that there are more' : 'that this is all'} for ${count} matches`, async () => {
      for (let n = 0; n < count; n++) await say(`harbour ${n}`);
      const terms = parseSearch('harbour');
      const hits = await search(database.db, { member: person, conversationId: null, terms, hitsMax: LIMITS.searchHitsMax });
      expect([hits.hits.length, hits.truncated]).to.deep.equal([Math.min(count, LIMITS.searchHitsMax), truncated]);
    });
  }

  it('shows a stranger, another workspace and a removed member nothing', async () => {
    // rule: R16
    await say('harbour');
    const colleague = await makePerson(database.db, person.workspaceId);
    const elsewhere = await makePerson(database.db);
    expect(await find([database.db, colleague], 'harbour')).to.deep.equal([]);
    expect(await find([database.db, colleague], 'harbour', { conversationId: mainId })).to.deep.equal([]);
    expect(await find([database.db, { ...person, workspaceId: elsewhere.workspaceId }], 'harbour')).to.deep.equal([]);
    await run(database.db, sql.unsafe`update workspace_member set active = false where account_id = ${person.accountId} returning 1`);
    expect(await found('harbour')).to.deep.equal([]);
    expect(await found('arbou')).to.deep.equal([]);
  });

  const unique = (count: number, from: number) => Array.from({ length: count }, (_, n) => String.fromCodePoint(from + n)).join(' ');
  const hostile: readonly [name: string, text: string][] = [
    ['one line of 1 MB', 'x'.repeat(1_000_000)],
    ['a word of 3 KB', `${'w'.repeat(3_000)} y`],
    ['more words than an index has positions for', Array.from({ length: 40_000 }, (_, n) => `w${n.toString(36)}`).join(' ')],
    ['2 MB of different words', Array.from({ length: 300_000 }, (_, n) => `w${n.toString(36)}`).join(' ')],
    ['different words that need the most room in an index', unique(60_000, 0x10000)],
    ['300 combining marks on each letter', `a${'\u0301\u0316'.repeat(150)} `.repeat(300)],
    ['100,000 Chinese characters', '天气'.repeat(50_000)],
    ['a long text of operators', `\\ ' '' : & | ! ( ) <-> :* `.repeat(5_000)],
  ];
  for (const [name, text] of hostile) {
    it(`stores an answer of ${name}`, async () => {
      const it = await claimed(database.db);
      const entry = answer(text);
      expect(await endDone(it, [entry])).to.deep.include({ status: 'DONE' });
      const [row] = await run(database.db, sql.unsafe`select search_text = ${text} as same from mentor_entry where id = ${entry.id}`);
      expect(row).to.deep.equal({ same: true });
    });
  }

  it('finds a part of a line of 1 MB', async () => {
    const it = await claimed(database.db);
    await endDone(it, [answer(`${'x'.repeat(999_990)}needle`)]);
    expect(await find([database.db, it.person], 'needle')).to.have.length(1);
  });

  it('takes a query at the limit, of one word or of many', async () => {
    await say('harbour');
    for (const query of [
      'x'.repeat(LIMITS.searchQueryMaxChars),
      'ab '.repeat(166),
      '天'.repeat(LIMITS.searchQueryMaxChars),
      '🟢'.repeat(250),
    ])
      expect(await found(query)).to.deep.equal([]);
  });

  it('searches the words of links, not only the text', async () => {
    const it = await claimed(database.db);
    await endDone(it, [{ ...answer('See there.'), searchText: 'See there.\nThe tide table' }]);
    expect(await find([database.db, it.person], 'tide')).to.deep.equal(['See there.\nThe tide table']);
  });

  it('still finds an older question of a queue of questions', async () => {
    await ask(database.db, person, mainId, { text: 'where is the harbour?' });
    await ask(database.db, person, mainId, { text: 'and the church?' });
    expect(await found('harbour')).to.deep.equal(['where is the harbour?']);
  });
});
