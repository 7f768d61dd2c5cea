/**
 * Owns: proof that the event stream is read whole, wherever the network cuts it and whatever a person wrote.
 */
import { expect } from 'chai';
import fc from 'fast-check';
import { SseDecoder, type SseFrame } from '../../src/web/net/sse-decoder.ts';

describe('the stream decoder', () => {
  const encoder = new TextEncoder();
  const decodeInPieces = (bytes: Uint8Array, cuts: readonly number[]): SseFrame[] => {
    const decoder = new SseDecoder();
    const frames: SseFrame[] = [];
    let from = 0;
    for (const cut of [...cuts, bytes.length]) {
      frames.push(...decoder.push(bytes.subarray(from, cut)));
      from = cut;
    }
    return frames;
  };
  const words = ['[DONE]', 'data: x', 'event: done', 'a\u2028b\u2029c\u0085d', '👩‍👩‍👧‍👦 שלום ñ', '', ' leading', '</script>'];
  const text = words.map((word) => JSON.stringify({ text: word })).join('|');
  const expected = [
    { event: 'entry', data: text },
    { event: 'message', data: 'first\n second\n' },
    { event: 'turn', data: '{}' },
  ];
  const stream = (end: string): string =>
    [
      `\uFEFF: ping`,
      '',
      'event: entry',
      `data: ${text}`,
      'id: 7',
      '',
      ':',
      'data:first',
      'data:  second',
      'data',
      '',
      'event:lonely',
      '',
      'retry: 1',
      'event:turn',
      'data:{}',
      '',
      '',
    ].join(end);

  for (const [name, end] of [
    ['CRLF', '\r\n'],
    ['CR', '\r'],
    ['LF', '\n'],
  ] as const) {
    it(`reads lines that end with ${name}, cut at every byte and at every pair of bytes`, () => {
      const bytes = encoder.encode(stream(end));
      expect(decodeInPieces(bytes, [])).to.deep.equal(expected);
      for (let cut = 0; cut <= bytes.length; cut++) expect(decodeInPieces(bytes, [cut])).to.deep.equal(expected);
      const everyByte = Array.from(bytes, (_, index) => index);
      expect(decodeInPieces(bytes, everyByte)).to.deep.equal(expected);
    });
  }

  it('reads any text of a person cut anywhere', () => {
    const anyText = fc.string({ unit: fc.constantFrom('a', '\r', '\n', ':', ' ', '\u2028', '👩', 'data: x', '[DONE]', 'é') });
    fc.assert(
      fc.property(fc.array(anyText), fc.array(fc.nat(400)), fc.constantFrom('\n', '\r', '\r\n'), (texts, places, end) => {
        const data = texts.map((value) => JSON.stringify(value));
        const bytes = encoder.encode(data.map((value) => `event: entry${end}data: ${value}${end}${end}`).join(''));
        const cuts = places.filter((place) => place < bytes.length).sort((a, b) => a - b);
        expect(decodeInPieces(bytes, cuts)).to.deep.equal(data.map((value) => ({ event: 'entry', data: value })));
      }),
    );
  });

  it('gives up on an event that never ends instead of filling the memory', () => {
    const decoder = new SseDecoder();
    const piece = encoder.encode('x'.repeat(1_000_000));
    expect(() => {
      for (let count = 0; count < 20; count++) decoder.push(piece);
    }).to.throw('too large');
  });
});
