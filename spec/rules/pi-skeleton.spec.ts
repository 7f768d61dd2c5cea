/**
 * Owns: proof that a skeleton holds no word of the entry, whatever Pi or a forger wrote into it, and that it still pairs a call and its result.
 */
import { expect } from 'chai';
import fc from 'fast-check';
import { piSkeleton } from '../../src/kernel/pi-skeleton.ts';

const CANARY = 'two words';
const AT = '2026-10-08T07:12:03.120Z';

/** The value with every text in it replaced. */
function saying(value: unknown, words: string): unknown {
  if (typeof value === 'string') return words;
  if (Array.isArray(value)) return value.map((one) => saying(one, words));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, saying(one, words)]));
}

const ANSWER = {
  role: 'assistant',
  content: [
    { type: 'thinking', thinking: CANARY, thinkingSignature: CANARY },
    { type: 'text', text: CANARY, textSignature: CANARY },
    { type: 'toolCall', id: 'call_1|fc_2', name: 'read', arguments: { path: CANARY }, thoughtSignature: CANARY },
  ],
  api: 'anthropic-messages',
  provider: CANARY,
  model: CANARY,
  usage: { input: 7, output: 3, cacheRead: 2, cacheWrite: 1, totalTokens: 13, note: CANARY, cost: { input: 1, total: 2, note: CANARY } },
  stopReason: 'toolUse',
  errorMessage: CANARY,
  responseId: CANARY,
  timestamp: 1_790_000_000_000,
};
const RESULT = {
  role: 'toolResult',
  toolCallId: 'call_1|fc_2',
  toolName: 'read',
  content: [{ type: 'text', text: CANARY }],
  details: { a: CANARY },
  isError: true,
  timestamp: 5,
};

const entryOf = (message: unknown) => ({ type: 'message', id: 'e1', parentId: 'e0', timestamp: AT, message, extra: CANARY });
const skeletonOf = (entry: unknown) => piSkeleton(JSON.stringify(entry));

describe('the skeleton of an erased entry', () => {
  it('keeps the calls of an answer, its usage and its place', () => {
    expect(JSON.parse(String(skeletonOf(entryOf(ANSWER))))).to.deep.equal({
      type: 'message',
      id: 'e1',
      parentId: 'e0',
      timestamp: AT,
      message: {
        role: 'assistant',
        content: [{ type: 'toolCall', id: 'call_1|fc_2', name: 'read', arguments: {} }],
        api: 'anthropic-messages',
        provider: 'erased',
        model: 'erased',
        usage: { input: 7, output: 3, cacheRead: 2, cacheWrite: 1, totalTokens: 13, cost: { input: 1, total: 2 } },
        stopReason: 'toolUse',
        timestamp: 1_790_000_000_000,
      },
    });
  });

  it('keeps what a tool result needs to be found by its call', () => {
    const { message } = JSON.parse(String(skeletonOf(entryOf(RESULT))));
    expect(message).to.deep.equal({
      role: 'toolResult',
      toolCallId: 'call_1|fc_2',
      toolName: 'read',
      content: [],
      isError: true,
      timestamp: 5,
    });
  });

  it('is nothing for a question, a summary, an edit or a system entry', () => {
    expect(piSkeleton(null)).to.equal(null);
    for (const message of [{ role: 'user', content: CANARY }, { role: 'system', content: CANARY }, null, 'x', 7, []])
      expect(skeletonOf(entryOf(message))).to.equal(null);
    for (const type of ['compaction', 'context_edit', 'message2']) expect(skeletonOf({ ...entryOf(ANSWER), type })).to.equal(null);
    for (const entry of [null, 7, 'x', [], [entryOf(ANSWER)]]) expect(skeletonOf(entry)).to.equal(null);
  });

  it('holds no words where Pi has ids, names, reasons and times', () => {
    for (const message of [ANSWER, RESULT]) {
      const forged = { ...entryOf(saying(message, CANARY)), id: 'e1', parentId: CANARY, timestamp: CANARY };
      const whole = { ...forged, message: { ...(forged.message as object), role: message.role } };
      const skeleton = skeletonOf(whole);
      expect(skeleton ?? '').to.not.include('words');
    }
  });

  it('of any message holds no text of it but ids and names without spaces', () => {
    const json = fc.letrec((tie) => ({
      value: fc.oneof(
        fc.constant(CANARY),
        fc.integer(),
        fc.boolean(),
        fc.constant(null),
        fc.array(tie('value'), { maxLength: 3 }),
        tie('object'),
      ),
      object: fc.dictionary(
        fc.constantFrom(
          'type',
          'text',
          'id',
          'name',
          'content',
          'arguments',
          'usage',
          'cost',
          'input',
          'stopReason',
          'toolCallId',
          'toolName',
          'api',
          'timestamp',
          'isError',
        ),
        tie('value'),
        { maxKeys: 5 },
      ),
    })).object;
    fc.assert(
      fc.property(fc.constantFrom('assistant', 'toolResult'), json, (role, fields) => {
        const skeleton = skeletonOf(entryOf({ ...(fields as object), role }));
        return skeleton === null || !skeleton.includes('words');
      }),
    );
  });

  it('leaves out a call whose id or name cannot pair, and a result likewise', () => {
    const calls = [
      { type: 'toolCall', id: '', name: 'read' },
      { type: 'toolCall', id: 'x'.repeat(513), name: 'read' },
      { type: 'toolCall', id: 'a', name: 'b c' },
    ];
    expect(JSON.parse(String(skeletonOf(entryOf({ ...ANSWER, content: calls })))).message.content).to.deep.equal([]);
    const longest = { type: 'toolCall', id: 'x'.repeat(512), name: 'read' };
    expect(JSON.parse(String(skeletonOf(entryOf({ ...ANSWER, content: [longest] })))).message.content).to.have.length(1);
    expect(skeletonOf(entryOf({ ...RESULT, toolCallId: 'a b' }))).to.equal(null);
  });

  it('reads a payload with \\u0000 and a lone surrogate', () => {
    const payload =
      '{"type":"message","id":"e1","parentId":null,"timestamp":"2026-10-08T07:12:03.120Z","message":{"role":"assistant","content":[{"type":"text","text":"\\u0000 \\ud83d"}]}}';
    expect(JSON.parse(String(piSkeleton(payload))).message.content).to.deep.equal([]);
  });
});
