/**
 * Owns: proof of how runners live and die: ready before a conversation, one conversation each, gone when they are asked to go, when
 * their server is gone, and when it is killed. Real processes.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect } from 'chai';
import { type RunnerReport, runnerReportSchema } from '../../src/contract/agent.ts';
import type { RuntimeFault } from '../../src/kernel/faults.ts';
import { type SandboxId, uuidv7 } from '../../src/kernel/ids.ts';
import { openai, openStream, streamTool, streamWords } from '../support/agent-scripts.ts';
import { FakeAgentServer, problem, type Responder } from '../support/fake-agent-server.ts';
import { processGone, RunnerRig, startRunner } from '../support/runner-rig.ts';
import { skipLoudly } from '../support/skip.ts';

const DRIVER = join(import.meta.dirname, '../../sandbox-runner/driver.ts');
const HOST = new URL('../../sandbox-runner/host/local.ts', import.meta.url).href;
const heldOpen: Responder = (_call, response) => openStream(response)(openai.words('Once upon'));

describe('a runner', () => {
  let rig: RunnerRig;
  let server: FakeAgentServer;

  before(async () => {
    rig = new RunnerRig();
    server = await rig.openServer();
  });
  beforeEach(() => server.reset());
  after(() => rig.close());

  /** A driver without a host around it. */
  function startDriver() {
    const child = spawn(process.execPath, [DRIVER, '--compile-cache', join(rig.runtimeDir, 'compile-cache')], { env: {} });
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const logged: RunnerReport[] = [];
    const report = async (): Promise<RunnerReport> => {
      const { value } = await lines.next();
      const parsed = runnerReportSchema.parse(JSON.parse(String(value)));
      if (parsed.type !== 'log') return parsed;
      logged.push(parsed);
      return report();
    };
    const workDir = mkdtempSync(join(rig.runtimeDir, 'd-'));
    const assign = () =>
      child.stdin.write(`${JSON.stringify({ gateway: server.gateway, credential: 'c', conversationId: uuidv7(), bash: true, workDir })}\n`);
    return { child, report, assign, workDir, logged };
  }
  async function exitOf(child: ChildProcess): Promise<number | null> {
    if (child.exitCode === null) await once(child, 'exit');
    return child.exitCode;
  }

  it('is ready before it has a conversation, and says what it does in its protocol', async () => {
    const { child, report, assign, logged } = startDriver();
    expect(await report()).to.deep.equal({ type: 'ready' });
    expect(logged, 'a dummy turn of each API was answered').to.deep.equal([
      { type: 'log', level: 'debug', event: 'runner_warm', fields: { answered: 3 } },
    ]);
    assign();
    expect(await report()).to.deep.equal({ type: 'idle' });
    const { run } = server.giveRun({}, { epoch: 2 });
    expect(await report()).to.deep.equal({ type: 'busy', runId: run.id, epoch: 2 });
    expect(await report()).to.deep.equal({ type: 'idle' });
    child.stdin.write('{"type":"drain"}\n');
    expect(await exitOf(child)).to.equal(0);
  });

  it('whose server is gone ends at once, without a call, and takes its command with it', async () => {
    const { child, assign, workDir } = startDriver();
    assign();
    server.on('model', (_call, response) => streamTool(response, 'bash', { command: 'echo $$ > pid; exec sleep 1000' }));
    const running = (): number | undefined =>
      Number(existsSync(join(workDir, 'pid')) && readFileSync(join(workDir, 'pid'), 'utf8')) || undefined;
    server.giveRun();
    await server.until(running);
    const pid = running() as number;
    const callsBefore = server.calls.filter((call) => call.name !== 'turn/partial').length;
    child.stdin.end();
    expect(await exitOf(child)).to.equal(0);
    await processGone(pid);
    expect(server.calls.filter((call) => call.name !== 'turn/partial')).to.have.length(callsBefore);
  });

  it('that gets SIGTERM in the middle of a turn hands the run on', async () => {
    const { child, assign } = startDriver();
    assign();
    server.on('model', heldOpen);
    server.giveRun();
    await server.call('model');
    child.kill('SIGTERM');
    expect((await server.call('end')).body).to.deep.equal({ outcome: 'HANDED_ON' });
    expect(await exitOf(child)).to.equal(0);
    expect(server.named('turn/end')).to.deep.equal([]);
  });

  it('is not ended by the Ctrl-C that a terminal sends to everybody', async () => {
    const { child, assign } = startDriver();
    assign();
    server.on('model', async (_call, response) => {
      child.kill('SIGINT');
      child.kill('SIGHUP');
      streamWords(response, ['Still here.']);
    });
    server.giveRun();
    expect((await server.end()).outcome).to.equal('DONE');
    child.kill('SIGTERM');
    expect(await exitOf(child)).to.equal(0);
  });

  it('keeps pulling while its server restarts', async () => {
    const first = await FakeAgentServer.start();
    const { port } = first;
    const host = rig.openHost({ gateway: first.gateway });
    await startRunner(host);
    await first.call('next');
    await first.stop();
    const second = await FakeAgentServer.start({ port });
    second.giveRun();
    expect((await second.end()).outcome).to.equal('DONE');
    await host.drain(2_000);
    await second.stop();
  });

  it('sees nothing of the server: no credential and no variable in its environment or arguments', async function () {
    if (process.platform !== 'linux') skipLoudly(this, 'only Linux shows the environment of a process');
    const { host } = await rig.openRunner();
    const { pid } = host.list()[0] as { pid: number };
    const environment = readFileSync(`/proc/${pid}/environ`, 'utf8')
      .split('\0')
      .filter((entry) => entry !== '');
    expect(environment.map((entry) => entry.split('=')[0])).to.deep.equal(['PATH']);
    expect(readFileSync(`/proc/${pid}/cmdline`, 'utf8')).not.to.include('the-credential');
  });

  describe('of a host', () => {
    const exits = (host: { onExit(listener: (id: SandboxId, how: string) => void): void }): Promise<[SandboxId, string]> =>
      new Promise((resolve) => host.onExit((id, how) => resolve([id, how])));
    const workFolders = (): string[] => readdirSync(rig.runtimeDir).filter((name) => name.startsWith('w-'));

    it('waits warm, serves one conversation, and is replaced; when all are taken the next one is BUSY', async () => {
      const host = rig.openHost({ gateway: server.gateway, warmCount: 1, maxRunners: 2 });
      const warm = host.list()[0]?.pid;
      const first = await startRunner(host);
      expect(host.list().map((runner) => [runner.sandboxId, runner.pid === warm])).to.deep.equal([
        [first, true],
        [null, false],
      ]);
      const second = await startRunner(host);
      expect(host.list().map((runner) => runner.sandboxId)).to.deep.equal([first, second]);
      const refusal = await startRunner(host).catch((error: unknown) => error);
      expect((refusal as RuntimeFault).code).to.equal('BUSY');
      await host.end(first);
      expect(host.list().some((runner) => runner.pid === warm)).to.equal(false);
      await host.drain(2_000);
    });

    it('hands its run on when the host drains, and its folder is gone with it', async () => {
      const own = await rig.openRunner();
      own.server.on('model', heldOpen);
      own.server.giveRun();
      await own.server.call('model');
      expect(own.host.list()[0]?.state).to.equal('busy');
      const told = exits(own.host);
      const before = workFolders().length;
      await own.host.drain(5_000);
      expect((await own.server.call('end')).body).to.deep.equal({ outcome: 'HANDED_ON' });
      expect(await told).to.deep.equal([own.sandboxId, 'asked']);
      expect(own.host.list()).to.deep.equal([]);
      expect(workFolders().length).to.be.lessThan(before);
      expect(((await startRunner(own.host).catch((error: unknown) => error)) as RuntimeFault).code).to.equal('DRAINING');
    });

    it('that does not go in time is killed', async () => {
      const own = await rig.openRunner();
      own.server.on('model', heldOpen);
      own.server.on('end', () => undefined);
      own.server.giveRun();
      await own.server.call('model');
      const told = exits(own.host);
      await own.host.drain(300);
      expect(await told).to.deep.equal([own.sandboxId, 'asked']);
    });

    it('that crashes is told, and one whose credential is refused goes by itself', async () => {
      const own = await rig.openRunner();
      const crashed = exits(own.host);
      process.kill((own.host.list()[0] as { pid: number }).pid, 'SIGKILL');
      expect(await crashed).to.deep.equal([own.sandboxId, 'crashed']);
      own.server.on('next', (_call, response) => problem(response, 401, { code: 'SANDBOX_UNKNOWN' }));
      const refused = exits(own.host);
      const sandboxId = await startRunner(own.host);
      expect(await refused).to.deep.equal([sandboxId, 'asked']);
    });

    it('leaves no documents of people on the disk, also when its server was killed', async () => {
      const left = join(rig.runtimeDir, 'w-999999999-left');
      mkdirSync(left);
      writeFileSync(join(left, 'user.json'), '{}');
      await rig.openHost({ gateway: server.gateway }).drain(0);
      expect(existsSync(left)).to.equal(false);
    });

    it('does not outlive a server that is killed', async () => {
      const own = await rig.openServer();
      const options = { gateway: own.gateway, runtimeDir: rig.runtimeDir, warmCount: 1, maxRunners: 2, bash: false };
      const script = `
        const { LocalSandboxHost } = await import(${JSON.stringify(HOST)});
        const quiet = { debug() {}, info() {}, warn() {}, error() {}, child: () => quiet };
        const { systemClock: clock } = await import(${JSON.stringify(new URL('../../src/kernel/clock.ts', import.meta.url).href)});
        const host = new LocalSandboxHost({ ...${JSON.stringify(options)}, log: quiet, clock });
        await host.start({ sandboxId: 'a', conversationId: '${uuidv7()}', credential: 'c' });
        process.stdout.write(JSON.stringify(host.list().map((runner) => runner.pid)) + '\\n');`;
      const parent = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
      const [line] = await once(createInterface({ input: parent.stdout }), 'line');
      await own.call('next');
      parent.kill('SIGKILL');
      for (const pid of JSON.parse(String(line)) as number[]) await processGone(pid);
    });
  });
});
