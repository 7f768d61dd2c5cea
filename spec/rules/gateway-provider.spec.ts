/**
 * The LLM gateway, when a provider fails: it is silent, says no, cannot be reached, or is no model API. rule: R15
 * cases: D6
 */
import { isContextOverflow, isRetryableAssistantError } from '@earendil-works/pi-ai';
import { expect } from 'chai';
import { LLM_APIS, type LlmApi } from '../../src/contract/agent.ts';
import { CALL_LIMIT, KEY_REFUSED, NOT_AN_ANSWER, STALLED, sealedProblem, UNREACHABLE } from '../../src/gateway/problems.ts';
import { type SeededAttempt, usageRows } from '../support/model-attempt.ts';
import { type GatewayRig, providerAt, readUntil, settled, until, useGateway } from '../support/model-gateway.ts';
import { API_PATHS, askWithPi } from '../support/model-loop.ts';
import { hold, startModelServer, textSteps } from '../support/model-server.ts';

const question = { stream: true, messages: [{ role: 'user', content: 'why?' }], input: [{ role: 'user', content: 'why?' }] };

describe('an answer of the provider', () => {
  const suite = useGateway();
  let rig: GatewayRig;
  let attempt: SeededAttempt;

  async function open(api: LlmApi = 'openai-completions'): Promise<void> {
    ({ rig, attempt } = await suite.open({ api }));
  }

  describe('is cut when the provider is silent', () => {
    const stalled = { outcome: 'stalled', state: 'CLOSED' };

    it('before its response headers: 504 with the code upstream_stalled', async () => {
      await open();
      const n = suite.provider.seen.length + 1;
      suite.provider.use(() => ({ silent: 'hang' }));
      const response = rig.call(attempt, question);
      const seen = await suite.provider.request(n);
      rig.clock.advance(59_999);
      rig.clock.advance(1);
      expect((await response).status).to.equal(504);
      expect(await (await response).json())
        .to.deep.include({ code: 'UPSTREAM_STALLED', retry: 'later' })
        .and.to.have.nested.property('error.code', 'upstream_stalled');
      await seen.aborted;
      await settled(rig);
      expect(await usageRows(suite.db, attempt))
        .to.have.nested.property('[0]')
        .that.includes({ ...stalled, http_status: null });
    });

    it("before its response headers, also by the client library's own timer", async () => {
      ({ rig, attempt } = await suite.open({ bounds: { firstByteTimeoutMs: 50 } }));
      suite.provider.use(() => ({ silent: 'hang' }));
      expect((await rig.call(attempt, question)).status).to.equal(504);
      expect(rig.clock.monotonicMs()).to.equal(0);
    });

    it('between two bytes: an error in the form of the wire, then a broken connection', async () => {
      for (const api of LLM_APIS) {
        await open(api);
        const n = suite.provider.seen.length + 1;
        suite.provider.use(() => ({ steps: textSteps('half'), end: 'hang' }));
        const pi = askWithPi(rig, attempt, api);
        const seen = await suite.provider.request(n);
        await seen.sent;
        await until('the watch on bytes runs', () => rig.clock.timers === 2 && rig.gateway.stats().inFlight === 1);
        await untilStalled(rig, 60_000);
        const message = await pi;
        expect(message).to.include({ stopReason: 'error' });
        expect(message.errorMessage).to.include('upstream_stalled').and.include('The AI model stopped responding.');
        await seen.aborted;
        await settled(rig);
        expect(await usageRows(suite.db, attempt))
          .to.have.nested.property('[0]')
          .that.includes(stalled);
      }
    });

    it('inside of an event: a broken connection', async () => {
      await open();
      suite.provider.use(() => ({ steps: [{ text: 'half' }, { raw: 'data: {"choices":[{"de' }], end: 'hang' }));
      const response = await rig.call(attempt, question);
      const reader = (response.body as ReadableStream<Uint8Array>).getReader();
      await readUntil(reader, '[{"de');
      await untilStalled(rig, 60_000);
      expect(await reader.read().catch(() => 'broken')).to.equal('broken');
    });

    it('but not while content comes, however long the whole answer takes', async () => {
      for (const api of LLM_APIS) {
        ({ rig, attempt } = await suite.open({ api, callBounds: { unverifiedMaxMs: 600_000 } }));
        const holds = Array.from({ length: 5 }, hold);
        suite.provider.use(() => ({ steps: holds.flatMap((held, i) => [{ hold: held }, { text: `word-${i} ` }]) }));
        const response = await rig.call(attempt, question, { path: API_PATHS[api] });
        const reader = (response.body as ReadableStream<Uint8Array>).getReader();
        for (const [i, held] of holds.entries()) {
          rig.clock.advance(50_000);
          held.release();
          await readUntil(reader, `word-${i} `);
        }
        await settled(rig);
        expect(rig.gateway.stats().ended).to.deep.equal({ ok: 1 });
      }
    });

    it('with comments and pings for ever: they are no content', async () => {
      for (const api of LLM_APIS) {
        // The clock runs faster here than the database answers.
        ({ rig, attempt } = await suite.open({ api, callBounds: { unverifiedMaxMs: 600_000 } }));
        const holds = Array.from({ length: 8 }, hold);
        const steps = [
          ...textSteps('half'),
          ...holds.flatMap((held, i) => [{ hold: held }, i % 2 ? { ping: true as const } : { comment: `tick ${i}` }]),
        ];
        suite.provider.use(() => ({ steps, end: 'hang' }));
        const response = await rig.call(attempt, question, { path: API_PATHS[api] });
        const reader = (response.body as ReadableStream<Uint8Array>).getReader();
        await readUntil(reader, 'half');
        for (const held of holds.slice(0, 7)) {
          rig.clock.advance(25_000);
          held.release();
          await reader.read();
        }
        rig.clock.advance(4_999);
        expect(rig.gateway.stats().inFlight).to.equal(1);
        rig.clock.advance(1);
        await readUntil(reader, 'upstream_stalled');
        rig.clock.advance(1_000);
        expect(await reader.read().catch(() => 'broken')).to.equal('broken');
        await settled(rig);
        expect(await usageRows(suite.db, attempt))
          .to.have.nested.property('[0]')
          .that.includes(stalled);
      }
    });
  });

  describe('is not there when the provider', () => {
    it('refuses the key: the sandbox gets 502, no words of the provider, and no 401 that looks like its own', async () => {
      for (const status of [401, 403]) {
        await open();
        suite.provider.use(() => ({ status, body: { error: { message: 'bad key sk-123' } }, headers: { 'set-cookie': 'a=b' } }));
        const response = await rig.call(attempt, question);
        const text = await response.text();
        expect(response.status).to.equal(502);
        expect(JSON.parse(text)).to.include({ code: 'UPSTREAM_ERROR', detail: KEY_REFUSED.detail });
        expect(text).to.not.include('sk-123');
        await settled(rig);
        expect(await usageRows(suite.db, attempt))
          .to.have.nested.property('[0]')
          .that.includes({ outcome: 'provider_error', http_status: status });
      }
    });

    it('refuses the key with an answer without end, which nobody reads', async () => {
      await open();
      const n = suite.provider.seen.length + 1;
      suite.provider.use(() => ({ status: 401, body: 'x'.repeat(12_000_000) }));
      expect((await rig.call(attempt, question)).status).to.equal(502);
      await (await suite.provider.request(n)).aborted;
    });

    it('says no: its status, its words and Retry-After pass, its other headers do not', async () => {
      await open();
      const body = { error: { message: "This model's maximum context length is 8192 tokens.", code: 'context_length_exceeded' } };
      const headers = { 'retry-after': '7', 'set-cookie': ['a=b', 'c=d'], 'openai-organization': 'acme', 'x-ratelimit-limit': '5' };
      for (const status of [400, 413, 429, 500, 503, 529]) {
        suite.provider.use(() => ({ status, body, headers }));
        const response = await rig.call(attempt, question);
        expect(response.status).to.equal(status);
        expect(await response.json()).to.deep.equal(body);
        expect(response.headers.get('retry-after')).to.equal('7');
        expect([...response.headers.keys()])
          .to.not.include.members(['set-cookie'])
          .and.not.include('openai-organization')
          .and.not.include('x-ratelimit-limit');
      }
      suite.provider.use(() => ({ status: 400, body }));
      expect(isContextOverflow(await askWithPi(rig, attempt, 'openai-completions'))).to.equal(true);
    });

    it('cannot be reached: 502 that names the setting, and never its address', async () => {
      const gone = await startModelServer();
      await gone.close();
      ({ rig, attempt } = await suite.open({ config: providerAt(gone.url) }));
      const response = await rig.call(attempt, question);
      const text = await response.text();
      expect(response.status).to.equal(502);
      expect(JSON.parse(text)).to.include({ code: 'UPSTREAM_UNREACHABLE' });
      expect(text).to.include('HEPH_LLM_BASE_URL').and.not.include('127.0.0.1');
      await open();
      suite.provider.use(() => ({ silent: 'drop' }));
      expect((await rig.call(attempt, question)).status).to.equal(502);
      await settled(rig);
      expect(await usageRows(suite.db, attempt))
        .to.have.nested.property('[0]')
        .that.includes({ outcome: 'unreachable', http_status: null });
    });

    it('is no model API: a page of a web site, a redirect, or compressed bytes', async () => {
      await open();
      for (const reply of [
        { status: 200, body: '<html>', headers: { 'content-type': 'text/html' } },
        { status: 302, headers: { location: 'http://169.254.169.254/' } },
        { status: 200, body: '{}', headers: { 'content-encoding': 'gzip' } },
      ]) {
        suite.provider.use(() => reply);
        const response = await rig.call(attempt, question);
        expect(response.status).to.equal(502);
        expect(response.headers.has('location')).to.equal(false);
        expect(await response.json()).to.include({ code: 'UPSTREAM_ERROR' });
      }
    });
  });

  it('is explained in words that do not make the loop call again, so that only the status decides', async () => {
    const sealed = [sealedProblem({ kind: 'lost' }), sealedProblem({ kind: 'stopped', stop: 'deadline' })];
    for (const { code, errorCode, detail } of [UNREACHABLE, KEY_REFUSED, STALLED, NOT_AN_ANSWER, CALL_LIMIT, ...sealed]) {
      const message = { stopReason: 'error', errorMessage: JSON.stringify({ code, errorCode, detail }), content: [] };
      expect(isRetryableAssistantError(message as never), detail).to.equal(false);
    }
  });
});

/** Moves time until the silence of the provider is noticed. */
async function untilStalled(rig: GatewayRig, ms: number): Promise<void> {
  rig.clock.advance(ms);
  await until('the call is cut', () => rig.gateway.stats().inFlight === 0);
}
