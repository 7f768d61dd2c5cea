/**
 * The LLM gateway, what comes out: streams on the three wires, however their bytes are cut, their tokens, and how they end.
 * rule: R15
 * cases: D1, D3, D5, D9, D11, D13
 */

import { isRetryableAssistantError } from '@earendil-works/pi-ai';
import { expect } from 'chai';
import fc from 'fast-check';
import { LLM_APIS, type LlmApi } from '../../src/contract/agent.ts';
import { SseDecoder, type SseEvent } from '../../src/gateway/sse-decoder.ts';
import { type SeededAttempt, usageRows } from '../support/model-attempt.ts';
import { type GatewayRig, readBody, readUntil, settled, until, useGateway } from '../support/model-gateway.ts';
import { API_PATHS, askWithPi } from '../support/model-loop.ts';
import { calls, type StreamReply, says, startModelServer, textSteps } from '../support/model-server.ts';

const WORDS = '北京 🟢 👩‍👩‍👧‍👦 "data: [DONE]"\r\n\u2028event: done';
const question = { stream: true, messages: [{ role: 'user', content: 'why?' }], input: [{ role: 'user', content: 'why?' }] };

describe('a streamed answer through the LLM gateway', () => {
  const suite = useGateway();
  let rig: GatewayRig;
  let attempt: SeededAttempt;

  async function open(api: LlmApi = 'openai-completions'): Promise<void> {
    ({ rig, attempt } = await suite.open({ api }));
  }

  async function ask(api: LlmApi, reply: StreamReply) {
    await open(api);
    suite.provider.use(() => reply);
    const body = await readBody(await rig.call(attempt, question, { path: API_PATHS[api] }));
    await settled(rig);
    const rows = await usageRows(suite.db, attempt);
    expect(rows).to.have.length(1);
    return { ...body, row: rows[0] };
  }

  describe('arrives byte for byte and is metered', () => {
    const usage = { input: 70, output: 9, cacheRead: 20, cacheWrite: 10 };
    const counted = { outcome: 'ok', http_status: 200, input_tokens: 70, output_tokens: 9, cache_read_tokens: 20, cache_write_tokens: 10 };
    const shapes: Record<string, Partial<StreamReply>> = {
      'with line feeds': {},
      'with CRLF': { framing: { eol: '\r\n' } },
      'with bare CR': { framing: { eol: '\r' } },
      'with data over several lines': { framing: { multiline: true, eol: '\r\n' } },
      'without a space after data:': { framing: { noSpace: true } },
      'cut at each byte, inside of characters too': { cutBytes: 1, framing: { eol: '\r\n' } },
    };
    for (const [name, shape] of Object.entries(shapes)) {
      it(`${name}, on all three wires`, async () => {
        for (const api of LLM_APIS) {
          const reply = says(WORDS, { usage, ...shape });
          const direct = await startModelServer(() => reply);
          const response = await fetch(direct.url + API_PATHS[api], {
            method: 'POST',
            body: JSON.stringify({ ...question, model: 'provider-model-9' }),
          });
          const expected = await readBody(response);
          await direct.close();
          const { bytes, broken, row } = await ask(api, reply);
          expect(bytes.equals(expected.bytes), api).to.equal(true);
          expect(broken).to.equal(false);
          expect(row).to.deep.include(counted);
        }
      });
    }

    it('whatever the bytes and wherever they are cut', () => {
      const event = fc.record({
        name: fc.constantFrom('', 'message_delta'),
        data: fc.string({ unit: 'binary' }),
        comment: fc.boolean(),
        eol: fc.constantFrom('\n', '\r', '\r\n'),
      });
      const cuts = fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1 });
      const lines = (data: string) =>
        Buffer.from(data)
          .toString()
          .split(/\r\n|\r|\n/);
      const read = (bytes: Buffer, sizes: readonly number[]) => {
        const events: SseEvent[] = [];
        const decoder = new SseDecoder((found) => events.push(found), 1_000_000);
        for (let at = 0, i = 0; at < bytes.length; at += sizes[i % sizes.length] ?? 1, i++) {
          decoder.push(bytes.subarray(at, at + (sizes[i % sizes.length] ?? 1)));
        }
        decoder.end();
        return events;
      };
      fc.assert(
        fc.property(fc.array(event, { maxLength: 5 }), cuts, (events, sizes) => {
          const fields = events.map(({ name, data, comment, eol }) => [
            ...(comment ? [`: c${eol}`] : []),
            ...(name ? [`event: ${name}${eol}`] : []),
            ...lines(data).map((line) => `data: ${line}${eol}`),
            eol,
          ]);
          expect(read(Buffer.from(fields.flat().join('')), sizes)).to.deep.equal(
            events.map(({ name, data }) => ({ name, data: lines(data).join('\n') })),
          );
        }),
        { numRuns: 300 },
      );
    });

    it('with an event too large to read, which is passed on and not metered', () => {
      const read: SseEvent[] = [];
      const decoder = new SseDecoder((event) => read.push(event), 20);
      decoder.push(Buffer.from(`data: ${'x'.repeat(15)}`));
      decoder.push(Buffer.from(`${'x'.repeat(15)}\ndata: more\n\ndata: next\n\n`));
      expect(read).to.deep.equal([{ name: '', data: 'next' }]);
    });

    it('when the usage chunk has no choices, and when there is none at all', async () => {
      expect((await ask('openai-completions', says('because', { usage: { input: 5, output: 6 } }))).row).to.include({
        input_tokens: 5,
        output_tokens: 6,
      });
      expect((await ask('openai-completions', says('because', { usage: null }))).row).to.include({
        outcome: 'ok',
        input_tokens: null,
        output_tokens: null,
      });
    });

    it('when the model stops for length, or calls a tool', async () => {
      for (const api of LLM_APIS) expect((await ask(api, calls('read', { path: 'INDEX.md' }))).row).to.include({ outcome: 'ok' });
      expect((await ask('openai-completions', says('bec', { finishReason: 'length' }))).row).to.include({ outcome: 'ok' });
      expect((await ask('openai-responses', says('bec', { finishReason: 'incomplete' }))).row).to.include({
        outcome: 'ok',
        output_tokens: 10,
      });
    });
  });

  it('is read by the loop on all three wires, and an answer in pieces is the same text', async () => {
    for (const api of LLM_APIS) {
      await open(api);
      suite.provider.use(() => says(WORDS, { cutBytes: 3 }));
      const message = await askWithPi(rig, attempt, api);
      expect(message.content.map((part) => (part.type === 'text' ? part.text : ''))).to.deep.equal([WORDS]);
      expect(message).to.include({ stopReason: 'stop' });
      expect(message.usage).to.include({ input: 100, output: 10 });
    }
  });

  it('never ends cleanly when the provider breaks off, and the loop takes it for no answer', async () => {
    for (const api of LLM_APIS) {
      for (const end of ['fin', 'drop'] as const) {
        const { text, broken, row } = await ask(api, { steps: textSteps('half an answer', 5), end });
        expect({ api, end, broken }).to.deep.equal({ api, end, broken: true });
        if (end === 'fin') expect(text).to.include('half ');
        expect(row).to.include({ state: 'CLOSED', outcome: 'truncated' });
        const message = await askWithPi(rig, attempt, api);
        expect(message.stopReason).to.equal('error');
        expect(isRetryableAssistantError(message), message.errorMessage).to.equal(true);
      }
    }
  });

  it('carries an error that comes in the stream, and the call counts as failed', async () => {
    for (const api of LLM_APIS) {
      const steps = [...textSteps('half'), { error: { type: 'overloaded_error', message: 'Overloaded' } }];
      const { text, row } = await ask(api, { steps, end: 'fin' });
      expect(text).to.include('overloaded_error');
      expect(row).to.include({ outcome: 'provider_error', http_status: 200 });
    }
    expect((await ask('openai-responses', says('half', { finishReason: 'failed' }))).row).to.include({
      outcome: 'provider_error',
      output_tokens: 10,
    });
  });

  it('ends when the model is done although the provider keeps the connection open', async () => {
    await open('anthropic-messages');
    suite.provider.use(() => says('because', { end: 'linger' }));
    const response = await rig.call(attempt, question, { path: '/messages' });
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    await readUntil(reader, 'message_stop');
    rig.clock.advance(2_000);
    expect(await reader.read()).to.deep.include({ done: true });
    await settled(rig);
    expect(await usageRows(suite.db, attempt)).to.have.nested.property('[0].outcome', 'ok');
  });

  it('waits for a sandbox that reads slowly, which is no silence of the provider', async () => {
    await open();
    const large = 'x'.repeat(1_000_000);
    suite.provider.use(() => ({ steps: Array.from({ length: 40 }, () => ({ text: large })) }));
    const response = await rig.call(attempt, question);
    await until('the gateway stops reading', () => rig.clock.timers === 1 && rig.gateway.stats().inFlight === 1);
    rig.clock.advance(59_000);
    const { bytes, broken } = await readBody(response);
    expect(broken).to.equal(false);
    expect(bytes.length).to.be.greaterThan(40_000_000);
    await settled(rig);
    expect(await usageRows(suite.db, attempt)).to.have.nested.property('[0].outcome', 'ok');
  });

  it('may also come in one piece, with its tokens', async () => {
    await open();
    const body = {
      choices: [{ message: { content: 'because' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 4, completion_tokens: 2 },
    };
    suite.provider.use(() => ({ status: 200, body }));
    const response = await rig.call(attempt, { ...question, stream: false });
    expect(await response.json()).to.deep.equal(body);
    await settled(rig);
    expect(await usageRows(suite.db, attempt))
      .to.have.nested.property('[0]')
      .that.includes({ outcome: 'ok', input_tokens: 4, output_tokens: 2 });
  });
});
