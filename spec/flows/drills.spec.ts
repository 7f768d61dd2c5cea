/**
 * A drill for each alert: what it is about happens for real to a running server; the alert's own query on the server's own metrics, the operator's
 * page and the command line name it; an operator (or the world) puts it right; the alert clears. Only time is helped along, where an alert
 * wants minutes: the rows of what really waits are made older.
 * How long a condition must hold (`for`) is tested by promtool (deploy/alerts/heph_test.yml).
 */
import { randomBytes, randomInt, randomUUID } from 'node:crypto';
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { expect } from 'chai';
import { HostLock } from '../../db/host-lock.ts';
import { endSandbox, registerHost } from '../../db/ledger/sandboxes.ts';
import { sql } from '../../db/pool.ts';
import { sandboxRuntimeDir } from '../../sandbox-runner/isolation/runtime-dir.ts';
import { runAdminCommand } from '../../src/cli/run.ts';
import { type AccountId, type ConversationId, type SandboxId, uuidv7, type WorkspaceId } from '../../src/kernel/ids.ts';
import { silentLog } from '../../src/kernel/log.ts';
import { until } from '../support/actors.ts';
import { AlertWatch } from '../support/alert-watch.ts';
import { ALERTS } from '../support/alerts.ts';
import { DatabaseDoor } from '../support/database-door.ts';
import { FakeSlack } from '../support/fake-slack.ts';
import { Flow, withDescendants } from '../support/flow.ts';
import { makeSandbox, run } from '../support/ledger.ts';
import { answer, type Hold, hold } from '../support/model-server.ts';
import type { WebClient } from '../support/person.ts';
import { newDataDir, type ServerProcess } from '../support/server-process.ts';
import { callback, deliver, message, SIGNING_SECRET } from '../support/slack-sender.ts';
import { SseClient } from '../support/sse-client.ts';

const WAIT_MS = 90_000;
const CAPACITY = 2;
/** Metrics that the drills need not move, and where they are seen to. */
const ELSEWHERE = {
  heph_actor_crashes_total: 'spec/rules/actor-kernel.spec.ts',
  heph_actor_overruns_total: 'spec/rules/actor-kernel-context.spec.ts',
  heph_actor_passivations_total: 'spec/rules/actor-kernel-passivation.spec.ts',
  heph_actor_refusals_total: 'spec/rules/actor-kernel-hostile.spec.ts',
  heph_model_closings_waiting: 'spec/rules/billing.spec.ts',
  heph_trace_spans_total: 'spec/flows/traces.spec.ts',
};

