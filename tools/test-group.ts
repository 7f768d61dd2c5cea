/**
 * Owns: one mocha process: starting it, bounding it in time, and reading its report.
 * Does not own: which specs run together, or the totals (test.ts).
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

/** Time for a finished process to close its servers and children before it is ended. */
const CLOSE_LIMIT_MS = 30_000;
const KILL_AFTER_MS = 10_000;
const DRAIN_LIMIT_MS = 1_000;
const LOOK_EVERY_MS = 500;
const FAILURE_LINES = 6;
const FAILURE_LINE_CHARS = 300;
const SKIPPED = 'SKIPPED: ';
const MOCHA = fileURLToPath(import.meta.resolve('mocha/bin/mocha.js'));
const REPORTER = join(import.meta.dirname, 'test-reporter.ts');

/** Outcome of one process. `troubles` are failures that no spec stands for; they are counted in `failed`. */
export interface GroupResult {
  readonly passed: number;
  readonly failed: number;
  readonly skips: readonly string[];
  readonly troubles: readonly string[];
  /** Each failed test on some lines: where, which, why. A run is long, and its log may be cut: they are said again at its end. */
  readonly failures: readonly string[];
}

/** The part of mocha's JSON report that is read here. */
interface MochaReport {
  readonly stats: { readonly passes: number; readonly failures: number };
  readonly tests: readonly { readonly file: string }[];
  readonly pending: readonly { readonly fullTitle: string }[];
  readonly failures: readonly {
    readonly file?: string;
    readonly fullTitle: string;
    readonly err: { readonly message?: string; readonly stack?: string };
  }[];
}

/** What a run gives to each of its processes. `flags` are mocha's; `limitMs` bounds the process; `stop` ends it early. */
export interface GroupOptions {
  readonly flags: readonly string[];
  readonly limitMs: number;
  readonly stop: AbortSignal;
}

/** How a process went: `ending` says why that was not well. */
interface MochaRun {
  readonly ending: string | undefined;
  readonly skipLines: readonly string[];
}

/** Runs spec files in one mocha process, with its output shown as it comes. */
export async function runGroup(files: readonly string[], options: GroupOptions): Promise<GroupResult> {
  const folder = mkdtempSync(join(tmpdir(), 'heph-test-'));
  const reportPath = join(folder, 'report.json');
  try {
    const run = await runMocha([...files, ...options.flags], reportPath, options);
    if (!existsSync(reportPath)) {
      return {
        passed: 0,
        failed: 1,
        skips: [],
        troubles: [`${files.join(', ')}: ${run.ending ?? 'mocha ended'}, without a report`],
        failures: [],
      };
    }
    const report: MochaReport = JSON.parse(readFileSync(reportPath, 'utf8'));
    return readReport(report, run, options.flags.length > 0 ? [] : files);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** `files` are those that must hold at least one test; none when flags chose among the tests. */
function readReport(report: MochaReport, run: MochaRun, files: readonly string[]): GroupResult {
  const { passes, failures } = report.stats;
  const filled = new Set(report.tests.map((test) => test.file));
  const troubles = files.filter((file) => !filled.has(resolve(file))).map((file) => `${file}: holds no test`);
  const nothingChosen = files.length === 0 && report.tests.length === 0;
  if (run.ending !== undefined && failures === 0 && troubles.length === 0 && !nothingChosen) {
    troubles.push(`${run.ending}, although no test failed`);
  }
  const skips = report.pending.map(({ fullTitle }) => `${SKIPPED}${fullTitle}: ${reasonFor(fullTitle, run.skipLines)}`);
  return { passed: passes, failed: failures + troubles.length, skips, troubles, failures: report.failures.map(describeFailure) };
}

/** At most FAILURE_LINES of a failure's message and of where it was thrown. */
function describeFailure({ file, fullTitle, err }: MochaReport['failures'][number]): string {
  const message = (err.message ?? 'no message').split('\n');
  const where = (err.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line) && !line.includes('node_modules'));
  const lines = [...message.slice(0, FAILURE_LINES), ...where.slice(0, FAILURE_LINES)].map(
    (line) => `    ${line.trim().slice(0, FAILURE_LINE_CHARS)}`,
  );
  return [`${file === undefined ? '' : `${relative('', file)}: `}${fullTitle}`, ...lines].join('\n');
}

/** The reason that skipLoudly printed for a test, or for a suite around it. Titles and reasons may hold colons themselves. */
function reasonFor(title: string, skipLines: readonly string[]): string {
  for (const line of skipLines) {
    const text = line.slice(SKIPPED.length);
    for (let at = text.lastIndexOf(': '); at >= 0; at = at === 0 ? -1 : text.lastIndexOf(': ', at - 1)) {
      const head = text.slice(0, at);
      if (title === head || title.startsWith(`${head} `)) return text.slice(at + 2);
    }
  }
  return 'no reason was given';
}

async function runMocha(args: readonly string[], reportPath: string, options: GroupOptions): Promise<MochaRun> {
  const flags = ['--reporter', REPORTER, '--reporter-option', `output=${reportPath}`];
  if (process.stdout.isTTY) flags.push('--color');
  if (process.env['CI']) flags.push('--forbid-only');
  const child = spawn(process.execPath, [MOCHA, ...flags, ...args], { stdio: ['inherit', 'pipe', 'inherit'] });
  const stopWatching = watch(child, reportPath, options);
  const skipLines: string[] = [];
  const lines = createInterface({ input: child.stdout }).on('line', (line) => {
    if (line.startsWith(SKIPPED)) skipLines.push(line);
    process.stdout.write(`${line}\n`);
  });
  const drained = once(lines, 'close');
  const [code, signal]: [number | null, string | null] = await new Promise((ended, failed) => {
    child.once('error', failed).once('exit', (...ending) => ended(ending));
  });
  const why = stopWatching();
  // A process that a spec left behind may hold the pipe open; what mocha itself wrote is read by then.
  await Promise.race([drained, delay(DRAIN_LIMIT_MS, undefined, { ref: false })]);
  child.stdout.destroy();
  return { ending: why ?? (code === 0 ? undefined : `mocha ended with ${signal ?? `code ${code}`}`), skipLines };
}

/**
 * Ends a process that runs past its limit, that is told to stop, or that has written its report and does not go (something was left
 * open). The function it returns ends the watch and says why the process had to be ended, if it had.
 */
function watch(child: ChildProcess, reportPath: string, { limitMs, stop }: GroupOptions): () => string | undefined {
  const startedAt = performance.now();
  let reportedAt = Number.POSITIVE_INFINITY;
  let endedAt = Number.POSITIVE_INFINITY;
  let why: string | undefined;
  const reasonToEnd = (now: number): string | undefined => {
    if (stop.aborted) return 'the run was interrupted';
    if (now - startedAt > limitMs) return 'the run took longer than its limit and was ended';
    if (now - reportedAt > CLOSE_LIMIT_MS) return 'a spec left something open: mocha was ended after its report';
    return undefined;
  };
  const look = (): void => {
    const now = performance.now();
    if (reportedAt > now && existsSync(reportPath)) reportedAt = now;
    if (now - endedAt > KILL_AFTER_MS) child.kill('SIGKILL');
    if (why !== undefined) return;
    why = reasonToEnd(now);
    if (why === undefined) return;
    endedAt = now;
    child.kill('SIGTERM');
  };
  const timer = setInterval(look, LOOK_EVERY_MS);
  return () => {
    clearInterval(timer);
    return why;
  };
}
