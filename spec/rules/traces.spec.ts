/**
 * What traces are made of: ids that every server agrees on, spans that hold no words, a queue that has an end, and nothing at all when they are off.
 */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { GatewayClient } from '../../sandbox-runner/gateway-client.ts';
import { ConfigError, readConfig } from '../../src/config.ts';
import type { AgentRun } from '../../src/contract/agent.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import { silentLog } from '../../src/kernel/log.ts';
import { attemptSpanId, callSpanId, traceIdOf, turnSpanId, waitSpanId } from '../../src/traces/ids.ts';
import { OtlpSink, openTracer } from '../../src/traces/otlp.ts';
import { type Span, TurnTracer } from '../../src/traces/turn-tracer.ts';
import { ManualClock } from '../support/manual-clock.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const QUEUE_MAX = 2_048;

function remembering(isSampled: (traceId: string) => boolean = () => true): { tracer: TurnTracer; spans: Span[] } {
  const spans: Span[] = [];
  const sink = { add: (span: Span) => void spans.push(span), stop: async () => undefined };
  return { spans, tracer: new TurnTracer({ sink, clock: systemClock, isSampled, agentName: 'Heph' }) };
}

describe('the ids of a trace', () => {
  it('are the same wherever they are asked for, differ between turns, and are never zeros', () => {
    const runs = Array.from({ length: 500 }, () => uuidv7());
    const ids = runs.flatMap((run) => [turnSpanId(run), waitSpanId(run), attemptSpanId(run, 1), attemptSpanId(run, 2), callSpanId(run)]);
    expect(new Set(ids).size).to.equal(ids.length);
    expect(new Set(runs.map(traceIdOf)).size).to.equal(runs.length);
    for (const run of runs) {
      expect(traceIdOf(run))
        .to.match(/^[0-9a-f]{32}$/)
        .and.to.match(/[1-9a-f]/)
        .and.to.equal(traceIdOf(run));
      expect(attemptSpanId(run, 1))
        .to.match(/^[0-9a-f]{16}$/)
        .and.to.match(/[1-9a-f]/);
    }
  });

  it('let every server sample the same turns, and as many as it was told', () => {
    const open = (ratio: number) =>
      openTracer({
        ...{ url: new URL('http://127.0.0.1:9/v1/traces'), ratio, service: { version: '1', instanceId: 'x' }, agentName: 'Heph' },
        ...{ clock: systemClock, log: silentLog, onSpans: () => undefined },
      });
    const runs = Array.from({ length: 2_000 }, () => ({ id: uuidv7(), epoch: 1 }));
    const [one, other, all, none] = [open(0.25), open(0.25), open(1), open(0)];
    const sampled = runs.filter((run) => one.traceparent(run) !== null);
    expect(sampled).to.deep.equal(runs.filter((run) => other.traceparent(run) !== null));
    // Ids that begin with the time would be all or nothing. Five deviations of a fair draw around 500.
    expect(sampled.length).to.be.within(400, 600);
    expect(runs.every((run) => all.traceparent(run) !== null && none.traceparent(run) === null)).to.equal(true);
  });
});

describe('the calls of a traced attempt', () => {
  const run: AgentRun = { id: uuidv7(), kind: 'TURN', epoch: 2, leaseTtlMs: 1, renewEveryMs: 1, deadlineMs: 1 };
  const headersOf = (given: AgentRun) =>
    new GatewayClient({ transport: {} as never, credential: 'c', clock: systemClock })
      .forRun(given, new AbortController().signal)
      .headers();

  it('carry the attempt as their parent (W3C Trace Context), and those of others nothing', () => {
    const { tracer } = remembering();
    const traceparent = tracer.traceparent(run) as string;
    expect(traceparent).to.equal(`00-${traceIdOf(run.id)}-${attemptSpanId(run.id, 2)}-01`);
    expect(headersOf({ ...run, traceparent })).to.include({ traceparent });
    expect(headersOf(run)).to.not.have.property('traceparent');
    expect(remembering(() => false).tracer.traceparent(run)).to.equal(null);
  });
});

describe('a span', () => {
  it('is made of what is expected of a runner, and of nothing else that a sandbox may say', () => {
    const { tracer, spans } = remembering();
    const line = { runId: uuidv7(), epoch: 1, tool: 'bash', outcome: 'ok', durationMs: 12 };
    for (const [event, fields] of [
      ['model_call', line],
      ['tool_call', { ...line, runId: 'a zebra' }],
      ['tool_call', { ...line, tool: 'a zebra' }],
      ['tool_call', { ...line, epoch: '1' }],
      ['tool_call', { ...line, epoch: 1.5 }],
      ['tool_call', { ...line, durationMs: -1 }],
      ['tool_call', { ...line, durationMs: Number.NaN }],
      ['tool_call', {}],
    ] as const) {
      tracer.runnerSaid(event, fields as never);
    }
    expect(spans).to.deep.equal([]);
    tracer.runnerSaid('tool_call', { ...line, outcome: 'a zebra', arguments: 'a zebra' });
    expect(spans.map(({ name, failed }) => [name, failed])).to.deep.equal([['execute_tool bash', true]]);
    expect(JSON.stringify(spans)).to.not.include('zebra');
  });

  it('is made of no renewal, partial or page, only of the calls that an attempt waits for', () => {
    const { tracer, spans } = remembering();
    const attempt = { runId: uuidv7(), epoch: 1 };
    const at = (route: string) => ({ route, method: 'POST', status: 200, durationMs: 1 });
    tracer.request({ ...at('/internal/agent/runs/:runId/lease'), attempt });
    tracer.request({ ...at('/internal/agent/runs/:runId/turn/partial'), attempt });
    tracer.request(at('/internal/agent/runs/:runId/context'));
    expect(spans).to.deep.equal([]);
    tracer.request({ ...at('/internal/agent/runs/:runId/turn/sandbox/load'), attempt, status: 422 });
    expect(spans[0]).to.include({ parentId: attemptSpanId(attempt.runId, 1), failed: true });
  });

  it('of a turn that never ran has no attempt and no wait', () => {
    const { tracer, spans } = remembering();
    const names = { conversationId: uuidv7(), turnId: uuidv7(), runId: uuidv7() } as never as Parameters<TurnTracer['turnEnded']>[0];
    tracer.turnEnded({ ...names, surface: 'app', outcome: 'STOPPED', queueWaitMs: null, firstOutputMs: null, durationMs: 5, ageMs: 5 });
    expect(spans.map(({ name, parentId }) => [name, parentId])).to.deep.equal([['turn', null]]);
  });
});

