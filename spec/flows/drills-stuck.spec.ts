/**
 * A drill for each rule by which a turn is stuck and that drills.spec.ts does not bring about on its way: it happens for real to running servers;
 * the command line names the turn and the rule, the alert fires; it is put right as an operator would, the question is answered, the alert clears.
 * Only time is helped along, where a rule wants seconds or minutes: the rows of what really waits are made older.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { sql } from '../../db/pool.ts';
import { runAdminCommand } from '../../src/cli/run.ts';
import type { StuckRule } from '../../src/contract/operators.ts';
import { AlertWatch } from '../support/alert-watch.ts';
import { Flow, withDescendants } from '../support/flow.ts';
import { run } from '../support/ledger.ts';
import { answer, hold } from '../support/model-server.ts';
import type { WebClient } from '../support/person.ts';
import { newDataDir, type ServerProcess } from '../support/server-process.ts';

const WAIT_MS = 90_000;
const ALERT = 'HephTurnsStuck';

describe('a turn that is stuck', function () {
  this.timeout(240_000);
  let flow: Flow;
  /** The server that people and operators ask; `other` once there is one. */
  let server: ServerProcess;
  let person: WebClient;
  let conversations: string[];
  const dataDirs = new Map<ServerProcess, string>();

  before(async () => {
    const env = { HEPH_AGENT_CAPACITY_TURNS: '2', HEPH_SANDBOX_MAX: '1', HEPH_SANDBOX_WARM: '0', HEPH_AGENT_CAPACITY_TURN_LEASE_TTL: '6s' };
    flow = await Flow.open({ env });
    server = await another();
    person = flow.person(server);
    const { turn } = await person.ask('Hello?');
    await person.waitForTurn(turn.id);
    conversations = [turn.conversationId, ...(await flow.threads(4))];
  });
  beforeEach(() => flow.model.use(answer()));
  after(() => flow.close());

  async function another(): Promise<ServerProcess> {
    const dataDir = newDataDir();
    const one = await flow.server({ dataDir });
    dataDirs.set(one, dataDir);
    return one;
  }

  const write = (query: ReturnType<typeof sql.unsafe>) => run(flow.db, query);
  const askIn = async (n: number, text: string) => (await person.ask(text, { conversationId: conversations[n] as string })).turn;
  const answered = async (turnId: string) => expect((await person.waitForTurn(turnId)).status).to.equal('DONE');
  const older = (turnId: string) =>
    write(sql.unsafe`update mentor_turn set created_at = created_at - interval '2 minutes' where id = ${turnId} returning 1`);

  async function heph(...args: string[]): Promise<string> {
    let said = '';
    const say = (text: string) => {
      said += text;
    };
    const io = { opsUrl: `http://127.0.0.1:${server.opsPort}`, readInput: async () => '', out: say, err: say };
    expect(await runAdminCommand(args, io), said).to.equal(0);
    return said;
  }

  /** A question that runs until it is let go: its model is silent. */
  async function running(n: number, text: string) {
    const silence = hold();
    flow.model.use((seen, k) => (seen.question === text ? { steps: [{ text: 'I am ' }, { hold: silence }] } : answer()(seen, k)));
    const { id } = await askIn(n, text);
    await silence.arrived;
    return { id, letGo: () => silence.release() };
  }

  /** A transaction that somebody left open holds these rows. What it returns ends it. */
  async function locked(query: ReturnType<typeof sql.unsafe>): Promise<() => Promise<void>> {
    const [taken, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const left = flow.db.transaction(async (tx) => {
      await run(tx as never, query);
      taken.resolve();
      await ended.promise;
    });
    await taken.promise;
    return async () => {
      ended.resolve();
      await left;
    };
  }

  /** The rule is named for the turn, and the alert fires. */
  async function isStuck(turnId: string, ...rules: StuckRule[]): Promise<AlertWatch> {
    const watch = new AlertWatch(server.opsPort);
    await watch.begin();
    const named = async () => {
      const shown = await heph('turns', '--state', 'stuck');
      return shown.includes(turnId) && rules.every((rule) => shown.includes(rule));
    };
    await watch.until(`${rules} of ${turnId}`, named, WAIT_MS);
    await watch.until(`${ALERT} fires`, async () => (await watch.firing()).includes(ALERT), WAIT_MS);
    return watch;
  }
  async function clears(watch: AlertWatch): Promise<void> {
    await watch.until(`${ALERT} clears`, async () => !(await watch.firing()).includes(ALERT), WAIT_MS);
    expect(await heph('turns', '--state', 'stuck')).to.not.match(/QUEUED_|RUNNING_|STOPPING_|CALLS_/);
  }

  it('waits for a sandbox while every sandbox is in use: one of the turns is stopped', async () => {
    const first = await running(0, 'hold the only sandbox');
    const { id } = await askIn(1, 'And I?');
    await older(id);
    const watch = await isStuck(id, 'QUEUED_NO_SANDBOX_LONG');
    await heph('turn', 'stop', first.id, '--reason', 'a drill');
    first.letGo();
    await answered(id);
    await clears(watch);
  });

  it('is claimed by nobody while somebody holds the slots in a transaction: it is ended', async () => {
    const end = await locked(sql.unsafe`select slot_no from turn_slot for update`);
    const { id } = await askIn(1, 'Who claims me?');
    await older(id);
    const watch = await isStuck(id, 'QUEUED_UNCLAIMED_LONG');
    await end();
    await answered(id);
    await clears(watch);
  });

  it('was stopped and keeps its slot, since its sandbox hangs and somebody holds its run: it is given up', async () => {
    const { id, letGo } = await running(1, 'hold and hang');
    const runners = withDescendants(server.pid).slice(1);
    for (const pid of runners) process.kill(pid, 'SIGSTOP');
    await heph('turn', 'stop', id, '--reason', 'a drill');
    const end = await locked(sql.unsafe`select id from agent_run where turn_id = ${id} for update`);
    await write(sql.unsafe`update mentor_turn set ended_at = ended_at - interval '2 minutes' where id = ${id} returning 1`);
    const watch = await isStuck(id, 'STOPPING_LONG');
    await end();
    letGo();
    await answered((await askIn(1, 'And the next?')).id);
    await clears(watch);
    for (const pid of runners) {
      try {
        process.kill(pid, 'SIGCONT');
      } catch {
        // it was ended with its sandbox
      }
    }
  });

  it('ran at a server that was killed, and somebody holds its run and its call: it is taken back, and the call is of unknown cost', async () => {
    const killed = server;
    const { id, letGo } = await running(2, 'hold and die');
    const end = await locked(
      sql.unsafe`select r.id from agent_run r join llm_usage_event e on e.run_id = r.id where r.turn_id = ${id} for update`,
    );
    server = await another();
    person = flow.person(server);
    const name = readFileSync(path.join(dataDirs.get(killed) as string, 'host-name'), 'utf8').trim();
    await killed.kill();
    letGo();
    const gone = sql.unsafe`update sandbox_host set ended_at = ended_at - interval '2 minutes' where name = ${name} and ended_at is not null returning 1`;
    const begun = new AlertWatch(server.opsPort);
    await begun.begin();
    await begun.until('the host is seen to be dead', async () => (await write(gone)).length === 1, WAIT_MS);
    const watch = await isStuck(id, 'RUNNING_HOST_DEAD', 'CALLS_OPEN_OF_DEAD_HOST');
    await end();
    await answered(id);
    expect(await heph('turn', 'show', id)).to.include('epoch 2 on ');
    await watch.until('its call is closed', async () => (await heph('turn', 'show', id)).includes('unknown'), WAIT_MS);
    await clears(watch);
  });

  it('waits while the only server drains: another is started', async () => {
    const drained = server;
    const first = await running(2, 'hold while it drains');
    for (const pid of withDescendants(server.pid).slice(1)) process.kill(pid, 'SIGSTOP');
    const { id } = await askIn(3, 'Who is there?');
    await heph('drain', '--reason', 'a drill');
    await older(id);
    const watch = await isStuck(id, 'QUEUED_NO_SERVER');
    server = await another();
    person = flow.person(server);
    await answered(id);
    await drained.kill();
    first.letGo();
    await answered(first.id);
    const after = new AlertWatch(server.opsPort);
    await after.begin();
    await clears(after);
    expect(watch.known.size).to.be.above(0);
  });
});
