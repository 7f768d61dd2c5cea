/**
 * Owns: proof that odd words come back as they were written, from the question to its entry, the stream, the page and the search; and likewise
 * the words of an answer. What cannot be stored is replaced once, and then it is the same everywhere.
 */
import { expect } from 'chai';
import { reconcileSlots } from '../../db/ledger/slots.ts';
import { LIMITS } from '../../src/contract/limits.ts';
import type { Entry } from '../../src/contract/web.ts';
import { codePoints, wellFormedJson } from '../../src/kernel/text.ts';
import { useDatabase } from '../support/database.ts';
import { type HttpRig, useRigs } from '../support/http-rig.ts';
import { emptyLedger } from '../support/ledger.ts';
import { ODD_TEXTS } from '../support/odd-texts.ts';

const L = LIMITS.questionMaxChars;

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

  for (const [name, text, stored = text] of ODD_TEXTS) {
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

  it('are replaced in the strings and keys of what a sandbox stores, and a text about escapes is left alone', () => {
    const kept = (value: unknown) => JSON.parse(wellFormedJson(JSON.stringify(value)));
    expect(kept({ '\u0000k': ['\ud83d', { deep: '\u0000' }] })).to.deep.equal({ '\uFFFDk': ['\uFFFD', { deep: '\uFFFD' }] });
    for (const text of ['\\u0000', '\\\\ud83d', '🟢 \u0001 "', '\\\u0007u0000']) expect(kept(text)).to.equal(text);
  });
});
