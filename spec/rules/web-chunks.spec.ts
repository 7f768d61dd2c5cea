/**
 * Owns: proof that a long conversation is cut into pieces that stay together while messages come above and below, and that making its
 * items again costs only what changed.
 */
import { expect } from 'chai';
import fc from 'fast-check';
import { type Chunk, chunked, chunkSize } from '../../src/web/store/chunks.ts';
import type { ChatAction } from '../../src/web/store/state.ts';
import { rememberedTimeline, timeline } from '../../src/web/store/timeline.ts';
import { connected } from '../support/page-client.ts';
import { WebLedger } from '../support/page-ledger.ts';

interface Item {
  readonly id: string;
}
const items = (from: number, to: number): Item[] => Array.from({ length: to - from }, (_, n) => ({ id: `m${from + n}` }));
const idsOf = (chunks: readonly Chunk<Item>[]) => chunks.flatMap((chunk) => chunk.items.map(({ id }) => id));

describe('the pieces of a long conversation', () => {
  it('hold every message once and in order, however it grew', () => {
    const growth = fc.array(fc.record({ above: fc.nat(60), below: fc.nat(60) }), { maxLength: 8 });
    fc.assert(
      fc.property(growth, (steps) => {
        let [from, to] = [5_000, 5_001];
        let chunks: readonly Chunk<Item>[] = [];
        for (const { above, below } of steps) {
          [from, to] = [from - above, to + below];
          const all = items(from, to);
          chunks = chunked(all, chunks);
          expect(idsOf(chunks)).to.deep.equal(all.map(({ id }) => id));
          for (const chunk of chunks)
            expect(chunk.items.length)
              .to.be.greaterThan(0)
              .and.be.lessThan(2 * chunkSize);
        }
      }),
    );
  });

  it('are the same objects after an older page came above and a message below: only the last one is drawn again', () => {
    const now = items(1_000, 1_100);
    const before = chunked(now, []);
    const after = chunked([...items(950, 1_000), ...now, { id: 'new' }], before);
    expect(before.slice(0, -1).every((chunk) => after.includes(chunk))).to.equal(true);
    expect(after.at(-1)?.items.at(-1)?.id).to.equal('new');
  });

  it('begin anew when the messages are other ones, and there is none without messages', () => {
    const before = chunked(items(0, 50), []);
    expect(idsOf(chunked(items(100, 103), before))).to.deep.equal(['m100', 'm101', 'm102']);
    expect(chunked([], before)).to.deep.equal([]);
  });
});

describe('the items of a conversation that were made before', () => {
  it('are the objects that they were while only the answer at the end grows', () => {
    const ledger = new WebLedger();
    for (let n = 0; n < 30; n++) {
      ledger.ask(`q${n}`, `question ${n}`);
      ledger.claim();
      ledger.end('DONE', [`answer ${n}`]);
    }
    ledger.ask('last', 'and now?');
    ledger.claim();
    const client = connected(ledger);
    const remember = rememberedTimeline();
    const before = remember(client.state, client.state.mainId);
    const from = ledger.log.length;
    ledger.write('One');
    client.act(...(ledger.log.slice(from) as ChatAction[]));
    const after = remember(client.state, client.state.mainId);
    expect(after).to.deep.equal(timeline(client.state, client.state.mainId));
    expect(after.filter((item, index) => item !== before[index]).map(({ kind }) => kind)).to.deep.equal(['question', 'answer']);
  });
});
