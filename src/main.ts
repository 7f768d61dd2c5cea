/**
 * The entry: the command line, signals, and words for the person at the keyboard. `server.ts` puts the parts together.
 */
import { text } from 'node:stream/consumers';
import { EmbeddedPostgresError } from '../db/embedded/index.ts';
import { runDoctor } from './cli/doctor.ts';
import { adminHelp, isAdminCommand, runAdminCommand } from './cli/run.ts';
import { type Config, ConfigError, environment, readConfig } from './config.ts';
import { StartError } from './database.ts';
import { doctorChecks } from './doctor.ts';
import { createLog, errorKind, type Log } from './kernel/log.ts';
import { type RunningServer, startServer } from './server.ts';
import { ownHost } from './server-parts.ts';

const HELP = `Heph: a conversation runtime.

  heph            start the server (the same as npm start)
  heph doctor     check what this machine can do, and say what to do about what is missing
  heph help       this page

With a server running on this machine:

${adminHelp()}
Settings come from the environment; README.md lists them. A bad value is refused at start with what is allowed.
`;

/** Exit codes: 0 stopped as asked, 1 could not start or lost its database, 2 bad settings or command. */
async function main(args: readonly string[]): Promise<number> {
  const [command = 'start'] = args;
  if (['help', '--help', '-h'].includes(command)) {
    process.stdout.write(HELP);
    return 0;
  }
  const isAdmin = isAdminCommand(args);
  if (!isAdmin && (!['start', 'doctor'].includes(command) || args.length > 1)) {
    process.stderr.write(`There is no command "${args.join(' ')}".\n\n${HELP}`);
    return 2;
  }
  let config: Config;
  try {
    config = readConfig(environment(), process.cwd());
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`Heph cannot start with these settings:\n${error.problems.map((problem) => `  - ${problem}\n`).join('')}`);
    return 2;
  }
  if (command === 'doctor') return runDoctor(doctorChecks(config), (said) => void process.stdout.write(said));
  return isAdmin ? administer(args, config) : serve(config, createLog(config.logLevel));
}

function administer(args: readonly string[], { bindHost, opsPort }: Config): Promise<number> {
  return runAdminCommand(args, {
    opsUrl: `http://${ownHost(bindHost)}:${opsPort}`,
    readInput: () => text(process.stdin),
    operatorKey: environment()['HEPH_OPERATOR_KEY'] ?? null,
    out: (said) => void process.stdout.write(said),
    err: (said) => void process.stderr.write(said),
  });
}

async function serve(config: Config, log: Log): Promise<number> {
  for (const name of config.unknownVariables) log.warn('unknown variable ignored', { name });
  const signals = new StopSignals();
  let server: RunningServer;
  try {
    server = await startServer(config, log, { linkUsed: () => void (process.stdout.isTTY && sayLink(server)) });
  } catch (error) {
    process.stderr.write(`Heph could not start: ${sentence(error)}\n`);
    if (!isExplained(error)) log.error('start failed', {}, error);
    return 1;
  }
  const asked = signals.fromNowOn();
  const { web, agent, ops } = server.ports;
  log.info('server ready', { port: web, agentPort: agent, opsPort: ops });
  const home = config.auth.kind === 'oidc' ? config.auth.publicUrl.origin : `http://localhost:${web}`;
  process.stdout.write(`\n  Heph is ready: ${home}${server.browserKey?.path ?? ''}\n\n`);
  if (server.browserKey) sayKey(server.browserKey.operatorKey);
  if (config.provider === null)
    process.stdout.write('  The built-in demo model answers. README.md says how to connect a real provider.\n\n');
  const operator = server.drainAsked.then(() => 'operator' as const);
  const why = await Promise.race([asked, operator, server.databaseGone.then(() => 'database' as const)]);
  if (why === 'database') log.error('the embedded PostgreSQL ended', {});
  else process.stdout.write('  Stopping: running turns are handed on …\n');
  await server.stop();
  log.info('server stopped', { why });
  return why === 'database' ? 1 : 0;
}

/** For another browser. */
function sayLink({ browserKey, ports }: RunningServer): void {
  if (browserKey)
    process.stdout.write(`  That link has been used. For another browser: http://localhost:${ports.web}${browserKey.path}\n\n`);
}

/** A file into which the output goes could be read by a command; a terminal cannot. */
function sayKey(operatorKey: string): void {
  process.stdout.write('  Commands of the assistant run as your user, so the link works once, for one browser.\n');
  if (process.stdout.isTTY) process.stdout.write(`  heph commands ask for this key: ${operatorKey}\n\n`);
  else process.stdout.write('  heph commands need a key, which is printed on a terminal only.\n\n');
}

/**
 * While the server starts, a signal ends the process at once. Afterwards the first one asks for a drain and a second one ends the process:
 * the ledger survives that, too.
 */
class StopSignals {
  #drain: ((signal: NodeJS.Signals) => void) | null = null;

  constructor() {
    process.on('SIGINT', () => this.#heard('SIGINT', 130));
    process.on('SIGTERM', () => this.#heard('SIGTERM', 143));
  }

  /** Resolves with the next signal. */
  fromNowOn(): Promise<NodeJS.Signals> {
    return new Promise((resolve) => {
      this.#drain = resolve;
    });
  }

  #heard(signal: NodeJS.Signals, exitCode: number): void {
    if (this.#drain === null) process.exit(exitCode);
    this.#drain(signal);
    this.#drain = null;
  }
}

function isExplained(error: unknown): boolean {
  return (
    error instanceof EmbeddedPostgresError || error instanceof StartError || (error instanceof Error && error.message.includes('HEPH_'))
  );
}

function sentence(error: unknown): string {
  if (isExplained(error)) return (error as Error).message;
  return `an unexpected error (${errorKind(error)}). The log line above says where.`;
}

process.exitCode = await main(process.argv.slice(2));
// Whatever still holds the event loop must not keep a server alive that has said that it stopped.
process.exit();
