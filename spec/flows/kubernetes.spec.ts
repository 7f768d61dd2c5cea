/**
 * Pods with real processes: a server, a fake cluster whose pods are real runners, and one address by which pods reach the agent listener of any
 * ready server. Each question is answered exactly once, whatever dies.
 */
import { expect } from 'chai';
import { z } from 'zod';
import { sql } from '../../db/pool.ts';
import { LABELS } from '../../sandbox-runner/host/kubernetes/objects.ts';
import { FakeKubernetes } from '../support/fake-kubernetes.ts';
import { RunnerPod } from '../support/fake-pods.ts';
import { Flow } from '../support/flow.ts';
import { LoadBalancer } from '../support/load-balancer.ts';
import { answer, hold } from '../support/model-server.ts';
import { newDataDir, type ServerProcess } from '../support/server-process.ts';

describe('turns in pods, with real processes', function () {
  this.timeout(120_000);
  let flow: Flow;
  let cluster: FakeKubernetes;
  let agents: LoadBalancer;

  beforeEach(async () => {
    cluster = await FakeKubernetes.start(() => new RunnerPod());
    agents = await LoadBalancer.open();
  });
  afterEach(async () => {
    await flow.close();
    await agents.close();
    await cluster.close();
  });

  async function open(env: Readonly<Record<string, string>> = {}): Promise<void> {
    flow = await Flow.open({
      env: {
        ...{ HEPH_SANDBOX_HOST: 'kubernetes', KUBECONFIG: cluster.kubeconfig, HEPH_SHUTDOWN_GRACE: '5s' },
        ...{ HEPH_KUBERNETES_WARM_POOL: 'pool', HEPH_KUBERNETES_AGENT_URL: agents.url },
        ...env,
      },
    });
  }

  async function serve(dataDir?: string): Promise<ServerProcess> {
    const server = await flow.server(dataDir === undefined ? {} : { dataDir });
    agents.add({ port: server.agentPort, opsPort: server.opsPort });
    return server;
  }

  const wordsOf = async (server: ServerProcess, conversationId: string) =>
    (await flow.person(server).entries(conversationId)).map(({ text }) => text);

  it('answers in a pod that was claimed for the conversation, the next question in the same one', async () => {
    await open();
    const server = await serve();
    const person = flow.person(server);
    for (const question of ['one', 'two']) {
      const { turn } = await person.ask(question);
      expect(await person.waitForTurn(turn.id)).to.include({ status: 'DONE', attempt: 1 });
    }
    const { id } = await person.conversation();
    expect(await wordsOf(server, id)).to.deep.equal(['one', 'You asked: one', 'two', 'You asked: two']);
    expect(cluster.claims.map(({ metadata }) => metadata.labels[LABELS.conversation])).to.deep.equal([id]);
    const ready = (await (await fetch(`http://127.0.0.1:${server.opsPort}/readyz`)).json()) as { parts: Record<string, unknown> };
    expect(ready.parts['sandboxes']).to.deep.equal({ ok: true, why: 'pods in namespace heph-spec', required: false });
  });

  it('answers on the second attempt, once, when the pod dies in the middle of a turn', async () => {
    await open();
    const person = flow.person(await serve());
    const pause = hold();
    flow.model.use((seen, n) => (n === 1 ? { steps: [{ text: 'half' }, { hold: pause }] } : answer()(seen, n)));
    const { turn } = await person.ask('Will you survive?');
    await pause.arrived;
    await cluster.pods[0]?.end('at once');
    expect(await person.waitForTurn(turn.id)).to.include({ status: 'DONE', attempt: 2 });
    pause.release();
    const entries = await person.entries(turn.conversationId);
    expect(entries.map(({ text }) => text)).to.deep.equal(['Will you survive?', 'You asked: Will you survive?']);
    await cluster.until(() => cluster.claims.length === 1);
  });

  it('goes on in the same pod and the same attempt when its server is killed in the middle of a turn', async () => {
    await open();
    const dataDir = newDataDir();
    const first = await serve(dataDir);
    const pause = hold();
    flow.model.use((seen, n) => (n === 1 ? { steps: [{ text: 'half' }, { hold: pause }] } : answer()(seen, n)));
    const { turn } = await flow.person(first).ask('Are you still there?');
    await pause.arrived;
    await first.kill();
    const second = await serve(dataDir);
    expect(await flow.person(second).waitForTurn(turn.id)).to.include({ status: 'DONE', attempt: 1 });
    pause.release();
    await second.waitFor('pod_taken_over');
    expect(await wordsOf(second, turn.conversationId)).to.deep.equal(['Are you still there?', 'You asked: Are you still there?']);
    expect(cluster.claims).to.have.length(1);
    const next = await flow.person(second).ask('And now?');
    expect(await flow.person(second).waitForTurn(next.turn.id)).to.include({ status: 'DONE' });
    expect(cluster.pods).to.have.length(1);
  });

  it('lets a turn run on in its pod while one of two servers stops gracefully', async () => {
    await open();
    const [first, second] = [await serve(), await serve()];
    const pause = hold();
    flow.model.use(async (seen, n) => ({ before: pause, reply: await answer()(seen, n) }));
    const { turn } = await flow.person(first).ask('Do you mind?');
    await pause.arrived;
    const stopped = first.stop();
    pause.release();
    expect(await flow.person(second).waitForTurn(turn.id)).to.include({ status: 'DONE', attempt: 1 });
    expect(await stopped).to.equal(0);
    expect(await wordsOf(second, turn.conversationId)).to.deep.equal(['Do you mind?', 'You asked: Do you mind?']);
    expect(cluster.pods).to.have.length(1);
  });

  it('suspends an idle pod and resumes it for the next question, with another credential', async () => {
    await open({ HEPH_SANDBOX_IDLE: '3s' });
    const person = flow.person(await serve());
    const ask = async (text: string) => {
      const { turn } = await person.ask(text);
      expect(await person.waitForTurn(turn.id)).to.include({ status: 'DONE', attempt: 1 });
      await cluster.until(() => cluster.claims.every((claim) => cluster.modeOf(claim) === 'Suspended' && cluster.podOf(claim) === null));
    };
    await ask('one');
    await ask('two');
    expect(cluster.claims).to.have.length(1);
    const rows = await flow.db.any(sql.type(z.object({ state: z.string(), credentials: z.number() }))`
      select state, count(distinct credential_hash)::int as credentials from sandbox group by state`);
    expect(rows).to.deep.equal([{ state: 'ENDED', credentials: 2 }]);
  });

  it('tells the person when no pod ever becomes ready, and leaves no claim behind', async () => {
    await open({ HEPH_KUBERNETES_READY: '1s' });
    cluster.podsStart = false;
    const person = flow.person(await serve());
    const { turn } = await person.ask('Is anybody there?');
    const failed = await person.waitForTurn(turn.id);
    expect(failed).to.include({ status: 'FAILED' });
    expect(failed.error).to.deep.equal({ code: 'NOT_STARTED', text: 'Hephaestus could not start. Try again in a moment.' });
    await cluster.until(() => cluster.claims.length === 0);
  });
});
