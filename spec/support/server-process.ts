/**
 * A real server for flow specs: `node src/main.ts` in its own process, with its own data directory, on free ports.
 * Logs are kept; `waitFor` waits for a log event instead of sleeping. Everything that was started here is ended here, by pid.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const node = path.join(root, 'node_modules/.bin/node');
const LOG_LINES_MAX = 20_000;

export interface LogLine {
  readonly event: string;
  readonly level: number;
  readonly [field: string]: unknown;
}

export interface ServerOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Kept over restarts when given; else a fresh one that is removed with the last server. */
  readonly dataDir?: string;
  /** Another copy of the product; else this one. */
  readonly program?: { readonly dir: string; readonly arguments: readonly string[] };
}

/** The environment of a server in a spec: nothing of the developer's own HEPH_ variables. */
function cleanEnv(extra: Readonly<Record<string, string>>): Record<string, string> {
  const inherited = Object.entries(process.env).filter(([name, value]) => value !== undefined && !name.startsWith('HEPH_'));
  return {
    ...(Object.fromEntries(inherited) as Record<string, string>),
    HEPH_PORT: '0',
    HEPH_AGENT_PORT: '0',
    HEPH_OPS_PORT: '0',
    ...extra,
  };
}

export class ServerProcess {
  readonly lines: LogLine[] = [];
  readonly output: string[] = [];
  readonly #child: ChildProcess;
  readonly #events = new EventEmitter();
  readonly exited: Promise<number | string>;
  #ready: LogLine | undefined;

  private constructor(env: Record<string, string>, program: ServerOptions['program'] = { dir: root, arguments: ['src/main.ts'] }) {
    this.#child = spawn(node, [...program.arguments], { cwd: program.dir, env, stdio: ['ignore', 'pipe', 'pipe'] });
    this.exited = once(this.#child, 'exit').then(([code, signal]) => (code ?? signal) as number | string);
    this.#events.setMaxListeners(0);
    createInterface({ input: this.#child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      this.output.push(line);
      this.#events.emit('output');
    });
    createInterface({ input: this.#child.stderr as NodeJS.ReadableStream }).on('line', (line) => this.#read(line));
  }

  static launch(options: ServerOptions = {}): { server: ServerProcess; dataDir: string } {
    const dataDir = options.dataDir ?? newDataDir();
    return { server: new ServerProcess(cleanEnv({ HEPH_DATA_DIR: dataDir, ...options.env }), options.program), dataDir };
  }

  /** Starts a server and waits until it is ready; rejects with its last words when it ends before. */
  static async start(options: ServerOptions = {}): Promise<ServerProcess> {
    const { server } = ServerProcess.launch(options);
    await server.ready();
    return server;
  }

  /** Waits until it is ready. */
  async ready(): Promise<void> {
    this.#ready = await this.waitFor('server ready');
  }

  #read(line: string): void {
    let parsed: LogLine;
    try {
      parsed = JSON.parse(line) as LogLine;
    } catch {
      parsed = { event: line, level: 0 };
    }
    this.lines.push(parsed);
    if (this.lines.length > LOG_LINES_MAX) this.lines.shift();
    this.#events.emit('line', parsed);
  }

  get pid(): number {
    return this.#child.pid as number;
  }

  /** What it printed for the person who opens it, with a key where one is asked for. */
  async link(): Promise<string> {
    for (;;) {
      const found = this.output.join('\n').match(/Heph is ready: (\S+)/)?.[1];
      if (found !== undefined) return found;
      await once(this.#events, 'output');
    }
  }

  get port(): number {
    return Number(this.#ready?.['port']);
  }

  get agentPort(): number {
    return Number(this.#ready?.['agentPort']);
  }

  get opsPort(): number {
    return Number(this.#ready?.['opsPort']);
  }

  url(pathname: string): string {
    return `http://127.0.0.1:${this.port}${pathname}`;
  }

  /** The first log line of this event that matches, from the past or the future. Rejects when the process ends first. */
  async waitFor(event: string, matches: (line: LogLine) => boolean = () => true): Promise<LogLine> {
    const wanted = (line: LogLine) => line.event === event && matches(line);
    const seen = this.lines.find(wanted);
    if (seen) return seen;
    return new Promise((resolve, reject) => {
      const onLine = (line: LogLine) => {
        if (!wanted(line)) return;
        this.#events.off('line', onLine);
        resolve(line);
      };
      this.#events.on('line', onLine);
      void this.exited.then((how) => {
        this.#events.off('line', onLine);
        reject(new Error(`the server ended (${how}) before "${event}":\n${this.tail()}`));
      });
    });
  }

  tail(count = 30): string {
    const told = this.lines.slice(-count).map((line) => (line.level === 0 ? line.event : JSON.stringify(line)));
    return [...this.output, ...told].join('\n');
  }

  /** kill -9: no chance to say goodbye. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.exited;
  }

  /** SIGTERM; resolves with the exit code when it has drained. */
  async stop(): Promise<number | string> {
    this.#child.kill('SIGTERM');
    return this.exited;
  }
}

const dataDirs: string[] = [];

export function newDataDir(): string {
  const dir = mkdtempSync(path.join(tmpdir(), 'heph-flow-'));
  dataDirs.push(dir);
  return dir;
}

/** Removes the data directories that were made here. Call it after the last server of a file has stopped. */
export function removeDataDirs(): void {
  for (const dir of dataDirs.splice(0)) rmSync(dir, { recursive: true, force: true });
}
