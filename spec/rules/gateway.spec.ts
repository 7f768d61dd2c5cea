/**
 * The LLM gateway, what goes out: which headers, keys and members of a request reach the provider, and the one row of each call.
 * rule: R15
 * Refusals, streams, failures of the provider and the end of an attempt are in the files beside this one.
 */
import { expect } from 'chai';
import { closeCalls, closeUnknownCalls } from '../../db/gateway/close-calls.ts';
import { openCall } from '../../db/gateway/open-call.ts';
import type { LlmApi } from '../../src/contract/agent.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import { type SeededAttempt, usageRows } from '../support/model-attempt.ts';
import { type GatewayRig, PROVIDER_KEY, PROVIDER_MODEL, providerAt, readBody, settled, useGateway } from '../support/model-gateway.ts';
import { hold, says } from '../support/model-server.ts';
import { named, SteeredDatabase } from '../support/steered-database.ts';

const question = { model: 'ours', stream: true, messages: [{ role: 'user', content: 'why?' }] };

describe('the LLM gateway', () => {
  const suite = useGateway();
  let rig: GatewayRig;

  async function openRig(api?: LlmApi): Promise<SeededAttempt> {
    suite.provider.use(() => says('because'));
    const opened = await suite.open(api ? { api } : {});
    rig = opened.rig;
    return opened.attempt;
  }

  describe('a model call of a sandbox', () => {
    it("carries the provider's key and nothing of the sandbox on the OpenAI wires", async () => {
      for (const [api, path] of [
        ['openai-completions', '/chat/completions'],
        ['openai-responses', '/responses'],
      ] as const) {
        const attempt = await openRig(api);
        const n = suite.provider.seen.length + 1;
        const headers = {
          cookie: 'session=1',
          'x-stainless-os': 'Linux',
          'user-agent': 'pi/1',
          'x-api-key': 'mine',
          'x-forwarded-for': '1.2.3.4',
        };
        await readBody(await rig.call(attempt, question, { path, headers }));
        const seen = await suite.provider.request(n);
        expect(seen.path).to.equal(`/v1${path}`);
        expect(Object.keys(seen.headers).sort()).to.deep.equal(
          ['accept', 'accept-encoding', 'authorization', 'connection', 'content-length', 'content-type', 'host', 'user-agent'].sort(),
        );
        expect(seen.headers).to.include({ authorization: `Bearer ${PROVIDER_KEY}`, 'user-agent': 'heph', 'accept-encoding': 'identity' });
      }
    });

    it("carries the provider's key and the client's Anthropic version on the Anthropic wire", async () => {
      const attempt = await openRig('anthropic-messages');
      const n = suite.provider.seen.length + 1;
      const headers = { 'anthropic-version': '2099-01-01', 'anthropic-beta': 'interleaved-thinking', 'x-api-key': 'mine' };
      await readBody(await rig.call(attempt, question, { path: '/messages?beta=true', headers }));
      await readBody(await rig.call(attempt, question, { path: '/messages' }));
      const [withVersion, without] = [await suite.provider.request(n), await suite.provider.request(n + 1)];
      expect(withVersion.path).to.equal('/v1/messages?beta=true');
      expect(withVersion.headers).to.include({
        'x-api-key': PROVIDER_KEY,
        'anthropic-version': '2099-01-01',
        'anthropic-beta': 'interleaved-thinking',
      });
      expect(without.path).to.equal('/v1/messages');
      expect(without.headers).to.include({ 'x-api-key': PROVIDER_KEY, 'anthropic-version': '2023-06-01' });
      for (const seen of [withVersion, without]) {
        expect(seen.headers).to.not.have.any.keys('authorization', 'x-agent-run', 'x-agent-epoch', 'cookie');
        expect(JSON.stringify(seen.headers)).to.not.include(attempt.sandbox.sandboxId).and.not.include(attempt.runId);
      }
    });

    it('asks for the configured model and for usage, and leaves the rest of the request as it is', async () => {
      const attempt = await openRig();
      const n = suite.provider.seen.length + 1;
      const tools = [{ type: 'function', function: { name: 'read', parameters: {} } }];
      const sent = {
        ...question,
        tools,
        temperature: 0.5,
        stream_options: { chunk: 1 },
        messages: [{ role: 'user', content: 'nul \u0000 \ud800 🟢' }],
      };
      await readBody(await rig.call(attempt, sent));
      const { body } = await suite.provider.request(n);
      expect(body).to.deep.equal({ ...sent, model: PROVIDER_MODEL, stream_options: { chunk: 1, include_usage: true } });
    });

    it('carries no key when none is configured', async () => {
      const { rig, attempt } = await suite.open({ config: { ...providerAt(suite.provider.url), apiKey: null } });
      const n = suite.provider.seen.length + 1;
      await readBody(await rig.call(attempt, question));
      expect((await suite.provider.request(n)).headers).to.not.have.any.keys('authorization', 'x-api-key');
    });

    it('finds the API below whatever base address is configured', async () => {
      for (const [api, path, base, expected] of [
        ['openai-completions', '/chat/completions', '/api/v4/', '/api/v4/chat/completions'],
        ['openai-completions', '/chat/completions', '/v1?version=7', '/v1/chat/completions?version=7'],
        ['anthropic-messages', '/messages?beta=true', '/v1/', '/v1/messages?beta=true'],
        ['anthropic-messages', '/messages', '/proxy', '/proxy/v1/messages'],
      ] as const) {
        const n = suite.provider.seen.length + 1;
        const { rig, attempt } = await suite.open({ config: providerAt(suite.provider.url + base, api) });
        await readBody(await rig.call(attempt, question, { path }));
        expect((await suite.provider.request(n)).path).to.equal(expected);
      }
    });
  });

  describe('the row of a model call', () => {
    it('is committed before the first byte of the call leaves, and closed once when it ends', async () => {
      const attempt = await openRig();
      const atProvider = hold();
      suite.provider.use(() => ({ before: atProvider, reply: says('because', { usage: { input: 70, output: 9, cacheRead: 30 } }) }));
      const response = rig.call(attempt, question);
      await atProvider.arrived;
      expect(await usageRows(suite.db, attempt))
        .to.have.length(1)
        .and.to.have.nested.property('[0].state', 'OPEN');
      atProvider.release();
      await readBody(await response);
      await settled(rig);
      const [row, ...more] = await usageRows(suite.db, attempt);
      expect(more).to.deep.equal([]);
      expect(row).to.deep.include({ state: 'CLOSED', outcome: 'ok', http_status: 200, attempt: 1, epoch: 1, run_id: attempt.runId });
      expect(row).to.deep.include({ api: 'openai-completions', model: PROVIDER_MODEL });
      expect(row).to.deep.include({ input_tokens: 70, output_tokens: 9, cache_read_tokens: 30 });
    });

    it('keeps its first outcome when it is closed again', async () => {
      const attempt = await openRig();
      await readBody(await rig.call(attempt, question));
      await settled(rig);
      const [row] = await usageRows(suite.db, attempt);
      const closing = { callId: row?.id as never, outcome: 'stalled', httpStatus: 500 } as const;
      const tokens = { inputTokens: 1, outputTokens: 1, cacheReadTokens: 1, cacheWriteTokens: 1 };
      expect(await closeCalls(suite.db, [{ ...closing, ...tokens }])).to.equal(0);
      expect(await usageRows(suite.db, attempt)).to.deep.equal([row]);
    });

    it('is closed as one that sent nothing when nobody knows whether it was opened', async () => {
      const db = new SteeredDatabase(suite.db);
      db.loseReplies(named('gateway_open_call'));
      const { rig: own, attempt } = await suite.open({ db });
      const before = suite.provider.seen.length;
      const response = await own.call(attempt, question);
      expect(response.status).to.equal(503);
      await response.text();
      await settled(own);
      expect(suite.provider.seen).to.have.length(before);
      expect(await usageRows(suite.db, attempt)).to.have.nested.property('[0].outcome', 'unreachable');
    });

    it('is closed as unknown by the sweep when its server died, and only then', async () => {
      const attempt = await openRig();
      const names = {
        runId: attempt.runId,
        epoch: 1,
        ...attempt.sandbox,
        hostId: uuidv7<'host'>(),
        api: 'openai-completions',
        callsMax: 40,
      } as const;
      expect(await openCall(suite.db, { callId: uuidv7<'call'>(), ...names })).to.include({
        kind: 'opened',
        turnId: attempt.turnId,
        attempt: 1,
      });
      expect(await closeUnknownCalls(suite.db, { openMs: 3_600_000, overMs: 3_600_000 }, 100)).to.equal(0);
      expect(await closeUnknownCalls(suite.db, { openMs: 0, overMs: 0 }, 100)).to.equal(1);
      expect(await usageRows(suite.db, attempt)).to.have.nested.property('[0].outcome', 'unknown');
    });

    it('leaves one log line with ids, outcome and numbers, and no word of anybody', async () => {
      const attempt = await openRig();
      suite.provider.use(() => says('marzipan from the model'));
      await readBody(await rig.call(attempt, { ...question, messages: [{ role: 'user', content: 'marzipan from the person' }] }));
      suite.provider.use(() => ({ status: 400, body: { error: { message: 'marzipan from the provider' } } }));
      await readBody(await rig.call(attempt, question));
      await settled(rig);
      expect(rig.lines.map(({ event, outcome, status }) => ({ event, outcome, status }))).to.deep.equal([
        { event: 'model_call', outcome: 'ok', status: 200 },
        { event: 'model_call', outcome: 'provider_error', status: 400 },
      ]);
      expect(rig.lines[0]).to.include({ turnId: attempt.turnId, runId: attempt.runId, attempt: 1, inputTokens: 100, outputTokens: 10 });
      expect(JSON.stringify(rig.lines)).to.not.include('marzipan').and.not.include(PROVIDER_KEY).and.not.include(attempt.sandbox.sandboxId);
      expect(rig.gateway.stats()).to.deep.equal({
        inFlight: 0,
        closingsWaiting: 0,
        connectionsPaused: 0,
        ended: { ok: 1, provider_error: 1 },
      });
    });
  });
});
