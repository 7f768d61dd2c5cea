/**
 * Starting and stopping a real server: what a person sees when something is wrong, and what a restart keeps.
 */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { expect } from 'chai';
import { Flow, runnerPids } from '../support/flow.ts';
import { answer, hold } from '../support/model-server.ts';
import { WebClient } from '../support/person.ts';
import { newDataDir, removeDataDirs, ServerProcess } from '../support/server-process.ts';

const UNREACHABLE = 'postgres://nobody:secret-word@127.0.0.1:9/heph';

/** Starts a server that cannot start, and returns what it said. */
async function refusal(env: Readonly<Record<string, string>>, dataDir?: string): Promise<{ code: number | string; said: string }> {
  const { server } = ServerProcess.launch({ env, ...(dataDir ? { dataDir } : {}) });
  const code = await server.exited;
  return { code, said: server.tail() };
}

describe('a server that cannot start says what to do', function () {
  this.timeout(60_000);
  after(removeDataDirs);

  it('names every bad setting, its value and what is allowed', async () => {
    const { code, said } = await refusal({
      HEPH_AGENT_CAPACITY_TURNS: 'many',
      HEPH_MENTOR_TURN_DEADLINE: '20m',
      HEPH_LLM_API: 'smoke-signals',
    });
    expect(code).to.equal(2);
    expect(said).to.include('HEPH_AGENT_CAPACITY_TURNS is "many"; allowed: a whole number from 0 to 10000.');
    expect(said).to.match(/HEPH_MENTOR_TURN_DEADLINE is \\?"20m\\?"; allowed: a duration from 1s to 15m/);
    expect(said).to.match(
      /HEPH_LLM_API is \\?"smoke-signals\\?"; allowed: one of: openai-completions, openai-responses, anthropic-messages/,
    );
    expect(said).to.include('HEPH_LLM_BASE_URL is not set');
  });

  it('refuses to open to the network without a sign-in', async () => {
    const { code, said } = await refusal({ HEPH_BIND: '0.0.0.0' });
    expect(code).to.equal(2);
    expect(said).to.include('HEPH_BIND');
  });

  it('names the port that is busy and the variable that changes it', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => other.once('listening', resolve));
    const { port } = other.address() as { port: number };
    const { code, said } = await refusal({ HEPH_PORT: String(port) });
    other.close();
    expect(code).to.equal(1);
    expect(said).to.include(`Port ${port}`).and.include('HEPH_PORT');
  });

  it('names the database that does not answer, without its password', async () => {
    const { code, said } = await refusal({ HEPH_DATABASE_URL: UNREACHABLE });
    expect(code).to.equal(1);
    expect(said).to.include('127.0.0.1:9/heph').and.include('HEPH_DATABASE_URL');
    expect(said).to.not.include('secret-word');
  });

  it('names the data directory that is a file', async () => {
    const dataDir = path.join(newDataDir(), 'file');
    writeFileSync(dataDir, 'not a directory');
    const { code, said } = await refusal({}, dataDir);
    expect(code).to.equal(1);
    expect(said).to.include(dataDir);
  });

  it('names the data directory that cannot be written', async () => {
    // A path below a file can be made by nobody, not even by root.
    const parent = path.join(newDataDir(), 'closed');
    mkdirSync(parent);
    chmodSync(parent, 0o500);
    const dataDir = process.getuid?.() === 0 ? '/proc/heph-cannot-write-here' : path.join(parent, 'data');
    const { code, said } = await refusal({}, dataDir);
    expect(code).to.equal(1);
    expect(said).to.include(dataDir).and.include('HEPH_DATA_DIR');
  });

  it('refuses a data directory that another live server uses', async () => {
    const dataDir = newDataDir();
    const first = await ServerProcess.start({ dataDir, env: { HEPH_SANDBOX_WARM: '0' } });
    const { code, said } = await refusal({}, dataDir);
    await first.stop();
    expect(code).to.equal(1);
    expect(said).to.include(dataDir).and.include(String(first.pid));
  });
});

describe('a wrong HEPH_LLM_BASE_URL', function () {
  this.timeout(60_000);

  let flow: Flow;
  afterEach(() => flow.close());

  it('fails the turn with a text for the person, keeps the question, and the next one works when the provider is back', async () => {
    flow = await Flow.open({ env: { HEPH_LLM_BASE_URL: 'http://127.0.0.1:9/v1' } });
    const person = flow.person(await flow.server());
    const { turn, entry } = await person.ask('Is anybody there?');
    const failed = await person.waitForTurn(turn.id);
    expect(failed).to.include({ status: 'FAILED' });
    expect(failed.error?.text).to.equal('Hephaestus could not finish this reply. Try again.');
    expect((await person.entries(turn.conversationId)).map(({ id }) => id)).to.deep.equal([entry.id]);
    const again = flow.person(await flow.server({ env: { HEPH_LLM_BASE_URL: flow.model.url } }));
    await flow.servers[0]?.stop();
    const retry = await again.ask('Is anybody there?');
    expect(await again.waitForTurn(retry.turn.id)).to.include({ status: 'DONE' });
  });
});

describe('one server on its own machine', function () {
  this.timeout(90_000);
  const servers: ServerProcess[] = [];
  after(async () => {
    await Promise.all(servers.map((server) => server.kill()));
    removeDataDirs();
  });

  it('keeps everything over kill -9 of every process and a restart, with the built-in demo model', async () => {
    const dataDir = newDataDir();
    const first = await ServerProcess.start({ dataDir });
    servers.push(first);
    const person = new WebClient(`http://127.0.0.1:${first.port}`);
    const done = await person.ask('What can you read?');
    expect(await person.waitForTurn(done.turn.id)).to.include({ status: 'DONE' });
    const before = await person.entries(done.turn.conversationId);
    expect(before[1]?.text).to.include('INDEX.md');
    const open = await person.ask('Please count to 150.');
    await person.waitForTurn(open.turn.id, (turn) => turn.status === 'RUNNING');
    for (const pid of runnerPids(first.pid)) process.kill(pid, 'SIGKILL');
    await first.kill();

    const second = await ServerProcess.start({ dataDir });
    servers.push(second);
    person.base = `http://127.0.0.1:${second.port}`;
    expect((await person.entries(done.turn.conversationId)).slice(0, 2)).to.deep.equal(before);
    expect(await person.waitForTurn(open.turn.id)).to.include({ status: 'DONE', attempt: 2 });
    const answers = (await person.entries(done.turn.conversationId)).filter(
      ({ turnId, kind }) => turnId === open.turn.id && kind === 'answer',
    );
    expect(answers).to.have.length(1);
    expect(await second.stop()).to.equal(0);
    expect(runnerPids(second.pid)).to.deep.equal([]);
  });
});

describe('a graceful stop', function () {
  this.timeout(60_000);
  let flow: Flow;
  afterEach(() => flow.close());

  it('hands a running turn on when it is stopped gracefully, without costing an attempt', async () => {
    // rule: R9
    flow = await Flow.open();
    const pause = hold();
    flow.model.use((seen, n) => (n === 1 ? { steps: [{ text: 'half' }, { hold: pause }] } : answer()(seen, n)));
    const first = await flow.server();
    const person = flow.person(first);
    const { turn } = await person.ask('Are you going?');
    await pause.arrived;
    expect(await first.stop()).to.equal(0);
    pause.release();
    person.base = flow.person(await flow.server()).base;
    expect(await person.waitForTurn(turn.id)).to.include({ status: 'DONE', attempt: 1 });
  });
});
