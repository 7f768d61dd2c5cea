/**
 * Owns: a host with things that a sandbox must not reach (a readable secret, listeners, a process, another runner), and commands that run
 * through the real bash tool of a real runner, isolated or not.
 * Does not own: what is asked (spec/isolation/probes.ts).
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { LocalSandboxHost } from '../../sandbox-runner/host/local.ts';
import { compileCacheDir, fillCompileCache } from '../../sandbox-runner/isolation/compile-cache.ts';
import { type Isolation, probeIsolation } from '../../sandbox-runner/isolation/probe.ts';
import { sandboxRuntimeDir } from '../../sandbox-runner/isolation/runtime-dir.ts';
import { openDoor } from '../../src/http/index.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { type SandboxId, uuidv7 } from '../../src/kernel/ids.ts';
import { silentLog } from '../../src/kernel/log.ts';
import { streamTool, streamWords, wordsIn } from './agent-scripts.ts';
import { FakeAgentServer } from './fake-agent-server.ts';

const MB = 1024 * 1024;
export const LAB_LIMITS = { memoryBytes: 512 * MB, processes: 160, cpus: 1 };
export const LAB_DISK_BYTES = 64 * MB;

/** What this machine can do; asked once. */
let asked: Promise<Isolation> | undefined;
const dataDir = path.join(tmpdir(), 'heph-isolation-spec');

export function isolationOfThisMachine(): Promise<Isolation> {
  asked ??= probeIsolation({ limits: LAB_LIMITS, cacheDir: compileCacheDir(sandboxRuntimeDir(dataDir)) });
  return asked;
}

interface Runner {
  readonly fake: FakeAgentServer;
  readonly sandboxId: SandboxId;
}

export class IsolationLab {
  /** Found nowhere by accident. */
  readonly canary = `CANARY-${randomBytes(8).toString('hex')}`;
  readonly dir = mkdtempSync(path.join(tmpdir(), 'heph-lab-'));
  readonly hits = { tcp: 0, udp: 0, abstract: 0 };
  readonly isolated: boolean;
  host!: LocalSandboxHost;
  sleeper!: ChildProcess;
  #tcp!: Server;
  #udp!: UdpSocket;
  #abstract!: Server;
  #first!: Runner;
  readonly #fakes: FakeAgentServer[] = [];
  readonly #doors = new Map<string, FakeAgentServer>();

  private constructor(isolated: boolean) {
    this.isolated = isolated;
  }

  static async open(isolated: boolean): Promise<IsolationLab> {
    const lab = new IsolationLab(isolated);
    await lab.#plant();
    await lab.#openHost();
    lab.#first = await lab.startRunner();
    return lab;
  }

  get secretFile(): string {
    return path.join(this.dir, 'secret');
  }

