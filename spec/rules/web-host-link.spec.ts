/**
 * The panel's side of the talk with the page around it: who is heard, what is taken, where words go.
 */
import { expect } from 'chai';
import { LIMITS } from '../../src/contract/limits.ts';
import { pageContextSchema } from '../../src/contract/web.ts';
import { HostLink, type HostWindow } from '../../src/web/embed/host-link.ts';

const ORIGIN = 'https://wiki.example.com';
const PAGE = { type: 'heph:page', url: `${ORIGIN}/a`, title: 'A page', selection: 'marked words' };

function scene(search = `?host=${encodeURIComponent(ORIGIN)}`) {
  const said: unknown[][] = [];
  let shown = 0;
  const around = { postMessage: (...words: unknown[]) => void said.push(words) } as unknown as HostWindow;
  const link = new HostLink({ search, around, onShown: () => void shown++ });
  const hear = (data: unknown, from: { origin?: string; source?: unknown } = {}) =>
    link.hear({ origin: ORIGIN, source: around as Window, ...from, data } as MessageEvent);
  return { link, said, hear, shown: () => shown };
}

describe('the panel', () => {
  it('takes what the page around it says about itself, and sends it along unless the person takes it out', () => {
    const { link, hear } = scene();
    expect(link.sent()).to.equal(null);
    hear(PAGE);
    const page = { url: `${ORIGIN}/a`, title: 'A page', selection: 'marked words' };
    expect(link.sent()).to.deep.equal(page);
    link.want(false);
    expect([link.sent(), link.page.get()]).to.deep.equal([null, page]);
    link.want(true);
    hear({ ...PAGE, selection: ' \n ' });
    expect(link.sent()).to.deep.equal({ url: `${ORIGIN}/a`, title: 'A page' });
  });

  for (const [who, from] of [
    ['another origin', { origin: 'https://evil.example' }],
    ['another window', { source: {} }],
    ['no window', { source: null }],
    ['a sandboxed frame', { origin: 'null' }],
  ] as const) {
    it(`does not hear ${who}`, () => {
      const { link, hear, shown } = scene();
      hear(PAGE, from);
      hear({ type: 'heph:shown' }, from);
      expect([link.page.get(), shown()]).to.deep.equal([null, 0]);
    });
  }

  it('hears nobody and says nothing when the frame does not name an origin', () => {
    for (const search of ['', '?host=', '?host=*', '?host=null', `?host=${ORIGIN}/path`, '?host=javascript:alert(1)']) {
      const { link, said, hear } = scene(search);
      hear(PAGE, { origin: new URLSearchParams(search).get('host') ?? '' });
      hear(PAGE);
      link.ready();
      link.close();
      expect([link.page.get(), said], search).to.deep.equal([null, []]);
    }
  });

  it('makes nothing of words of another form', () => {
    const { link, hear } = scene();
    for (const data of [null, 7, 'heph:page', {}, { type: 'heph:close' }, { ...PAGE, url: 7 }, { ...PAGE, title: 'x'.repeat(20_001) }])
      hear(data);
    expect(link.page.get()).to.equal(null);
  });

  it('says that it listens and that it wants to be closed to that origin only', () => {
    const { link, said } = scene();
    link.ready();
    link.close();
    expect(said).to.deep.equal([
      [{ type: 'heph:ready' }, ORIGIN],
      [{ type: 'heph:close' }, ORIGIN],
    ]);
  });

  it('tells that it has come into sight', () => {
    const { hear, shown } = scene();
    hear({ type: 'heph:shown' });
    expect(shown()).to.equal(1);
  });

  it('takes as much as the server takes: at each limit all of it, over it a part that still says what it is', () => {
    const { link, hear } = scene();
    const url = (chars: number) => `${ORIGIN}/long?q=`.padEnd(chars, 'x');
    hear({ ...PAGE, url: url(LIMITS.pageUrlMaxChars), title: 't'.repeat(LIMITS.pageTitleMaxChars) });
    expect(link.page.get()).to.deep.include({ url: url(LIMITS.pageUrlMaxChars), title: 't'.repeat(LIMITS.pageTitleMaxChars) });
    hear({ ...PAGE, url: url(LIMITS.pageUrlMaxChars + 1) });
    expect(link.page.get()?.url).to.equal(`${ORIGIN}/long`);
    hear({ ...PAGE, url: `${ORIGIN}/`.padEnd(LIMITS.pageUrlMaxChars + 1, 'x') });
    expect(link.page.get()?.url).to.equal(ORIGIN);
    for (const chars of [LIMITS.pageSelectionMaxChars - 1, LIMITS.pageSelectionMaxChars, LIMITS.pageSelectionMaxChars + 1]) {
      hear({ ...PAGE, selection: '🟢'.repeat(chars), title: `x${'🟢'.repeat(chars)}` });
      expect(pageContextSchema.safeParse(link.page.get()).success).to.equal(true);
      expect(link.page.get()?.title.isWellFormed()).to.equal(true);
    }
  });
});
