/**
 * An operator and real servers: what a start recovered, a turn that is stopped from the command line, and a drain that hands a turn on.
 */
import { expect } from 'chai';
import { runAdminCommand } from '../../src/cli/run.ts';
import { Flow } from '../support/flow.ts';
import { heph as command } from '../support/heph-command.ts';
import { answerOf } from '../support/http-rig.ts';
import { answer, hold } from '../support/model-server.ts';
import { newDataDir, type ServerProcess } from '../support/server-process.ts';

const VIEWER = 'viewer-0123456789abcdef0123456789abcdef';

describe('an operator of real servers', function () {
  this.timeout(90_000);
  let flow: Flow;
  before(async () => {
    flow = await Flow.open({ env: { HEPH_SANDBOX_WARM: '1' } });
  });
  after(() => flow.close());

  async function heph(server: ServerProcess, ...args: string[]): Promise<string> {
    let said = '';
    const say = (text: string) => {
      said += text;
    };
    const opsUrl = `http://127.0.0.1:${server.opsPort}`;
    expect(await runAdminCommand(args, { opsUrl, readInput: async () => '', out: say, err: say }), said).to.equal(0);
    return said;
  }
  const read = async (server: ServerProcess, path: string) =>
    (await answerOf(await fetch(`http://127.0.0.1:${server.opsPort}${path}`))).body;

  it('reads after kill -9 what the start found and took back, and drains a server whose turn another one ends', async () => {
    const dataDir = newDataDir();
    const pause = hold();
    flow.model.use((seen, n) =>
      seen.question === 'Why?' ? { steps: [{ text: 'Be' }, { hold: pause }, { text: 'cause.' }] } : answer()(seen, n),
    );
    const killed = await flow.server({ dataDir });
    const person = flow.person(killed);
    const { turn } = await person.ask('Why?');
    await person.waitForTurn(turn.id, ({ status }) => status === 'RUNNING');
    expect(await heph(killed, 'turns'))
      .to.include(turn.id)
      .and.include('running');
    await killed.kill();

    const first = await flow.server({ dataDir });
    const ready = await read(first, '/readyz');
    expect(ready.parts.recovery.ok, ready.parts.recovery.why).to.equal(true);
    expect(ready.parts.recovery.why).to.match(/^At start 1 attempts were running: 1 requeued, 0 failed.*took 1 back/);
    const second = await flow.server();
    person.base = `http://127.0.0.1:${second.port}`;
    await person.waitForTurn(turn.id, ({ status, attempt }) => status === 'RUNNING' && attempt === 2);
    const { servers } = await read(second, '/admin/api/overview');
    expect(servers.filter(({ state }: { state: string }) => state === 'up').map(({ build }: { build: string }) => build)).to.have.length(2);

    const holder = servers.find(({ running, state }: { running: number; state: string }) => running === 1 && state === 'up');
    const [drained, other] = holder.self ? [second, first] : [first, second];
    expect(await heph(drained, 'drain', '--reason', 'a new build')).to.include('draining=true');
    expect(await drained.exited).to.equal(0);
    pause.release();
    person.base = `http://127.0.0.1:${other.port}`;
    expect(await person.waitForTurn(turn.id)).to.include({ status: 'DONE', attempt: 2 });
    const { actions } = await read(other, '/admin/api/actions');
    expect(actions[0]).to.include({ action: 'drain', reason: 'a new build', state: 'DONE' });
  });

  it('finds the metrics of the installation and the page at each server, and is what their token says', async () => {
    const fresh = await flow.server({ env: { HEPH_OPS_VIEWER_TOKEN: VIEWER } });
    const person = flow.person(fresh);
    const { turn } = await person.ask('And now?');
    expect(await person.waitForTurn(turn.id)).to.include({ status: 'DONE' });
    const text = await (await fetch(`http://127.0.0.1:${fresh.opsPort}/metrics`)).text();
    expect(text)
      .to.match(/^heph_slots\{state="free"\} 4$/m)
      .and.match(/^heph_turns_stuck\{rule="STOPPING_LONG"\} 0$/m);
    expect(text).to.match(/^heph_build_info\{build="heph 0\.1\.0, node 24[^"]*"\} 1$/m);
    expect((await fetch(`http://127.0.0.1:${fresh.opsPort}/ops`)).headers.get('content-security-policy')).to.include("default-src 'none'");

    const env = { HEPH_OPS_TOKEN: VIEWER };
    const looked = await command(fresh.opsPort, ['turns', '--state', 'queued'], { env });
    expect(looked.code, looked.said).to.equal(0);
    const refused = await command(fresh.opsPort, ['drain', '--reason', 'x'], { env });
    expect([refused.code, refused.said]).to.satisfy(
      ([code, said]: [number, string]) => code === 1 && said.includes('you need the role operator'),
    );
    const other = await command(fresh.opsPort, ['turns'], { env: { HEPH_OPS_TOKEN: 'x'.repeat(40) } });
    expect(other.said).to.include('This token is none of this installation');
    expect((await read(fresh, '/admin/api/me')).role, 'without a token this machine is every role').to.equal('admin');
  });
});
