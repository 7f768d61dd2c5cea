/**
 * Owns: `npm run bench`: runs scenarios one after the other, prints their tables and keeps their figures in bench/results/.
 * `node bench/run.ts [--quick] [--cpu-prof] [scenario…]`; without a scenario all of them.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { claims } from './claims.ts';
import { context } from './context.ts';
import { gateway } from './gateway.ts';
import { live } from './live.ts';
import { observing } from './observing.ts';
import { runners } from './runners.ts';
import { type Report, type Scenario, toTable } from './support/figures.ts';
import { turns } from './turns.ts';

const SCENARIOS: Readonly<Record<string, Scenario>> = { turns, claims, gateway, live, context, observing, runners };
const RESULTS = fileURLToPath(new URL('./results/', import.meta.url));
const ROOT = fileURLToPath(new URL('..', import.meta.url));

function gitSha(): string {
  try {
    const run = (...args: string[]): string =>
      execFileSync('git', args, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
    return run('rev-parse', '--short', 'HEAD').trim() + (run('status', '--porcelain').trim() === '' ? '' : '+changes');
  } catch {
    return 'unknown'; // not a git checkout
  }
}

function keep(name: string, report: Report): string {
  mkdirSync(RESULTS, { recursive: true });
  const file = `${RESULTS}${name}-${new Date().toISOString().replaceAll(/[:.]/g, '-')}.json`;
  writeFileSync(file, `${JSON.stringify({ scenario: name, ...report }, null, 2)}\n`);
  return file;
}

async function main(): Promise<void> {
  const flag = { type: 'boolean', default: false } as const;
  const { values, positionals } = parseArgs({ allowPositionals: true, options: { quick: flag, 'cpu-prof': flag } });
  const names = positionals.length > 0 ? positionals : Object.keys(SCENARIOS);
  for (const name of names) {
    const scenario = SCENARIOS[name];
    if (scenario === undefined) throw new Error(`There is no scenario "${name}". There are: ${Object.keys(SCENARIOS).join(', ')}.`);
    const startedMs = performance.now();
    const since = (): string => `${((performance.now() - startedMs) / 1_000).toFixed(0).padStart(3)} s`;
    const measured = await scenario({
      quick: values.quick,
      profileDir: values['cpu-prof'] ? RESULTS : null,
      say: (line) => console.log(`${since()}  ${name}: ${line}`),
    });
    const environment = {
      git: gitSha(),
      node: process.versions.node,
      ...measured.environment,
      quick: values.quick,
      profiled: values['cpu-prof'],
    };
    const report = { ...measured, environment };
    console.log(`\n${toTable(report)}\n\n${since()}  kept in ${keep(name, report)}`);
  }
}

await main();