describe('a drill', function () {
  this.timeout(240_000);
  let flow: Flow;
  let slack: FakeSlack;
  let door: DatabaseDoor;
  let server: ServerProcess;
  let person: WebClient;
  let watch: AlertWatch;
  let dataDir: string;
  let conversations: string[];
  const drilled = new Set<string>();

  before(async () => {
    slack = await FakeSlack.start();
    dataDir = newDataDir();
    flow = await Flow.open({
      env: {
        ...{ HEPH_AGENT_CAPACITY_TURNS: String(CAPACITY), HEPH_SANDBOX_MAX: '6', HEPH_SANDBOX_WARM: '0' },
        ...{ HEPH_AGENT_CAPACITY_TURN_LEASE_TTL: '3s', HEPH_MENTOR_TURN_MODEL_FIRST_BYTE_TIMEOUT: '3s' },
        ...{ HEPH_SECRET_KEY: randomBytes(32).toString('base64'), HEPH_SLACK_SIGNING_SECRET: SIGNING_SECRET },
        ...{ HEPH_LLM_INPUT_PRICE: '1', HEPH_LLM_OUTPUT_PRICE: '1', HEPH_SLACK_API_URL: slack.apiUrl },
      },
    });
    door = await DatabaseDoor.of(flow.databaseUrl);
    server = await flow.server({ dataDir });
    person = flow.person(server);
    const { turn } = await person.ask('Hello?');
    await person.waitForTurn(turn.id);
    conversations = [turn.conversationId, ...(await flow.threads(4))];
    watch = new AlertWatch(server.opsPort);
  });
  after(async () => {
    await door.close();
    await flow.close();
    await slack.stop();
  });

  const write = (query: ReturnType<typeof sql.unsafe>) => run(flow.db, query);
  const nth = (n: number): string => conversations[n] as string;
  const askIn = async (n: number, text: string) => (await person.ask(text, { conversationId: nth(n) })).turn;
  const older = (turnId: string, minutes: number) =>
    write(
      sql.unsafe`update mentor_turn set created_at = created_at - ${minutes}::int * interval '1 minute' where id = ${turnId} returning 1`,
    );
  const answered = async (turnId: string) => expect((await person.waitForTurn(turnId)).status).to.equal('DONE');

  async function heph(...args: string[]): Promise<string> {
    let said = '';
    const say = (text: string) => {
      said += text;
    };
    const opsUrl = `http://127.0.0.1:${server.opsPort}`;
    expect(await runAdminCommand(args, { opsUrl, readInput: async () => 'xoxb-token-of-the-spec', out: say, err: say }), said).to.equal(0);
    return said;
  }
  const readyz = async () =>
    (await fetch(`http://127.0.0.1:${server.opsPort}/readyz`)).json() as Promise<{ parts: Record<string, { ok: boolean }> }>;

  /** None of these fires; from now on it is counted. */
  async function quiet(...alerts: string[]): Promise<void> {
    await watch.begin();
    for (const alert of alerts) expect(await watch.firing(), `${alert} before its drill`).to.not.include(alert);
  }
  async function fires(...alerts: string[]): Promise<void> {
    const all = async () => {
      const now = await watch.firing();
      return alerts.every((alert) => now.includes(alert));
    };
    await watch.until(`${alerts} fire`, all, WAIT_MS);
    for (const alert of alerts) drilled.add(alert);
  }
  /** What counts growth clears when nothing grows any more. */
  async function clears(...alerts: string[]): Promise<void> {
    const none = async () => {
      await watch.begin();
      const now = await watch.firing();
      return alerts.every((alert) => !now.includes(alert));
    };
    await watch.until(`${alerts} clear`, none, WAIT_MS);
  }

  it('slots: held turns take them all, one waits for minutes; a stop frees one, and the long wait is told when it is over', async () => {
    const alerts = ['HephSlotsFull', 'HephOldestTurnWaits', 'HephTurnsStuck'];
    await quiet(...alerts, 'HephQueueWaitLong');
    const pause: Hold = hold();
    const page = await SseClient.connect(`${person.base}/workspaces/home/mentor/events`);
    flow.model.use((seen, n) => (seen.question.startsWith('hold') ? { steps: [{ text: 'I am ' }, { hold: pause }] } : answer()(seen, n)));
    const held = [await askIn(0, 'hold one'), await askIn(1, 'hold two')];
    for (const { id } of held) await person.waitForTurn(id, ({ status }) => status === 'RUNNING');
    await pause.arrived;
    const waiting = await askIn(2, 'And I?');
    await older(waiting.id, 6);
    await fires(...alerts);
    expect(await heph('turns', '--state', 'stuck'))
      .to.include(waiting.id)
      .and.include('QUEUED_NO_SLOT_LONG');
    expect(await heph('turns', '--state', 'queued')).to.include('no-slot');
    await heph('turn', 'stop', held[0]?.id as string, '--reason', 'a drill');
    await answered(waiting.id);
    await fires('HephQueueWaitLong');
    await heph('turn', 'stop', held[1]?.id as string, '--reason', 'a drill');
    pause.release();
    await page.close();
    flow.model.use(answer());
    await clears(...alerts, 'HephQueueWaitLong');
  });

  it('sandboxes: none can be started while their folder is gone; it is put back, and the next question is answered', async () => {
    await quiet('HephSandboxesFail', 'HephTurnsStuck');
    const folder = sandboxRuntimeDir(dataDir);
    renameSync(folder, `${folder}-away`);
    writeFileSync(folder, 'no folder');
    const { id } = await askIn(3, 'Who starts me?');
    await fires('HephTurnsStuck');
    expect(await heph('turns', '--state', 'stuck'))
      .to.include(id)
      .and.include('QUEUED_SANDBOX_FAILING');
    await fires('HephSandboxesFail');
    expect((await person.waitForTurn(id)).error?.code).to.equal('NOT_STARTED');
    expect(server.lines.some(({ event }) => event === 'sandbox could not start')).to.equal(true);
    rmSync(folder);
    renameSync(`${folder}-away`, folder);
    await answered((await askIn(3, 'And now?')).id);
    await clears('HephSandboxesFail', 'HephTurnsStuck');
  });

  it('leases: a sandbox hangs, and a transaction that somebody left open keeps the reaper away; it is ended, and the turn is tried again', async () => {
    await quiet('HephLeasesExpire', 'HephTurnsStuck');
    const pause = hold();
    let asked = 0;
    flow.model.use((seen, n) => (++asked === 1 ? { steps: [{ text: 'half' }, { hold: pause }] } : answer()(seen, n)));
    const turn = await askIn(0, 'Do you hang?');
    await pause.arrived;
    const runners = withDescendants(server.pid).slice(1);
    for (const pid of runners) process.kill(pid, 'SIGSTOP');
    const ended = Promise.withResolvers<void>();
    const locked = Promise.withResolvers<void>();
    const blocker = flow.db.transaction(async (tx) => {
      await run(tx as never, sql.unsafe`select 1 from agent_run where state = 'LEASED' for update`);
      locked.resolve();
      await ended.promise;
    });
    await locked.promise;
    await fires('HephTurnsStuck');
    expect(await heph('turn', 'show', turn.id)).to.include('RUNNING_LEASE_EXPIRED');
    ended.resolve();
    await blocker;
    await fires('HephLeasesExpire');
    for (const pid of runners) {
      try {
        process.kill(pid, 'SIGCONT');
      } catch {
        // it was ended with its sandbox
      }
    }
    pause.release();
    await answered(turn.id);
    expect(await heph('turn', 'show', turn.id)).to.include('epoch 2 on ');
    flow.model.use(answer());
    await clears('HephLeasesExpire', 'HephTurnsStuck');
  });

  it('paths: somebody changes an answer in the database; the next turn says that it was sent otherwise', async () => {
    await quiet('HephPathBroken');
    await answered((await askIn(0, 'Is it as it was?')).id);
    await write(sql.unsafe`update mentor_entry set payload = replace(payload::text, 'You asked', 'You asket')::json
      where kind = 'ANSWER' and conversation_id = ${nth(0)} returning 1`);
    await answered((await askIn(0, 'And now?')).id);
    await fires('HephPathBroken');
    expect(server.lines.some(({ event }) => event === 'path.broken')).to.equal(true);
    const [entry] = await person.entries(nth(0));
    expect((await person.send('DELETE', `entries/${entry?.id}`)).status, 'an erasure, which is a declared change').to.equal(200);
    await answered((await askIn(0, 'It stays so.')).id);
    await clears('HephPathBroken');
  });

  it('the provider: it goes silent, turns fail and its breaker opens', async () => {
    await quiet('HephModelCallsStall', 'HephProviderPaused', 'HephTurnsFail');
    flow.model.use(() => ({ silent: 'hang' }));
    const turns = await Promise.all([0, 1, 2, 3].map((n) => askIn(n, 'Are you there?')));
    for (const { id } of turns) expect((await person.waitForTurn(id)).error?.code).to.equal('STALLED');
    await fires('HephModelCallsStall', 'HephTurnsFail');
    // Now it hangs up at once: the breaker has seen enough when half of all calls of a minute fail.
    flow.model.use(() => ({ silent: 'drop' }));
    const more = await Promise.all([0, 1, 2, 3].map((n) => askIn(n, 'And still?')));
    await fires('HephProviderPaused');
    for (const { id } of more) await person.waitForTurn(id);
    // The pause is told to the installation after it has begun on this server.
    const isTold = async () => /\n {0,2}environment .*\d{4}-\d\d-\d\dT/.test(await heph('connection', 'list'));
    await watch.until('the list of connections says until when it is paused', isTold, WAIT_MS);
    const { modelCalls } = (await (await fetch(`http://127.0.0.1:${server.opsPort}/admin/api/overview`)).json()) as {
      modelCalls: readonly { name: string; count: number }[];
    };
    expect(modelCalls.find(({ name }) => name === 'stalled')?.count).to.be.above(3);
    // It is well again; what is left of the pause passes during the drills that need no model, and the last one sees it end.
    flow.model.use(answer());
    await clears('HephModelCallsStall', 'HephTurnsFail');
  });

  it('claims: an operator pauses them, and resumes', async () => {
    await quiet('HephClaimsPaused');
    await heph('claims', 'pause', '--reason', 'a drill');
    await fires('HephClaimsPaused');
    expect(await heph('actions')).to.include('a drill');
    await heph('claims', 'resume', '--reason', 'a drill');
    await clears('HephClaimsPaused');
  });

  it('Slack: it hangs up on every call, so that nobody knows what it has taken; an operator looks and says so', async () => {
    await quiet('HephOutboxUncertain', 'HephOutboxOld');
    await heph('slack', 'connect', 'T0TEAM', '--workspace', 'home');
    let busy = true; // at first Slack asks to wait, so that a look finds the post waiting
    slack.fate = ({ method }) => {
      if (method !== 'chat.postMessage' && !method.startsWith('conversations.')) return 'ok';
      return busy ? { limitedS: 1 } : 'drop';
    };
    await deliver(server.port, callback(message('hello')));
    const isSeen = async () => (await watch.firing()) !== null && watch.moved.has('heph_outbox_pending');
    await watch.until('the post is seen to wait', isSeen, WAIT_MS);
    busy = false;
    await fires('HephOutboxUncertain');
    const list = await heph('outbox', 'list');
    expect(list).to.include('UNCERTAIN');
    await write(sql.unsafe`update outbox_action set created_at = created_at - interval '6 minutes' returning 1`);
    await fires('HephOutboxOld');
    const [action] = await write(sql.unsafe`select id from outbox_action where state = 'UNCERTAIN'`);
    slack.fate = () => 'ok';
    await heph('outbox', 'again', String(action?.['id']), '--reason', 'it is not there');
    await watch.until('Slack has it', async () => slack.messages.length === 1, WAIT_MS);
    await clears('HephOutboxUncertain', 'HephOutboxOld');
  });

  it('LISTEN: its session ends and no new one is let in', async () => {
    await quiet('HephListenLost', 'HephDatabaseAway');
    await door.shut('heph-listen');
    await fires('HephListenLost');
    expect((await readyz()).parts['listener']?.ok).to.equal(false);
    await door.shut('heph-server', 'heph-operators', 'heph-notify', 'heph-host-lock');
    await fires('HephDatabaseAway');
    expect((await readyz()).parts['database']?.ok).to.equal(false);
    expect((await person.send('GET', 'conversation')).status).to.equal(503);
    await door.open();
    await clears('HephListenLost', 'HephDatabaseAway');
  });

  it('the pool: somebody locks a table, callers queue for connections and commands in a mailbox; the lock goes, and all is answered', async () => {
    await quiet('HephDatabasePoolWaits', 'HephMailboxOld');
    const ended = Promise.withResolvers<void>();
    const locked = Promise.withResolvers<void>();
    const blocker = flow.db.transaction(async (tx) => {
      await run(tx as never, sql.unsafe`lock table mentor_entry in access exclusive mode`);
      locked.resolve();
      await ended.promise;
    });
    await locked.promise;
    const questions = ['one', 'two', 'three'].map((text) => person.send('POST', 'questions', { requestId: randomUUID(), text }));
    const reads = Array.from({ length: 80 }, () => person.send('GET', `conversations/${nth(0)}/entries`));
    await fires('HephDatabasePoolWaits');
    await fires('HephMailboxOld');
    expect(await heph('actors')).to.match(/conversation/);
    ended.resolve();
    await blocker;
    for (const { status } of await Promise.all([...questions, ...reads])) expect(status).to.be.oneOf([200, 202, 503]);
    await clears('HephDatabasePoolWaits', 'HephMailboxOld');
  });

  it('the event loop: the server stands still for a second', async () => {
    await clears('HephEventLoopLags');
    await watch.begin();
    process.kill(server.pid, 'SIGSTOP');
    const sinceMs = performance.now();
    await until('a second has passed', () => performance.now() - sinceMs > 1_200);
    process.kill(server.pid, 'SIGCONT');
    await fires('HephEventLoopLags');
    await clears('HephEventLoopLags');
  });

  it('the fence: an attempt that lost its run goes on calling', async () => {
    await quiet('HephFenceRefusals');
    const [row] = await write(sql.unsafe`select r.id, c.workspace_id, c.account_id from agent_run r
      join mentor_conversation c on c.id = r.conversation_id where c.id = ${nth(0)} order by r.created_at limit 1`);
    const owner = { workspaceId: row?.['workspace_id'] as WorkspaceId, accountId: row?.['account_id'] as AccountId };
    // Its conversation's sandbox is gone, and another server that lives has one for it.
    const live = await write(sql.unsafe`select id from sandbox where conversation_id = ${nth(0)} and state <> 'ENDED'`);
    for (const box of live) await endSandbox(flow.db, box['id'] as SandboxId);
    const [hostId, lockKey] = [uuidv7<'host'>(), randomInt(2 ** 40)];
    const lock = await HostLock.take(flow.databaseUrl, lockKey, silentLog);
    await registerHost(flow.db, { id: hostId, name: 'a drill', lockKey, sandboxesMax: 0 });
    const { id, credential } = await makeSandbox(flow.db, owner, nth(0) as ConversationId, hostId);
    const json = { 'content-type': 'application/json' };
    const headers = { ...json, authorization: `Bearer ${credential}`, 'x-agent-run': String(row?.['id']), 'x-agent-epoch': '1' };
    for (let n = 0; n < 6; n++) {
      const url = `http://127.0.0.1:${server.agentPort}/internal/agent/runs/${row?.['id']}/lease`;
      expect((await fetch(url, { method: 'POST', headers, body: '{}' })).status).to.equal(409);
    }
    await fires('HephFenceRefusals');
    await endSandbox(flow.db, id);
    await lock.close();
    await clears('HephFenceRefusals');
  });

  it('the provider, when its pause is over: it is called again, and answers', async () => {
    const isAnswered = async () => (await person.waitForTurn((await askIn(1, 'Are you back?')).id)).status === 'DONE';
    await watch.until('a turn is answered', isAnswered, WAIT_MS);
    await clears('HephProviderPaused');
  });

  it('was held for every alert, and moved every metric', () => {
    expect([...drilled].sort()).to.deep.equal(ALERTS.map(({ alert }) => alert).sort());
    const still = [...watch.known].filter((name) => !watch.moved.has(name)).sort();
    expect(Object.keys(ELSEWHERE), 'metrics that did not move').to.include.members(still);
  });
});
