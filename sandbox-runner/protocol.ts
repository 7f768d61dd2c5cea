/**
 * Owns: the runner's standard streams. Output is the protocol (runnerReportSchema, one JSON object a line): nothing else may print
 * there, so `console` and direct writes are taken away from every library. Input is the assignment, then commands; its end means
 * that the server is gone.
 * Does not own: what the lines mean (driver.ts).
 */
import { Console } from 'node:console';
import { Writable } from 'node:stream';
import type { RunnerReport } from '../src/contract/agent.ts';
import { cutText } from '../src/kernel/text.ts';
import { RUNNER } from './config.ts';

type ReportFields = Extract<RunnerReport, { type: 'log' }>['fields'];
type ReportLevel = Extract<RunnerReport, { type: 'log' }>['level'];

const EVENT_MAX_CHARS = 64;
const FIELD_MAX_CHARS = 200;

export interface Protocol {
  report(report: RunnerReport): void;
  /** A log line: ids, kinds, outcomes and durations only; never words. */
  log(level: ReportLevel, event: string, fields?: ReportFields): void;
}

/** Takes standard output for the protocol. Call it once, before anything that might print is loaded. */
export function openProtocol(): Protocol {
  const write = process.stdout.write.bind(process.stdout);
  const swallow = (): boolean => true;
  process.stdout.write = swallow as typeof process.stdout.write;
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  globalThis.console = new Console(nowhere, nowhere);
  // The reader is gone: standard input ends too, and that decides.
  process.stdout.on('error', swallow);

  const report = (line: RunnerReport): void => {
    write(`${JSON.stringify(line)}\n`);
  };
  return {
    report,
    log: (level, event, fields = {}) =>
      report({
        type: 'log',
        level,
        event: cutText(event, EVENT_MAX_CHARS),
        fields: Object.fromEntries(Object.entries(fields).map(cutField)),
      }),
  };
}

function cutField([name, value]: [string, ReportFields[string]]): [string, ReportFields[string]] {
  return [name, typeof value === 'string' ? cutText(value, FIELD_MAX_CHARS) : value];
}

/** The lines of a stream, without their ends. Ends when the stream does; throws when a line is longer than allowed. */
export async function* readLines(input: NodeJS.ReadableStream): AsyncGenerator<string> {
  input.setEncoding('utf8');
  let pending = '';
  for await (const chunk of input) {
    pending += chunk as string;
    for (let end = pending.indexOf('\n'); end >= 0; end = pending.indexOf('\n')) {
      yield pending.slice(0, end);
      pending = pending.slice(end + 1);
    }
    if (pending.length > RUNNER.lineMaxChars) throw new Error('a line on standard input is too long');
  }
}
