/**
 * Owns: the process of a runner: it loads Pi, warms it up, says `ready`, waits for ONE assignment on standard input, serves that one
 * conversation, and goes when it is told to, when its server is gone (the input ends), or when something unexpected happens.
 * In a pod the assignment comes over a socket (`--socket`), and the runner outlives the server: only a signal or a 401 ends it.
 * Does not own: pulling and turns (serve.ts). Never leaves an orphan: whatever runs for a command is killed on the way out.
 */
import { enableCompileCache, flushCompileCache } from 'node:module';
import { type RunnerAssignment, runnerAssignmentSchema, runnerCommandSchema } from '../src/contract/agent.ts';
import { systemClock } from '../src/kernel/clock.ts';
import { awaitAssignment } from './assignment-door.ts';
import { readConfig } from './config.ts';
import { openProtocol, readLines } from './protocol.ts';

const config = readConfig();
if (config.compileCacheDir !== null) enableCompileCache(config.compileCacheDir);
const protocol = openProtocol();
const drain = new AbortController();
let assigned = false;
process.on('SIGTERM', leave);
// A terminal sends these to everybody in it. The server decides what becomes of its runners.
for (const signal of ['SIGINT', 'SIGHUP'] as const) process.on(signal, () => undefined);
process.on('uncaughtException', crash);
process.on('unhandledRejection', crash);

// Loaded only now, so that the compile cache is on and nothing of it can print.
const [{ serve }, { warmUp }, { confineCommands, killCommands }] = await Promise.all([
  import('./serve.ts'),
  import('./warm-up.ts'),
  import('./tools/index.ts'),
]);
process.on('exit', killCommands);
if (config.toolFilter !== null) confineCommands(config.toolFilter);

const lines = config.socketPath === null ? readLines(process.stdin) : null;
const overSocket = config.socketPath === null ? null : awaitAssignment(config.socketPath);
protocol.log('debug', 'runner_warm', { answered: await warmUp() });
protocol.report({ type: 'ready' });
flushCompileCache();
const assignment = await (overSocket ?? overInput());
assigned = true;
void obey();
process.exit(await serve(assignment, { protocol, clock: systemClock, setprivPath: config.setprivPath, drain: drain.signal }));

async function overInput(): Promise<RunnerAssignment> {
  const first = await lines?.next();
  // The server went away, or does not need this runner after all.
  if (first === undefined || first.done === true || isDrain(first.value)) process.exit(0);
  return runnerAssignmentSchema.parse(JSON.parse(first.value));
}

/** Commands after the assignment. The end of the input means that nobody is left to answer to: no call is made any more. */
async function obey(): Promise<void> {
  if (lines === null) return;
  for await (const line of lines) {
    if (isDrain(line)) leave();
  }
  process.exit(0);
}

/** A graceful stop: at once while there is no conversation, else after handing its run on. */
function leave(): void {
  if (!assigned) process.exit(0);
  drain.abort();
}

function isDrain(line: string): boolean {
  return runnerCommandSchema.safeParse(JSON.parse(line)).success;
}

/** The kind of an error and where it happened; its words stay here. */
function crash(error: unknown): void {
  const at = error instanceof Error ? (/^\s+at .*$/m.exec(error.stack ?? '')?.[0].trim() ?? null) : null;
  protocol.log('error', 'runner_crashed', { error: error instanceof Error ? error.name : typeof error, at });
  process.exit(1);
}
