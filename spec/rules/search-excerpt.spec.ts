/**
 * Owns: proof of the piece of a text that a hit shows, and of the places of the words in it.
 */
import { expect } from 'chai';
import { excerptOf, parseSearch } from '../../src/kernel/search-text.ts';
import { codePoints } from '../../src/kernel/text.ts';

describe('the excerpt of a hit', () => {
  const cut = (text: string, query: string, maxChars = 40) =>
    excerptOf(
      text,
      parseSearch(query).wanted.map((term) => term.text),
      maxChars,
    );

  it('points at each word that was looked for', () => {
    const { excerpt, matches } = cut('Big ships in the harbour: HARBOUR ship', 'harbour ship', 100);
    expect(matches.map(({ start, end }) => excerpt.slice(start, end))).to.deep.equal(['ship', 'harbour', 'HARBOUR', 'ship']);
  });

  it('is cut around the match, with a mark where it was cut', () => {
    const { excerpt, matches } = cut(`${'before '.repeat(50)}needle${' after'.repeat(50)}`, 'needle');
    expect(excerpt).to.match(/^…before needle after.*…$/u);
    expect(codePoints(excerpt)).to.equal(40);
    expect(matches).to.have.length(1);
  });

  it('is the head of a text in which the words do not stand together', () => {
    expect(cut('abcdef'.repeat(20), 'zzz')).to.deep.equal({ excerpt: `${'abcdef'.repeat(20).slice(0, 39)}…`, matches: [] });
  });

  for (const length of [39, 40, 41]) {
    it(`of ${length} characters with a limit of 40 keeps whole characters`, () => {
      for (const unit of ['x', '🟢', '👩‍👩‍👧‍👦', '🇩🇪', 'e\u0301']) {
        const text = unit.repeat(60).slice(0, 0) + [...unit.repeat(60)].slice(0, length).join('');
        const { excerpt } = cut(text, 'nothing');
        expect(excerpt.isWellFormed(), unit).to.equal(true);
        expect(codePoints(excerpt), unit).to.equal(Math.min(length, 40));
        expect(excerpt.endsWith('…'), unit).to.equal(length > 40);
      }
    });
  }

  it('keeps whole characters wherever the match is', () => {
    for (let before = 0; before < 60; before++) {
      const { excerpt } = cut(`${'🟢'.repeat(before)}x needle${'🟢'.repeat(60)}`, 'needle');
      expect(excerpt.isWellFormed()).to.equal(true);
      expect(excerpt).to.include('needle');
      expect(codePoints(excerpt)).to.be.at.most(40);
    }
  });

  it('takes every sign of a query as it is', () => {
    for (const sign of ['.*', '(', '[a', '\\', '^$', '?', '{2}', '|', '/', '-x-', 'a.b'])
      expect(() => cut('a.b .* ( [a \\ ^$ ? {2} | / -x-', sign)).to.not.throw();
    expect(cut('aab a.b', 'a.b').matches).to.deep.equal([{ start: 4, end: 7 }]);
  });
});
