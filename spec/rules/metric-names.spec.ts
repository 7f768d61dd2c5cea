/**
 * The metrics, the alerts and the dashboard agree: names and units follow the rules of Prometheus, labels come from closed sets, and each query
 * asks for something that a server exports.
 */
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { STUCK_RULES } from '../../src/contract/operators.ts';
import { createMetrics, type Metrics } from '../../src/ops/index.ts';

const ALERTS = readFileSync(new URL('../../deploy/alerts/heph.yml', import.meta.url), 'utf8');
const DASHBOARD = JSON.parse(readFileSync(new URL('../../deploy/grafana/heph.json', import.meta.url), 'utf8'));

interface Metric {
  readonly type: string;
  readonly help: string;
  readonly labels: Set<string>;
}

/** Everything that a server can export, with a sample of each. */
function everything(): Metrics {
  const metrics = createMetrics('heph 0.1.0');
  const { kernelObserver } = metrics;
  kernelObserver.commandHandled('conversation', 'StopTurn', { waitMs: 1, workMs: 1, outcome: 'ok' });
  kernelObserver.activated('conversation', 1);
  kernelObserver.passivated('conversation', 'idle');
  kernelObserver.crashed('conversation', 'DatabaseError 57014');
  kernelObserver.refused('conversation', 'mailbox');
  kernelObserver.overran('conversation', 'StopTurn');
  metrics.observeRequest({ route: '/livez', method: 'GET', status: 200, durationMs: 1 });
  metrics.turnEnded({ surface: 'app', outcome: 'DONE', queueWaitMs: 1, firstOutputMs: 1, durationMs: 1 });
  metrics.attemptTakenBack('lease');
  metrics.fencingRejected();
  metrics.leaseRenewed('renewed');
  metrics.sandboxStart('failed');
  metrics.erased('entry');
  metrics.spans('dropped', 3);
  metrics.outboxOutcome('UNCERTAIN');
  metrics.pathBroken('path');
  metrics.modelUsed('m', { inputTokens: 1, outputTokens: 1, cacheReadTokens: 1, cacheWriteTokens: 1 }, 9);
  const actor = { kind: 'conversation', id: 'c', state: 'active', mailboxDepth: 1, oldestWaitMs: 1, lastFault: null } as const;
  const load = { slots_total: 4, slots_held: 1, slots_free: 3, slots_retiring: 0, running: 1, stopping: 0, queued: 2 };
  metrics.watch({
    actors: () => [{ ...actor, activatedAt: 0, lastUsedAt: 0, commandsHandled: 1 }],
    runners: () => [{ sandboxId: null, state: 'warm', pid: 1, startedAt: 0 }],
    database: () => ({ inUse: 1, waiting: 0 }),
    slots: async () => ({ total: 4, held: 1, retiring: 0 }),
    installation: async () => ({
      load: { ...load, oldest_waiting_ms: 90_000, calls_of_dead_hosts: 0 },
      ...{ stuck: [{ name: 'STOPPING_LONG', count: 2 }], pauses: 1, monthCost: 1.25 },
    }),
    streams: () => 1,
    listening: () => true,
    outbox: async () => ({ pending: 3, uncertain: 1, oldestAgeS: 7 }),
    partials: () => ({ turns: 1, bytes: 1 }),
    modelCalls: () => ({ inFlight: 1, closingsWaiting: 0, connectionsPaused: 0, ended: { ok: 1 } }),
  });
  return metrics;
}

