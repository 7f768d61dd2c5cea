/**
 * The alerts: each has a test of both its sides, leads to a page and to a heading of the manual, and means in specs what it means in Prometheus.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { parse } from 'yaml';
import { createMetrics } from '../../src/ops/index.ts';
import { ALERTS, ALERTS_FOLDER, RECORDED } from '../support/alerts.ts';
import { parseExposition, parseLabels, query, type Sample, type Scrape } from '../support/promql.ts';
import { skipLoudly } from '../support/skip.ts';

interface RuleTest {
  readonly name: string;
  readonly input_series: readonly { readonly series: string; readonly values: string }[];
  readonly alert_rule_test: readonly {
    readonly eval_time: string;
    readonly alertname: string;
    readonly exp_alerts: readonly { readonly exp_labels: Record<string, string>; readonly exp_annotations: Record<string, string> }[];
  }[];
}

const TESTS = (parse(readFileSync(new URL('heph_test.yml', ALERTS_FOLDER), 'utf8')) as { tests: readonly RuleTest[] }).tests;
const MANUAL = readFileSync(new URL('../../deploy/operating.md', import.meta.url), 'utf8');
const MINUTE_S = 60;

/** As the page that shows the manual makes anchors of headings. */
const anchorOf = (heading: string) =>
  heading
    .toLowerCase()
    .replaceAll(/[^\w\s-]/g, '')
    .trim()
    .replaceAll(' ', '-');

/** `0 1x3` and `0+2x3`, a value each minute. */
function values(text: string): number[] {
  return text.split(' ').flatMap((part) => {
    const [, from = '0', step = '0', times = '0'] = /^(\d+(?:\.\d+)?)(?:\+(\d+))?(?:x(\d+))?$/.exec(part) ?? [];
    return Array.from({ length: Number(times) + 1 }, (_, nth) => Number(from) + nth * Number(step));
  });
}

function scrapesOf({ input_series: series }: RuleTest, untilMinute: number): Scrape[] {
  const all = series.map((one) => {
    const [, name = '', labels = ''] = /^(\w+)\{(.*)\}$/.exec(one.series) ?? [];
    return { name, labels: parseLabels(labels), values: values(one.values) };
  });
  return Array.from({ length: untilMinute + 1 }, (_, minute) => ({
    atS: minute * MINUTE_S,
    samples: all.flatMap(({ name, labels, values: known }): Sample[] => {
      const value = known[minute];
      return value === undefined ? [] : [{ name, labels, value }];
    }),
  }));
}

describe('the alerts', () => {
  it('are each tested on both sides: a world in which it fires, and one in which it does not', () => {
    expect(ALERTS.length).to.be.above(15);
    const sides = TESTS.flatMap(({ alert_rule_test: tests }) => tests.map((test) => `${test.alertname} ${test.exp_alerts.length > 0}`));
    expect(sides.sort()).to.deep.equal(ALERTS.flatMap(({ alert }) => [`${alert} false`, `${alert} true`]).sort());
  });

  it('say what is so, how bad it is, where it is seen and which question of the manual is about it', () => {
    const anchors = [...MANUAL.matchAll(/^#{2,} (.+)$/gm)].map(([, heading = '']) => anchorOf(heading));
    for (const { alert, labels, annotations } of ALERTS) {
      const [file, anchor = ''] = annotations.runbook.split('#');
      expect(file, alert).to.equal('deploy/operating.md');
      expect(anchors, `${alert} leads to #${anchor}`).to.include(anchor);
      const from = MANUAL.indexOf(`### ${/^\d+/.exec(anchor)?.[0]}. `);
      const section = MANUAL.slice(from, MANUAL.indexOf('\n##', from + 3));
      expect(section, `the question that ${alert} leads to names it`).to.include(`\`${alert}\``);
      expect(labels['severity']).to.be.oneOf(['page', 'warn']);
      expect(annotations.summary).to.match(/\S.{10,}/);
    }
  });

  it('fire and do not fire in the specs as their tests say', () => {
    for (const test of TESTS) {
      const [{ alertname, eval_time: at, exp_alerts: expected } = { alertname: '', eval_time: '', exp_alerts: [] }] = test.alert_rule_test;
      const alert = ALERTS.find((one) => one.alert === alertname);
      const found = query(alert?.expr ?? '', scrapesOf(test, Number(/^(\d+)m$/.exec(at)?.[1])), RECORDED);
      const labels = found.map((one) => ({ severity: alert?.labels['severity'], ...one.labels }));
      expect(labels, test.name).to.deep.equal(expected.map(({ exp_labels: one }) => one));
    }
  });

  it('fire and do not fire in Prometheus as their tests say', function () {
    this.timeout(180_000);
    if (spawnSync('promtool', ['--version']).error) skipLoudly(this, 'promtool is not on PATH (Debian: prometheus)');
    const folder = fileURLToPath(ALERTS_FOLDER);
    for (const args of [
      ['check', 'rules', 'heph.yml'],
      ['test', 'rules', 'heph_test.yml'],
    ]) {
      const { status, stdout, stderr } = spawnSync('promtool', args, { cwd: folder, encoding: 'utf8' });
      expect(status, `promtool ${args.join(' ')}\n${stdout}${stderr}`).to.equal(0);
    }
  });

  it('and promtool finds nothing wrong with the names of the metrics', async function () {
    if (spawnSync('promtool', ['--version']).error) skipLoudly(this, 'promtool is not on PATH (Debian: prometheus)');
    const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], {
      input: await createMetrics().metrics(),
      encoding: 'utf8',
    });
    expect(status, stdout + stderr).to.equal(0);
  });

  it('are evaluated on nothing that is not understood', () => {
    const [now] = [{ atS: 1, samples: parseExposition('heph_streams 2\n', 'a') }];
    expect(query('max(heph_streams) > 1', [now])).to.deep.equal([{ labels: {}, value: 2 }]);
    expect(query('max(heph_streams) > 2', [now])).to.deep.equal([]);
    for (const odd of [
      'avg(heph_streams) > 1',
      'heph_streams offset 5m',
      'heph_streams or vector(1)',
      'max(heph_streams) > 1 and x',
      'max(',
    ]) {
      expect(() => query(odd, [now]), odd).to.throw();
    }
  });
});
