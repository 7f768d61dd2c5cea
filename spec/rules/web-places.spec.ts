/**
 * Owns: proof of where a page is by its URL, what is marked in an excerpt, and what a browser remembers of threads.
 */
import { expect } from 'chai';
import { hrefOf, parseRoute } from '../../src/web/route.ts';
import { piecesOf } from '../../src/web/store/excerpts.ts';

const ID = '0199a1b2-0000-7000-8000-000000000001';

describe('the address of a page', () => {
  for (const [search, workspace, threadId, href] of [
    ['', null, null, '/'],
    [`?thread=${ID}`, null, ID, `/?thread=${ID}`],
    [`?thread=${ID}&workspace=forge&x=1`, 'forge', ID, `/?workspace=forge&thread=${ID}`],
    ['?workspace=forge', 'forge', null, '/?workspace=forge'],
    ['?thread=../../etc&workspace=No+Slug', null, null, '/'],
  ] as const) {
    it(`that ends with ${JSON.stringify(search)} is ${href}`, () => {
      const route = parseRoute(search);
      expect(route).to.deep.equal({ workspace, threadId });
      expect(hrefOf(route)).to.equal(href);
    });
  }
});

describe('an excerpt', () => {
  const marked = (excerpt: string, ...matches: [number, number][]) =>
    piecesOf(
      excerpt,
      matches.map(([start, end]) => ({ start, end })),
    )
      .map((piece) => (piece.marked ? `[${piece.text}]` : piece.text))
      .join('');

  it('marks each match and keeps every other word', () => {
    expect(marked('a lease ends, a lease begins', [2, 7], [16, 21])).to.equal('a [lease] ends, a [lease] begins');
    expect(marked('lease', [0, 5])).to.equal('[lease]');
    expect(marked('nothing')).to.equal('nothing');
    expect(marked('\u{1F525}lease', [2, 7])).to.equal('\u{1F525}[lease]');
  });

  it('loses no word to matches that make no sense', () => {
    expect(marked('a lease', [2, 7], [0, 1], [5, 99], [3, 3])).to.equal('a [lease]');
  });
});
