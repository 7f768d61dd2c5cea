/**
 * Owns: proof that odd words come back as they were written, from the question to its entry, the stream, the page and the search; and likewise
 * the words of an answer. What cannot be stored is replaced once, and then it is the same everywhere.
 */
import { expect } from 'chai';
import { reconcileSlots } from '../../db/ledger/slots.ts';
import { LIMITS } from '../../src/contract/limits.ts';
import type { Entry } from '../../src/contract/web.ts';
import { codePoints } from '../../src/kernel/text.ts';
import { useDatabase } from '../support/database.ts';
import { type HttpRig, useRigs } from '../support/http-rig.ts';
import { emptyLedger } from '../support/ledger.ts';

const FAMILY = '👩‍👩‍👧‍👦';
const FLAGS = '🇩🇪🇫🇷';
const L = LIMITS.questionMaxChars;

/** Each code unit of a text at which it can be cut. */
const cuts = (text: string) => Array.from({ length: text.length }, (_, at) => text.slice(0, at + 1));

/** A name, the words, and what they are afterwards when that is not the same. */
const TEXTS: readonly (readonly [name: string, text: string, stored?: string])[] = [
  ['NUL', "what's the \u0000 weather", "what's the \uFFFD weather"],
  ['lone surrogates', 'a \ud83d b \udc69 c \udc69\ud83d d', 'a \uFFFD b \uFFFD c \uFFFD\uFFFD d'],
  ['a family cut at each code unit', cuts(FAMILY).join(' '), cuts(FAMILY).join(' ').toWellFormed()],
  ['flags cut at each code unit', cuts(FLAGS).join(' '), cuts(FLAGS).join(' ').toWellFormed()],
  ['Arabic and Hebrew with Latin words and digits', 'مرحبا hello 123 שלום abc ٤٥٦'],
  ['a right-to-left override', 'invoice\u202Efdp.exe \u2066x\u2069'],
  ['300 combining marks on one letter', `a${'\u0301'.repeat(300)}`],
  ['line and paragraph separators', 'one\u2028two\u2029three'],
  ['a lone CR, CR LF and tabs', 'one\rtwo\r\nthree\n\tfour\r'],
  ['words of the stream’s own format', 'data: x\n\nevent: done\ndata: [DONE]\n\n: ping\nid: 7\nretry: 1'],
  ['a prompt that quotes </script>', '</script><script>alert(1)</script><!-- <svg/onload=x> ]]>'],
  ['a table of 2,000 columns', `${'|a'.repeat(2_000)}|\n${'|-'.repeat(2_000)}|`],
  ['a list that is nested 5,000 times', '- '.repeat(5_000)],
  ['a byte order mark, joiners and a soft hyphen', '\uFEFFa\u200Db\u200Cc\u00ADd\u2060e'],
  ['composed and decomposed letters', 'é e\u0301 Å Å ﬁ'],
  ['code points outside the basic plane', '𠀀𠀁 𝔘𝔫𝔦 🟢 \u{10FFFF}'],
  ['signs of SQL, JSON and search', `'; drop table x; -- \\ " {"a":"\\u0000"} & | ! ( ) <-> :* %_`],
  ['white space at both ends', '  \n x \t\u00A0\u3000 '],
];

describe('odd words', () => {
  const database = useDatabase();
  const openRig = useRigs(database);
  let rig: HttpRig;
  beforeEach(async () => {
    await emptyLedger(database.db);
    await reconcileSlots(database.db, 4);
    rig = await openRig();
  });

  async function askAndAnswer(question: string, answer: string): Promise<{ entries: Entry[]; heard: Entry[]; posted: Entry }> {
    const tab = await rig.events();
    await tab.next('snapshot');
    const { body } = await rig.ask(question);
    const sandbox = await rig.sandbox(body.turn.conversationId);
    const { body: pulled } = await sandbox.next(5_000);
    expect((await sandbox.answer(pulled.run, answer)).status).to.equal(204);
    const heard = [
      await tab.next('entry', (entry) => entry.kind === 'question'),
      await tab.next('entry', (entry) => entry.kind === 'answer'),
    ];
    const { body: page } = await rig.send('GET', `conversations/${body.turn.conversationId}/entries`);
    return { entries: page.entries, heard, posted: body.entry };
  }

  async function findBoth(): Promise<void> {
    const { body } = await rig.send('GET', 'search?q=needle');
    expect(body.hits.map(({ kind }: { kind: string }) => kind).toSorted()).to.deep.equal(['answer', 'question']);
    for (const { excerpt, matches } of body.hits) {
      expect(excerpt.isWellFormed()).to.equal(true);
      expect(codePoints(excerpt)).to.be.at.most(LIMITS.searchExcerptMaxChars);
      expect(matches.map(({ start, end }: { start: number; end: number }) => excerpt.slice(start, end))).to.deep.equal(['needle']);
    }
  }

  for (const [name, text, stored = text] of TEXTS) {
    it(`(${name}) are the same in the answer to the write, the stream, the page and a search`, async () => {
      const [sent, kept] = [`${text} needle`, `${stored} needle`];
      const { entries, heard, posted } = await askAndAnswer(sent, sent);
      expect(posted.text).to.equal(kept);
      expect(entries.map((entry) => entry.text)).to.deep.equal([kept, kept]);
      expect(entries.map((entry) => entry.parts)).to.deep.equal([[{ type: 'text', text: kept }], [{ type: 'text', text: kept }]]);
      expect(heard).to.deep.equal(entries);
      await findBoth();
    });
  }

  it('one character over the limit of a question are refused, however many bytes they have', async () => {
    for (const text of [`${'🟢'.repeat(L)}x`, 'x'.repeat(L + 1)]) expect((await rig.ask(text)).body.code).to.equal('TEXT_TOO_LONG');
  });

  it('up to the limit of a question keep their last character whole (F3)', async () => {
    for (const text of [`${'x'.repeat(L - 8)} needle🟢`.slice(1), `${'🟢'.repeat(L - 7)} needle`]) {
      await emptyLedger(database.db);
      await reconcileSlots(database.db, 4);
      const fresh = await openRig();
      const { status, body } = await fresh.ask(text);
      expect([status, body.entry.text]).to.deep.equal([202, text]);
      expect((await fresh.send('GET', 'search?q=needle')).body.hits).to.have.length(1);
    }
  });

  it('of 1 MB in one line come back from an answer as they were written', async () => {
    const line = `${'x'.repeat(1_000_000)} needle`;
    const { entries } = await askAndAnswer('a needle', line);
    expect(entries[1]?.text === line).to.equal(true);
    const { body } = await rig.send('GET', 'search?q=xxxx');
    expect(body.hits).to.have.length(1);
  });

  it('that are none are refused before they become a question', async () => {
    for (const text of ['', '   ', '\n\t\r', '\u200B\u2060', '\u2800'])
      expect((await rig.ask(text)).body.code, JSON.stringify(text)).to.equal('TEXT_EMPTY');
  });
});
