/**
 * The LLM gateway, what it refuses: calls of an attempt that may not call, and requests that ask for more than a model.
 * Whatever is refused has no row and sends no byte to the provider. rule: R5  rule: R8
 */
import { request } from 'node:http';
import { expect } from 'chai';
import { openCall } from '../../db/gateway/open-call.ts';
import { sql } from '../../db/pool.ts';
import type { LlmApi } from '../../src/contract/agent.ts';
import { LIMITS } from '../../src/contract/limits.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import { run } from '../support/ledger.ts';
import { nextAttempt, passDeadline, type SeededAttempt, seedAttempt, stopAttempt, usageRows } from '../support/model-attempt.ts';
import { attemptHeaders, type GatewayRig, readBody, settled, useGateway } from '../support/model-gateway.ts';
import { hold, says } from '../support/model-server.ts';

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

  describe('a model call is refused, with no row and no byte to the provider,', () => {
    async function refused(attempt: SeededAttempt, body: unknown, options: Parameters<GatewayRig['call']>[2] = {}) {
      const before = { seen: suite.provider.seen.length, rows: (await usageRows(suite.db, attempt)).length };
      const response = await rig.call(attempt, body, options);
      const problem = (await response.json()) as Record<string, unknown> & { error: Record<string, unknown> };
      expect(response.headers.get('content-type')).to.include('application/problem+json');
      expect(problem).to.include({ status: response.status, type: 'about:blank' });
      expect(problem.error).to.include({ message: problem['detail'] });
      expect({ seen: suite.provider.seen.length, rows: (await usageRows(suite.db, attempt)).length }).to.deep.equal(before);
      return problem;
    }

    it('when its person has stopped the turn', async () => {
      const attempt = await openRig();
      await stopAttempt(suite.db, attempt);
      expect(await refused(attempt, question)).to.include({ status: 409, code: 'MENTOR_TURN_STOPPED', stop: 'developer', retry: 'never' });
    });

    it("when the turn is past its deadline by the database's clock", async () => {
      const attempt = await openRig();
      await passDeadline(suite.db, attempt);
      expect(await refused(attempt, question)).to.include({ status: 409, code: 'MENTOR_TURN_STOPPED', stop: 'deadline' });
    });

    it('when the attempt has lost its run', async () => {
      const attempt = await openRig();
      const second = await nextAttempt(suite.db, attempt);
      expect(await refused(attempt, question)).to.include({ status: 409, code: 'MENTOR_LEASE_LOST' });
      await readBody(await rig.call(second, question));
      await settled(rig);
      expect(await usageRows(suite.db, attempt))
        .to.have.length(1)
        .and.to.have.nested.property('[0].attempt', 2);
    });

    it('when another sandbox names the run', async () => {
      const [attempt, other] = [await openRig(), await seedAttempt(suite.db)];
      const older = { ...attempt.sandbox, sandboxId: other.sandbox.sandboxId };
      for (const sandbox of [other.sandbox, older]) {
        expect(await refused({ ...attempt, sandbox }, question)).to.include({ status: 409, code: 'MENTOR_LEASE_LOST' });
      }
    });

    it('when its sandbox was ended and still holds the run', async () => {
      // rule: R5
      const attempt = await openRig();
      await run(
        suite.db,
        sql.unsafe`
        update sandbox set state = 'ENDED', ended_at = clock_timestamp() where id = ${attempt.sandbox.sandboxId} returning id`,
      );
      expect(await refused(attempt, question)).to.include({ status: 409, code: 'MENTOR_LEASE_LOST' });
    });

    it('when the turn has made its 40 calls, over both of its attempts', async () => {
      const first = await openRig();
      for (let made = 1; made < LIMITS.modelCallsMax; made++) await readBody(await rig.call(first, question));
      const second = await nextAttempt(suite.db, first);
      expect((await rig.call(second, question)).status, 'the 40th').to.equal(200);
      const problem = await refused(second, question);
      expect(problem).to.include({ status: 422, code: 'PROPOSAL_REFUSED' });
      expect(problem.error).to.include({ code: 'call_limit' });
    });

    it('when it would be the 41st, however many are opened at once and at whichever attempt', async () => {
      const first = await seedAttempt(suite.db);
      const open = (attempt: SeededAttempt) => {
        const { runId, epoch, sandbox } = attempt;
        const call = {
          callId: uuidv7<'call'>(),
          hostId: uuidv7<'host'>(),
          api: 'openai-completions',
          callsMax: LIMITS.modelCallsMax,
        } as const;
        return openCall(suite.db, { ...call, ...sandbox, runId, epoch });
      };
      const kinds = async (attempt: SeededAttempt, count: number) => {
        const results = await Promise.all(Array.from({ length: count }, () => open(attempt)));
        return {
          opened: results.filter(({ kind }) => kind === 'opened').length,
          last: results.filter(({ kind }) => kind === 'call_limit').length,
        };
      };
      expect(await kinds(first, LIMITS.modelCallsMax - 1)).to.deep.equal({ opened: 39, last: 0 });
      const second = await nextAttempt(suite.db, first);
      expect(await kinds(second, 8)).to.deep.equal({ opened: 1, last: 7 });
      expect(await usageRows(suite.db, first)).to.have.length(LIMITS.modelCallsMax);
      const other = await seedAttempt(suite.db);
      expect(await kinds(other, LIMITS.modelCallsMax + 1)).to.deep.equal({ opened: 40, last: 1 });
    });

    it('when too many calls of one run are open at once', async () => {
      const attempt = await openRig();
      const holds = [hold(), hold(), hold(), hold()];
      const first = suite.provider.seen.length;
      suite.provider.use((_seen, n) => ({ before: holds[n - first - 1] ?? hold(), reply: says('because') }));
      const open = holds.map(() => rig.call(attempt, question));
      await Promise.all(holds.map((held) => held.arrived));
      expect(await refused(attempt, question)).to.include({ status: 503, code: 'BUSY', retry: 'later' });
      for (const held of holds) held.release();
      for (const response of open) expect((await readBody(await response)).broken).to.equal(false);
    });

    it('when it asks the provider to search, run, fetch or remember something, or names another model', async () => {
      for (const [api, path, members] of [
        ['openai-completions', '/chat/completions', { tools: [{ type: 'web_search' }] }],
        ['openai-completions', '/chat/completions', { web_search_options: {} }],
        ['openai-completions', '/chat/completions', { models: ['other'] }],
        [
          'openai-completions',
          '/chat/completions',
          { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://x/?q' } }] }] },
        ],
        ['openai-responses', '/responses', { tools: [{ type: 'function', name: 'a' }, { type: 'code_interpreter' }] }],
        ['openai-responses', '/responses', { tools: [{ type: 'mcp', server_url: 'https://x' }] }],
        ['openai-responses', '/responses', { background: true }],
        ['openai-responses', '/responses', { previous_response_id: 'resp_of_another' }],
        ['openai-responses', '/responses', { input: [{ role: 'user', content: [{ type: 'input_file', file_url: 'https://x' }] }] }],
        [
          'openai-responses',
          '/responses',
          { input: [{ type: 'function_call_output', output: [{ type: 'input_image', image_url: 'http://x' }] }] },
        ],
        [
          'anthropic-messages',
          '/messages',
          {
            tools: [
              { name: 'read', input_schema: {} },
              { type: 'web_search_20990101', name: 'web_search' },
            ],
          },
        ],
        ['anthropic-messages', '/messages', { mcp_servers: [{ url: 'https://x' }] }],
        [
          'anthropic-messages',
          '/messages',
          { messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'url', url: 'https://x' } }] }] },
        ],
      ] as const) {
        const attempt = await openRig(api);
        expect(await refused(attempt, { ...question, ...members }, { path })).to.include({ status: 400, code: 'BAD_REQUEST' });
      }
    });

    it('when it speaks another wire than the configured one, which it is told', async () => {
      const attempt = await openRig('openai-responses');
      const problem = await refused(attempt, question);
      expect(problem).to.include({ status: 404, code: 'NOT_FOUND' });
      expect(problem['detail']).to.include('openai-responses').and.include('/internal/llm/v1/responses');
    });

    it('when it has a query, no run, a wrong epoch, or a body that is no JSON object', async () => {
      const attempt = await openRig();
      const bad = { status: 400, code: 'BAD_REQUEST' };
      expect(await refused(attempt, question, { path: '/chat/completions?beta=true' })).to.include(bad);
      expect(await refused(attempt, question, { headers: { 'x-agent-run': 'run' } })).to.include(bad);
      expect(await refused(attempt, question, { headers: { 'x-agent-epoch': '-1' } })).to.include(bad);
      for (const body of ['', '[]', '"why?"', '{"model":', 'null']) {
        expect(await refused(attempt, body)).to.include({ status: 400, code: 'BAD_JSON' });
      }
    });

    it('when its body is larger than the gateway takes', async () => {
      const attempt = await openRig();
      const body = { ...question, messages: [{ role: 'user', content: 'x'.repeat(LIMITS.gatewayBodyMaxBytes) }] };
      expect(await refused(attempt, body)).to.include({ status: 413, code: 'BODY_TOO_LARGE' });
      const announced = { ...attemptHeaders(attempt), 'content-length': String(1024 ** 4) };
      const status = await new Promise((resolve, reject) => {
        const call = request(`${rig.url}/internal/llm/v1/chat/completions`, { method: 'POST', headers: announced });
        call.on('response', (response) => resolve(response.statusCode)).on('error', reject);
        call.flushHeaders();
      });
      expect(status).to.equal(413);
    });

    it('when the path is none of the gateway', async () => {
      const attempt = await openRig();
      expect((await rig.call(attempt, question, { path: '/embeddings' })).status).to.equal(404);
      expect((await fetch(`${rig.url}/internal/llm/v1/chat/completions`, { headers: attemptHeaders(attempt) })).status).to.equal(404);
    });
  });
});
