/**
 * An answer that is being written, without servers: folding its reports, taking it to other servers, bounds. Properties over many inputs.
 * cases: C10
 */
import { expect } from 'chai';
import fc from 'fast-check';
import { PAYLOAD_MAX_BYTES, utf8Bytes } from '../../db/live/payloads.ts';
import { LIMITS } from '../../src/contract/limits.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import { PartialText } from '../../src/live/partial-text.ts';
import { packPartial, unpackPartial } from '../../src/live/partial-wire.ts';

describe('an answer in parts', () => {
  const anyText = fc.string({ unit: 'binary', maxLength: 60 });

  it('is the same text however the loop cuts, repeats and overlaps its reports', () => {
    fc.assert(
      fc.property(anyText, fc.array(fc.tuple(fc.nat({ max: 60 }), fc.nat({ max: 20 })), { maxLength: 20 }), (text, cuts) => {
        const words = new PartialText();
        let reached = 0;
        for (const [back, length] of [...cuts, [60, 200] as const]) {
          const offset = Math.max(0, reached - back);
          words.take({ epoch: 1, offset, text: text.slice(offset, reached + length), stage: null, full: false });
          reached = Math.min(text.length, reached + length);
        }
        expect(words.rewrites).to.equal(0);
        expect(words.from(0)).to.equal(text.slice(0, words.length).toWellFormed().replaceAll('\0', '\uFFFD'));
      }),
    );
  });

  it('belongs to the newest attempt only', () => {
    const words = new PartialText();
    const report = (epoch: number, offset: number, text: string) => words.take({ epoch, offset, text, stage: null, full: false });
    report(1, 0, 'first');
    expect(report(2, 5, ' second')).to.equal('resync');
    expect(words.from(0)).to.equal('');
    expect(report(2, 0, 'second')).to.equal('ok');
    expect(report(1, 0, 'an old one, late')).to.equal('ok');
    expect([words.epoch, words.from(0)]).to.deep.equal([2, 'second']);
  });

  it('is rewritten only when a reader would see other words than before', () => {
    const words = new PartialText();
    const full = (text: string) => words.take({ epoch: 1, offset: 0, text, stage: null, full: true });
    full('one two three');
    full('one two');
    words.take({ epoch: 1, offset: 7, text: ' three four', stage: null, full: false });
    expect([words.rewrites, words.from(0)]).to.deep.equal([0, 'one two three four']);
    full('one');
    words.take({ epoch: 1, offset: 3, text: ' other', stage: null, full: false });
    expect([words.rewrites, words.from(0)]).to.deep.equal([1, 'one other']);
  });

  it('grows no further than its limit', () => {
    const words = new PartialText();
    words.take({ epoch: 1, offset: 0, text: 'x'.repeat(LIMITS.partialMaxChars), stage: null, full: false });
    expect(words.take({ epoch: 1, offset: LIMITS.partialMaxChars + 5, text: 'y', stage: 'later', full: false })).to.equal('ok');
    expect([words.length, words.stage]).to.deep.equal([LIMITS.partialMaxChars, 'later']);
  });

  it('fits payloads of any language, and is put together again on the other side', () => {
    const letter = { s: 'a', w: uuidv7(), a: uuidv7(), c: uuidv7(), t: uuidv7(), e: 1, o: 0, g: 'Thinking…' };
    const long = ['x', '漢', '😀', '"\\\n\u0001', '\u2028', '\ud83d'].map((piece) => piece.repeat(9_000));
    const check = (text: string) => {
      const pieces = packPartial({ ...letter, x: text });
      for (const { payload } of pieces) expect(utf8Bytes(payload)).to.be.at.most(PAYLOAD_MAX_BYTES);
      const words = new PartialText();
      for (const { payload } of pieces) {
        const piece = unpackPartial(payload, 'b');
        words.take({ epoch: 1, offset: piece?.o ?? null, text: piece?.x ?? '', stage: piece?.g ?? null, full: piece?.f === true });
      }
      expect(words.from(0)).to.equal(text.slice(0, words.length).toWellFormed().replaceAll('\0', '\uFFFD'));
    };
    for (const text of [...long, '漢'.repeat(2_667), '']) check(text);
    fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 5_000, size: 'max' }), check), { numRuns: 50 });
    expect(packPartial({ ...letter, x: '漢'.repeat(2_667) }).length, 'full payloads').to.equal(2);
  });
});