/** The metrics of an exposition by name; a histogram's series belong to it. */
function parse(text: string): Map<string, Metric> {
  const metrics = new Map<string, Metric>();
  for (const [, name = '', help = ''] of text.matchAll(/^# HELP (\S+) (.*)$/gm)) metrics.set(name, { help, type: '', labels: new Set() });
  for (const [, name = '', type = ''] of text.matchAll(/^# TYPE (\S+) (\S+)$/gm)) metrics.set(name, { ...metricOf(metrics, name), type });
  for (const [, series = '', labels = ''] of text.matchAll(/^([a-z_0-9]+)(?:\{(.*)\})? \S+$/gm)) {
    for (const [, label = ''] of labels.matchAll(/([a-z_]+)="/g)) metricOf(metrics, series).labels.add(label);
  }
  return metrics;
}

function metricOf(metrics: ReadonlyMap<string, Metric>, series: string): Metric {
  const metric = metrics.get(series) ?? metrics.get(series.replace(/_(bucket|sum|count)$/, ''));
  if (!metric) throw new Error(`no metric has the series ${series}`);
  return metric;
}

/** What a query selects: each series with the labels that it matches. */
function selectors(query: string): readonly { readonly series: string; readonly labels: readonly string[] }[] {
  return [...query.matchAll(/\b(heph[a-z0-9_:]+)(?:\{([^}]*)\})?/g)].map(([, series = '', labels = '']) => ({
    series,
    labels: [...labels.matchAll(/([a-z_]+)\s*(?:=~|!~|!=|=)/g)].map(([, label = '']) => label),
  }));
}

/** The labels that its result is grouped by. */
const grouped = (query: string) => [...query.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, names = '']) => names.split(/\s*,\s*/));

describe('the metrics', () => {
  let text: string;
  let metrics: Map<string, Metric>;
  before(async () => {
    text = await everything().metrics();
    metrics = parse(text);
  });

  it('are counters that end in _total, gauges and histograms that do not, in base units, each with a help', () => {
    expect(metrics.size).to.be.above(40);
    for (const [name, { type, help }] of metrics) {
      expect(name, 'prefix').to.match(/^heph_[a-z0-9_]+$/);
      expect(help.length, `help of ${name}`).to.be.above(8);
      expect(type, name).to.be.oneOf(['counter', 'gauge', 'histogram', 'summary']);
      expect(/_total$/.test(name), `${name} is a ${type}`).to.equal(type === 'counter');
      expect(name, 'base units').to.not.match(/_(ms|millis|milliseconds|minutes|kb|mb|percent)(_|$)/);
      if (type === 'histogram') expect(name).to.match(/_(seconds|bytes)$/);
    }
  });

  it('have labels from closed sets, and never an id', () => {
    const closed = 'kind state command outcome reason error surface route method code cause part model rule build'.split(' ');
    const ofNode = 'version major minor patch type space quantile le'.split(' ');
    for (const [name, { labels }] of metrics) {
      for (const label of labels) expect([...closed, ...ofNode], `${label} of ${name}`).to.include(label);
    }
    expect(text).to.not.match(/"[0-9a-f]{8}-[0-9a-f]{4}-7/);
    for (const rule of STUCK_RULES) expect(text).to.include(`heph_turns_stuck{rule="${rule}"} ${rule === 'STOPPING_LONG' ? 2 : 0}`);
  });

  it('tell what people wait for and what it costs', () => {
    for (const line of [
      'heph_turns_total{surface="app",outcome="DONE"} 1',
      'heph_turn_first_output_seconds_count{surface="app"} 1',
      'heph_slots{state="free"} 3',
      'heph_turns_open{state="queued"} 2',
      'heph_turn_oldest_wait_seconds 90',
      'heph_claim_pauses 1',
      'heph_model_cost_month 1.25',
      'heph_model_answer_bytes_total{model="m"} 9',
      'heph_lease_renewals_total{outcome="renewed"} 1',
      'heph_build_info{build="heph 0.1.0"} 1',
    ]) {
      expect(text.split('\n'), line).to.include(line);
    }
  });

  describe('and who asks for them', () => {
    const recorded = [...ALERTS.matchAll(/^ +- record: (\S+)$/gm)].map(([, name = '']) => name);
    const inAlerts = [...ALERTS.matchAll(/^ +expr: (.+)$/gm)].map(([, query = '']) => query);
    const inPanels = DASHBOARD.panels.flatMap((panel: { targets: { expr: string }[] }) =>
      panel.targets.map(({ expr }) => expr),
    ) as string[];

    /** Labels that Prometheus adds. */
    const added = ['instance', 'job'];

    for (const [where, queries] of [
      ['alerts', inAlerts],
      ['dashboard', inPanels],
    ] as const) {
      it(`${where}: every query names what is exported, by labels that it has`, () => {
        expect(queries.length).to.be.above(10);
        for (const query of queries) {
          const found = selectors(query);
          expect(found.length, query).to.be.above(0);
          for (const { series, labels } of found) {
            if (recorded.includes(series)) continue;
            const metric = metricOf(metrics, series);
            for (const label of labels) expect([...metric.labels], `${label} in ${query}`).to.include(label);
            for (const label of grouped(query)) expect([...metric.labels, ...added], `by ${label} in ${query}`).to.include(label);
            if (metric.type === 'counter') expect(query, 'a counter is asked for its growth').to.match(/rate\(|increase\(/);
            if (/_bucket$/.test(series)) expect(metric.type, query).to.equal('histogram');
          }
        }
      });
    }

    it('notices a query for something else', () => {
      expect(() => selectors('max(heph_turns_stcuk)').map(({ series }) => metricOf(metrics, series))).to.throw('heph_turns_stcuk');
    });

    it('every alert has a severity, a sentence and a link to the view that it is about', () => {
      const alerts = ALERTS.split(/^ +- alert: /m).slice(1);
      expect(alerts.length).to.be.above(10);
      for (const alert of alerts) {
        expect(alert).to.match(/^Heph[A-Za-z]+\n/);
        expect(alert).to.match(/severity: (page|warn) /);
        expect(alert).to.match(/summary: \S.{10,}/);
        expect(alert).to.match(/link: \/ops\?tab=(overview|turns|actors|actions)(&state=(open|queued|running|stuck|ended))?\n/);
      }
    });
  });
});