describe('the queue of spans', () => {
  const span: Span = {
    ...{ scope: 'heph.server', kind: 'server', name: 'turn', traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), parentId: null },
    ...{ startMs: 1_000, endMs: 2_000, failed: false, attributes: {} },
  };
  const open = (exporter: ConstructorParameters<typeof OtlpSink>[0]['exporter'], counts: Record<string, number>) =>
    new OtlpSink({
      ...{ exporter, attributes: {}, clock: new ManualClock(), log: silentLog },
      onSpans: (outcome, count) => {
        counts[outcome] = (counts[outcome] ?? 0) + count;
      },
    });

  it('holds what fits while the collector hangs, and drops and counts what does not', async () => {
    const counts: Record<string, number> = {};
    let taken = 0;
    const hanging = Promise.withResolvers<void>();
    const hangs = {
      export(spans: readonly unknown[], told: (result: { code: number }) => void) {
        taken += spans.length;
        void hanging.promise.then(() => told({ code: 0 }));
      },
      shutdown: async () => undefined,
    };
    const sink = open(hangs as never, counts);
    for (let n = 0; n < QUEUE_MAX; n++) sink.add(span);
    expect(counts).to.deep.equal({});
    sink.add(span);
    sink.add(span);
    expect(counts).to.deep.equal({ dropped: 2 });
    expect(taken).to.be.above(0).and.below(QUEUE_MAX);
    hanging.resolve();
    await sink.stop(1_000);
    expect(counts).to.deep.equal({ dropped: 2, exported: QUEUE_MAX });
  });

  it('has room again when the collector has answered, whatever it answered', async () => {
    const counts: Record<string, number> = {};
    const code = { success: 0, failure: 1 };
    let next = code.failure;
    const answers = {
      export: (_: unknown, told: (result: { code: number }) => void) => told({ code: next }),
      shutdown: async () => undefined,
    };
    const sink = open(answers as never, counts);
    for (let n = 0; n < QUEUE_MAX; n++) sink.add(span);
    await new Promise((resolve) => setImmediate(resolve));
    next = code.success;
    for (let n = 0; n < QUEUE_MAX; n++) sink.add(span);
    await sink.stop(1_000);
    expect(counts['dropped'] ?? 0).to.equal(0);
    expect((counts['failed'] ?? 0) + (counts['exported'] ?? 0)).to.equal(2 * QUEUE_MAX);
    expect(counts['exported']).to.be.above(0);
  });
});

describe('the settings of traces', () => {
  it('are off until asked for, and then lead to the collector of this machine or to the standard variable’s', () => {
    expect(readConfig({}, '/').traces).to.equal(null);
    expect(
      readConfig({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://there:4318' }, '/').traces,
      'the variable of others turns nothing on',
    ).to.equal(null);
    const on = (env: Record<string, string>) => readConfig({ HEPH_TRACES: 'otlp', ...env }, '/').traces;
    expect(on({})?.url.href).to.equal('http://localhost:4318/v1/traces');
    expect(on({ OTEL_EXPORTER_OTLP_ENDPOINT: 'https://there/otlp/' })?.url.href).to.equal('https://there/otlp/v1/traces');
    expect(on({ HEPH_TRACES_RATIO: '0.05' })?.ratio).to.equal(0.05);
    for (const bad of [{ HEPH_TRACES: 'yes' }, { HEPH_TRACES_RATIO: '1.01' }, { OTEL_EXPORTER_OTLP_ENDPOINT: 'there:4318' }]) {
      expect(() => on(bad), JSON.stringify(bad)).to.throw(ConfigError, Object.keys(bad)[0]);
    }
  });

  it('load nothing that makes or sends spans while traces are off', function () {
    this.timeout(60_000);
    const look = (...modules: string[]): number => {
      const program = `
        import { registerHooks } from 'node:module';
        let seen = 0;
        registerHooks({ resolve(name, context, next) { if (/^@opentelemetry.(sdk|exporter)/.test(name)) seen++; return next(name, context); } });
        for (const name of ${JSON.stringify(modules)}) await import(name);
        process.stdout.write(String(seen), () => process.exit(0));`;
      return Number(execFileSync(process.execPath, ['--input-type=module', '-e', program], { cwd: ROOT, encoding: 'utf8' }));
    };
    expect(look('./src/server.ts')).to.equal(0);
    expect(look('./src/traces/otlp.ts'), 'they would be seen').to.be.above(0);
  });
});