  get tcpPort(): number {
    return (this.#tcp.address() as AddressInfo).port;
  }

  get udpPort(): number {
    return this.#udp.address().port;
  }

  get runnerPid(): number {
    return this.host.list().find(({ sandboxId }) => sandboxId === this.#first.sandboxId)?.pid ?? -1;
  }

  /** Another conversation's runner. */
  async startRunner(): Promise<Runner> {
    const sandboxId = uuidv7<'sandbox'>();
    // Runners that are not isolated all know the one address.
    const fake = this.isolated ? await FakeAgentServer.start() : (this.#fakes[0] as FakeAgentServer);
    if (this.isolated) this.#fakes.push(fake);
    this.#doors.set(sandboxId, fake);
    await this.host.start({ sandboxId, conversationId: uuidv7(), credential: `credential-${this.canary}` });
    return { fake, sandboxId };
  }

  /** What the model gets back from one bash call. */
  async bash(command: string, how: { readonly runner?: Runner; readonly timeoutSeconds?: number } = {}): Promise<string> {
    const { runner = this.#first, timeoutSeconds = 20 } = how;
    const { fake } = runner;
    fake.reset();
    fake.on('model', (call, response) => {
      if (fake.named('model').indexOf(call) > 0) streamWords(response, ['Done.']);
      else streamTool(response, 'bash', { command, timeout: timeoutSeconds });
    });
    fake.giveRun();
    return wordsIn((await fake.end()).entries, 'toolResult').join('');
  }

  /** Processes of this machine that sleep for exactly this long: a mark of a probe. */
  sleepers(seconds: string): number {
    return readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && commandLine(pid).join(' ') === `sleep ${seconds}`).length;
  }

  /** Dead layers that nobody has collected. */
  zombies(): number {
    return readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && /^\d+ \((bwrap|node)\) Z/.test(read(`/proc/${pid}/stat`))).length;
  }

  async close(): Promise<void> {
    await this.host.drain(2_000);
    await Promise.all(this.#fakes.map((fake) => fake.stop()));
    this.sleeper.kill('SIGKILL');
    for (const server of [this.#tcp, this.#abstract]) server.close();
    this.#udp.close();
    rmSync(this.dir, { recursive: true, force: true });
  }

  async #plant(): Promise<void> {
    chmodSync(this.dir, 0o755);
    writeFileSync(this.secretFile, this.canary, { mode: 0o644 });
    mkdirSync(path.join(this.dir, 'other'), { mode: 0o755 });
    writeFileSync(path.join(this.dir, 'other', 'document'), this.canary, { mode: 0o644 });
    this.sleeper = spawn('sleep', ['600'], { env: { PATH: '/usr/bin:/bin', PROVIDER_KEY: this.canary }, stdio: 'ignore' });
    this.#tcp = await listening(
      createServer((socket) => this.#hit('tcp', socket)),
      { port: 0, host: '127.0.0.1' },
    );
    this.#abstract = await listening(
      createServer((socket) => this.#hit('abstract', socket)),
      { path: `\0${this.canary}` },
    );
    this.#udp = createSocket('udp4');
    this.#udp.on('message', () => {
      this.hits.udp += 1;
    });
    this.#udp.bind(0, '127.0.0.1');
    await once(this.#udp, 'listening');
  }

  #hit(kind: 'tcp' | 'abstract', socket: { end(text: string): unknown; on(event: 'error', listener: () => void): unknown }): void {
    this.hits[kind] += 1;
    socket.on('error', () => undefined);
    socket.end(this.canary);
  }

  async #openHost(): Promise<void> {
    const { programs, limits } = await isolationOfThisMachine();
    const runtimeDir = sandboxRuntimeDir(dataDir);
    const cache = compileCacheDir(runtimeDir);
    if (programs) await fillCompileCache(cache, programs);
    const first = await FakeAgentServer.start();
    this.#fakes.push(first);
    const shared = { runtimeDir, warmCount: 0, maxRunners: 10, bash: true, log: silentLog, clock: systemClock };
    const isolation =
      this.isolated && programs ? { confinement: { programs, limits, workBytes: LAB_DISK_BYTES }, compileCacheDir: cache } : null;
    this.host = new LocalSandboxHost({
      ...shared,
      gateway: first.gateway,
      isolation: isolation && { ...isolation, openDoor: (at, owner) => openDoor(this.#wires(owner), at, owner) },
    });
  }

  /** Connections of a runner's socket go to the agent server of its sandbox. */
  #wires(owner: () => SandboxId | null) {
    return {
      attach: (server: Server) => void server.on('connection', (socket) => this.#doors.get(owner() ?? '')?.take(socket)),
    };
  }
}

async function listening(server: Server, at: { port: number; host: string } | { path: string }): Promise<Server> {
  server.listen(at);
  await once(server, 'listening');
  return server;
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return ''; // the process has gone
  }
}

function commandLine(pid: string): string[] {
  return read(`/proc/${pid}/cmdline`).split('\0').filter(Boolean);
}
