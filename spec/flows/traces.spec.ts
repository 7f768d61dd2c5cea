/**
 * Traces of real turns: servers, their gateways and sandboxes, and a collector beside them. One trace from the question to the stored answer,
 * over attempts and servers; no word of anybody in it; and a collector that is in trouble is nobody's trouble.
 */
import { expect } from 'chai';
import { z } from 'zod';
import { sql } from '../../db/pool.ts';
import { attemptSpanId, traceIdOf, turnSpanId } from '../../src/traces/ids.ts';
import { Flow, PROVIDER_KEY, runnerPids } from '../support/flow.ts';
import { answer, hold } from '../support/model-server.ts';
import { type CollectedSpan, OtlpCollector } from '../support/otlp-collector.ts';
import type { ServerProcess } from '../support/server-process.ts';

const QUESTION = 'Does a zebra dream?';
const WORDS = /zebra|dream|crocodile/i;

describe('the trace of a turn', function () {
  this.timeout(120_000);
  let flow: Flow;
  let collector: OtlpCollector;
  /** The server that the story has come to. */
  let server: ServerProcess;
  before(async () => {
    collector = await OtlpCollector.start();
    flow = await Flow.open({
      script: answer(() => 'Crocodiles do.', { withTools: true }),
      env: { HEPH_TRACES: 'otlp', OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint, HEPH_SANDBOX_WARM: '1' },
    });
    server = await flow.server();
  });
  after(async () => {
    await flow.close();
    await collector.close();
  });

  const runOf = async (turnId: string): Promise<string> => {
    const [row] = await flow.db.any(sql.type(z.object({ id: z.string() }))`select id from agent_run where turn_id = ${turnId}`);
    return row?.id ?? '';
  };
  const named = (name: string) => (span: CollectedSpan) => span.name === name;
  const childrenOf = (id: string) => collector.spans.filter(({ parentId }) => parentId === id);
  const traced = (runId: string) => collector.spans.filter(({ traceId }) => traceId === traceIdOf(runId));

  it('reaches from the question to the stored answer, over server, gateway and sandbox, without a word of anybody', async () => {
    const person = flow.person(server);
    const { turn } = await person.ask(QUESTION);
    expect(await person.waitForTurn(turn.id)).to.include({ status: 'DONE' });
    const runId = await runOf(turn.id);
    const attempt = attemptSpanId(runId, 1);
    // The root is made when the turn has ended; the answer to that call and the tool's line may come a moment later.
    await collector.until(() => collector.spans.some(named('turn')) && childrenOf(attempt).length >= 5);

    const { spans } = collector;
    expect(new Set(spans.map(({ traceId }) => traceId))).to.deep.equal(new Set([traceIdOf(runId)]));
    const roots = spans.filter(({ parentId }) => parentId === null);
    expect(roots.map(({ spanId, name }) => [spanId, name])).to.deep.equal([[turnSpanId(runId), 'turn']]);
    const ids = new Set(spans.map(({ spanId }) => spanId));
    expect(ids.size, 'each span once').to.equal(spans.length);
    for (const { name, parentId } of spans) expect(parentId === null || ids.has(parentId), `the parent of ${name}`).to.equal(true);

    const underRoot = childrenOf(turnSpanId(runId)).map(({ name }) => name);
    expect(underRoot).to.have.members(['wait for a slot and a sandbox', 'invoke_agent Hephaestus']);
    const steps = childrenOf(attempt).map(({ scope, name }) => `${scope}: ${name}`);
    expect(steps.sort()).to.deep.equal([
      'heph.gateway: chat model-of-the-spec',
      'heph.gateway: chat model-of-the-spec',
      'heph.sandbox: execute_tool read',
      'heph.server: GET /internal/agent/runs/:runId/context',
      'heph.server: POST /internal/agent/runs/:runId/turn/end',
    ]);
    expect(spans.find(({ scope }) => scope === 'heph.gateway')?.attributes).to.include({
      ...{ 'gen_ai.operation.name': 'chat', 'gen_ai.provider.name': 'openai', 'gen_ai.request.model': 'model-of-the-spec' },
      ...{ 'gen_ai.usage.input_tokens': 100, 'gen_ai.usage.output_tokens': 10, 'gen_ai.conversation.id': turn.conversationId },
      ...{ 'heph.turn.id': turn.id, 'heph.call.outcome': 'ok', 'http.response.status_code': 200 },
    });
    expect(roots[0]?.attributes).to.include({ 'heph.turn.id': turn.id, 'heph.turn.outcome': 'DONE', 'heph.turn.surface': 'app' });
    for (const { name, startNs, endNs } of spans) expect(endNs >= startNs && startNs > 0n, name).to.equal(true);

    expect(WORDS.test(QUESTION), 'the words would be found').to.equal(true);
    expect(WORDS.test(collector.bodies.join('\n')), 'words in a trace').to.equal(false);
    expect(collector.bodies.join('\n')).to.not.include(PROVIDER_KEY);
    for (const { headers } of flow.model.seen) expect(headers, 'the provider').to.not.have.property('traceparent');
  });

  it('stays one trace over a sandbox that is killed and a server that is left, each attempt linked to the one before', async () => {
    const pauses = [hold(), hold()];
    flow.model.use((seen, n) => {
      const pause = pauses[n - 1 - before];
      return pause ? { steps: [{ text: 'A croc' }, { hold: pause }] } : answer(() => 'Crocodiles do.')(seen, n);
    });
    const [first, before] = [server, flow.model.seen.length];
    const person = flow.person(first);
    const { turn } = await person.ask(QUESTION);
    await pauses[0]?.arrived;
    for (const pid of runnerPids(first.pid)) process.kill(pid, 'SIGKILL');
    await pauses[1]?.arrived;
    server = await flow.server();
    expect(await first.stop(), 'the run is handed on').to.equal(0);
    person.base = flow.person(server).base;
    expect(await person.waitForTurn(turn.id)).to.include({ status: 'DONE', attempt: 2 });
    const runId = await runOf(turn.id);
    await collector.until(() => traced(runId).some(named('turn')) && traced(runId).filter(named('invoke_agent Hephaestus')).length >= 3);

    expect(new Set(collector.spans.map(({ traceId }) => traceId)).size, 'a trace for each of two turns').to.equal(2);
    expect(traced(runId).filter(({ parentId }) => parentId === null)).to.have.length(1);
    const attempts = traced(runId).filter(named('invoke_agent Hephaestus'));
    attempts.sort((a, b) => Number(a.attributes['heph.attempt.epoch']) - Number(b.attributes['heph.attempt.epoch']));
    expect(attempts.map(({ attributes, failed }) => [attributes['heph.attempt.outcome'], failed])).to.deep.equal([
      ['sandbox', true],
      ['handed-on', false],
      ['DONE', false],
    ]);
    expect(attempts.map(({ spanId }) => spanId)).to.deep.equal([1, 2, 3].map((epoch) => attemptSpanId(runId, epoch)));
    expect(attempts.map(({ links }) => links)).to.deep.equal([[], [attemptSpanId(runId, 1)], [attemptSpanId(runId, 2)]]);
    expect(WORDS.test(collector.bodies.join('\n'))).to.equal(false);
  });

  it('costs a turn nothing when its collector refuses or hangs, and the loss is counted', async () => {
    flow.model.use(answer());
    const person = flow.person(server);
    const ask = async (text: string): Promise<void> => {
      const { turn } = await person.ask(text);
      expect(await person.waitForTurn(turn.id)).to.include({ status: 'DONE', attempt: 1 });
    };
    const [taken, bodies] = [collector.spans.length, collector.bodies.length];
    collector.mode = 'refuse';
    await ask('one, while it refuses');
    await server.waitFor('traces_not_sent');
    const metrics = await (await fetch(`http://127.0.0.1:${server.opsPort}/metrics`)).text();
    expect(Number(/heph_trace_spans_total\{outcome="failed"\} (\d+)/.exec(metrics)?.[1])).to.be.above(0);
    collector.mode = 'hang';
    const refused = collector.bodies.length;
    await ask('two, while it hangs');
    await collector.until((_, now) => now.length > refused);
    await ask('three, while it hangs');
    expect(await server.stop(), 'a shutdown does not wait for it').to.equal(0);
    expect([collector.spans.length, collector.bodies.length > bodies]).to.deep.equal([taken, true]);
  });
});
