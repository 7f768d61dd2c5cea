/**
 * Owns: the order of the gate's steps, running them, and what a person sees of them.
 * Does not own: any check. Each step is the npm script `check:<step>`, so that it can be run alone and is written down once.
 */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { PROJECT_ROOT } from './tree.ts';

/** In the order in which they are reported. All of them only read, so two may run at once. */
const STEPS = ['format', 'types', 'boundaries', 'rules', 'tidy', 'schema', 'openapi'] as const;
const STEPS_AT_ONCE = 2;
const STEP_LIMIT_MS = 300_000;
const OUTPUT_MAX_CHARS = 1_000_000;

interface StepResult {
  readonly step: string;
  readonly passed: boolean;
  readonly durationMs: number;
  readonly output: string;
}

/** Runs every step, also after one has failed: whoever mends a tree wants the whole list. Resolves to whether all passed. */
async function runSteps(scripts: Readonly<Record<string, string>>): Promise<boolean> {
  const results = STEPS.map((step) => ({ step, ended: Promise.withResolvers<StepResult>() }));
  const waiting = results.values();
  const work = async (): Promise<void> => {
    for (const { step, ended } of waiting) ended.resolve(await runStep(step, scripts[`check:${step}`]));
  };
  const workers = Promise.all(Array.from({ length: STEPS_AT_ONCE }, work));
  let passed = true;
  for (const { ended } of results) {
    const result = await ended.promise;
    printResult(result);
    passed &&= result.passed;
  }
  await workers;
  return passed;
}

async function runStep(step: string, command: string | undefined): Promise<StepResult> {
  if (command === undefined) return { step, passed: false, durationMs: 0, output: `package.json has no script check:${step}` };
  const startedAt = performance.now();
  const child = spawn(command, {
    cwd: PROJECT_ROOT,
    shell: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: STEP_LIMIT_MS,
    env: { ...process.env, PATH: [join(PROJECT_ROOT, 'node_modules/.bin'), process.env['PATH']].join(delimiter) },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      if (output.length < OUTPUT_MAX_CHARS) output += text;
    });
  }
  const ended = await new Promise<number | string>((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('close', (code, signal) => resolve(code ?? `ended by ${signal}`));
  });
  if (typeof ended === 'string') output += `\n${command}: ${ended}`;
  return { step, passed: ended === 0, durationMs: performance.now() - startedAt, output: stripVTControlCharacters(output).trim() };
}

function printResult({ step, passed, durationMs, output }: StepResult): void {
  console.log(`${passed ? 'ok  ' : 'FAIL'}  ${step.padEnd(10)}  ${(durationMs / 1000).toFixed(1)} s`);
  const shown = passed ? output.split('\n').filter((line) => line.startsWith('warning: ')) : [output, `(npm run check:${step})`];
  for (const line of shown) console.log(line.replace(/^(?=.)/gm, '      '));
}

const { scripts }: { scripts: Record<string, string> } = JSON.parse(readFileSync(join(PROJECT_ROOT, 'package.json'), 'utf8'));
if (!(await runSteps(scripts))) process.exitCode = 1;
