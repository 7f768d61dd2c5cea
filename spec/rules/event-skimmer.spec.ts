/**
 * The gateway passes by the bulk of a stream without decoding it. Whatever it passes by must not have mattered: with a comment before each
 * event everything is decoded, and both readings must agree.
 * rule: R15
 */
import { expect } from 'chai';
import fc from 'fast-check';
import { LLM_APIS, type LlmApi } from '../../src/contract/agent.ts';
import { StreamFacts } from '../../src/gateway/stream-facts.ts';

const chat = (choice: object, more: object = {}) => ({ name: '', data: JSON.stringify({ choices: [choice], ...more }) });
const usage = { prompt_tokens: 7, completion_tokens: 3, input_tokens: 7, output_tokens: 3 };
/** What providers send, on any wire, and what comes close to mattering. */
const EVENTS = [
  chat({ delta: { content: 'words' }, finish_reason: null }, { usage: null }),
  chat({ delta: { content: 'an "error", a ping, [DONE]: "usage"' }, finish_reason: null }),
  chat({ delta: { content: '北京 🟢' }, finish_reason: null }),
  chat({ delta: {}, finish_reason: 'stop' }),
  chat({ delta: {}, finish_reason: 'network_error' }),
  { name: '', data: '{"choices":[{"delta":{},"finish_reason": "length"}]}' },
  { name: '', data: '{"choices":[{"delta":{},\n"finish_reason"\n:\n"stop"}]}' },
  { name: '', data: '{"choices":[{"delta":{},"\\u0066inish_reason":"stop"}]}' },
  { name: '', data: JSON.stringify({ choices: [], usage }) },
  { name: '', data: '[DONE]' },
  { name: 'error', data: '{"type":"error"}' },
  // Only their names say it.
  { name: 'error', data: '{}' },
  { name: 'message_stop', data: '{}' },
  { name: 'response.completed', data: JSON.stringify({ response: { usage } }) },
  { name: 'response.completed', data: '{}' },
  { name: '', data: '{"choices":[{"delta":{},"finish_reason":null,"usage":{"prompt_tokens":2}}]}' },
  { name: '', data: '{"error":{"message":"no"}}' },
  { name: 'ping', data: '{"type":"ping"}' },
  { name: 'keepalive', data: '{}' },
  { name: 'message_start', data: JSON.stringify({ type: 'message_start', message: { usage } }) },
  { name: 'content_block_delta', data: '{"type":"content_block_delta","delta":{"text":"words"}}' },
  { name: 'message_delta', data: JSON.stringify({ type: 'message_delta', usage }) },
  { name: 'message_stop', data: '{"type":"message_stop"}' },
  { name: 'response.output_text.delta', data: '{"delta":"words"}' },
  { name: 'response.completed', data: JSON.stringify({ type: 'response.completed', response: { usage } }) },
  { name: 'response.failed', data: '{"type":"response.failed","response":{}}' },
  { name: '', data: 'x'.repeat(5_000) },
];
type Event = (typeof EVENTS)[number];

function toBytes(events: readonly Event[], how: { readonly eol: string; readonly comments: boolean }): Buffer {
  const { eol, comments } = how;
  const text = events.map(({ name, data }) => {
    const fields = [
      ...(comments ? [': c'] : []),
      ...(name === '' ? [] : [`event: ${name}`]),
      ...data.split('\n').map((line) => `data: ${line}`),
    ];
    return fields.map((field) => field + eol).join('') + eol;
  });
  return Buffer.from(text.join(''));
}

function read(api: LlmApi, bytes: Buffer, sizes: readonly number[]) {
  const facts = new StreamFacts(api);
  for (let at = 0, nth = 0; at < bytes.length; nth++) {
    const size = sizes[nth % sizes.length] ?? 1;
    facts.push(bytes.subarray(at, at + size));
    at += size;
  }
  const { betweenEvents } = facts;
  facts.end();
  const { usage: tokens, outcome, finished, over, contentEvents } = facts;
  return { tokens, outcome, finished, over, betweenEvents, content: contentEvents > 0 };
}

describe('a stream that is passed by without decoding', () => {
  it('says the same of its call as one that is decoded, whatever its events and wherever it is cut', () => {
    const streams = fc.record({
      api: fc.constantFrom(...LLM_APIS),
      events: fc.array(fc.constantFrom(...EVENTS), { minLength: 1, maxLength: 12 }),
      eol: fc.constantFrom('\n', '\r\n', '\r'),
      sizes: fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1, maxLength: 5 }),
    });
    fc.assert(
      fc.property(streams, ({ api, events, eol, sizes }) => {
        const skimmed = read(api, toBytes(events, { eol, comments: false }), sizes);
        expect(skimmed).to.deep.equal(read(api, toBytes(events, { eol, comments: true }), [1_000_000]));
      }),
      { numRuns: 2_000 },
    );
  });

  it('is no progress while it holds only signs of life', () => {
    const facts = new StreamFacts('openai-completions');
    for (let nth = 0; nth < 50; nth++) facts.push(Buffer.from(': keepalive\n\n\n\n'));
    facts.push(Buffer.from('event: ping\ndata: {"type":"ping"}\n\n'));
    expect(facts.contentEvents).to.equal(0);
    facts.push(Buffer.from('data: {"choices":[{"delta":{"content":"w"},"finish_reason":null}]}\n\n'));
    expect(facts.contentEvents).to.equal(1);
  });

  it('is between two events only when no part of one has come', () => {
    const facts = new StreamFacts('openai-completions');
    facts.push(Buffer.from('data: {"choices":[]}\n\nda'));
    expect(facts.betweenEvents).to.equal(false);
    facts.push(Buffer.from('ta: {"choices":[]}\n\n'));
    expect(facts.betweenEvents).to.equal(true);
  });
});
