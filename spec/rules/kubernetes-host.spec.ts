/**
 * Sandboxes as pods: the real client against a fake cluster, without a database. What the rows say is played by the spec.
 */
import { expect } from 'chai';
import { Cluster } from '../../sandbox-runner/host/kubernetes/cluster.ts';
import { KubernetesSandboxHost, type KubernetesSandboxHostOptions } from '../../sandbox-runner/host/kubernetes/host.ts';
import { LABELS } from '../../sandbox-runner/host/kubernetes/objects.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { type ConversationId, type SandboxId, uuidv7 } from '../../src/kernel/ids.ts';
import { until } from '../support/actors.ts';
import { FakeKubernetes } from '../support/fake-kubernetes.ts';
import type { StubPod } from '../support/fake-pods.ts';
import { NotedLog } from '../support/noted-log.ts';

const INSTALLATION = uuidv7();
const GATEWAY = 'http://heph-agent:8081';

interface Row {
  readonly sandboxId: SandboxId;
  readonly conversationId: ConversationId;
  busy: boolean;
}

/** One server's host, with what the rows say. */
class HostOfServer {
  readonly host: KubernetesSandboxHost;
  readonly log = new NotedLog();
  readonly exits: { sandboxId: SandboxId; how: 'asked' | 'crashed' }[] = [];

  constructor(cluster: Cluster, rows: Row[], options: Partial<KubernetesSandboxHostOptions>) {
    this.host = new KubernetesSandboxHost({
      ...{ cluster, installation: INSTALLATION, warmPool: 'pool', gateway: GATEWAY, clock: systemClock, log: this.log },
      ...{ readyMaxMs: 60_000, suspendedMs: 60_000, compareEveryMs: 25 },
      liveAmong: async (ids) => new Set(rows.map((row) => row.sandboxId).filter((id) => ids.includes(id))),
      ...options,
    });
    this.host.onExit((sandboxId, how) => {
      this.exits.push({ sandboxId, how });
      const at = rows.findIndex((row) => row.sandboxId === sandboxId);
      if (at >= 0) rows.splice(at, 1);
    });
  }
}

describe('pods of a cluster as sandboxes', function () {
  this.timeout(60_000);
  let fake: FakeKubernetes;
  let previous: string | undefined;
  const hosts: HostOfServer[] = [];
  const rows: Row[] = [];

  beforeEach(async () => {
    fake = await FakeKubernetes.start();
    previous = process.env['KUBECONFIG'];
    process.env['KUBECONFIG'] = fake.kubeconfig;
  });
  afterEach(async () => {
    fake.podsStart = true;
    await Promise.all(hosts.splice(0).map(({ host }) => host.drain(0)));
    await fake.close();
    rows.length = 0;
    if (previous === undefined) delete process.env['KUBECONFIG'];
    else process.env['KUBECONFIG'] = previous;
  });

  async function open(options: Partial<KubernetesSandboxHostOptions> = {}): Promise<HostOfServer> {
    const it = new HostOfServer(await Cluster.open(null), rows, options);
    hosts.push(it);
    return it;
  }

  async function start({ host }: HostOfServer, conversationId: ConversationId = uuidv7()): Promise<Row & { credential: string }> {
    const row = { sandboxId: uuidv7<'sandbox'>(), conversationId, busy: false };
    const credential = `credential of ${row.sandboxId}`;
    rows.push(row);
    await host.start({ ...row, credential });
    return { ...row, credential };
  }

  const stateOf = ({ host }: HostOfServer, id: SandboxId) => host.list().find(({ sandboxId }) => sandboxId === id)?.state;
  const ready = (it: HostOfServer, { sandboxId }: Row) => until('the pod has its credential', () => stateOf(it, sandboxId) === 'idle');
  const stub = (n = 0) => fake.pods[n] as StubPod;

  it('claim one from the warm pool, without an environment, and hand the credential over by exec', async () => {
    const it = await open();
    const row = await start(it);
    await ready(it, row);
    const [claim] = fake.claims;
    expect(claim?.metadata.name).to.equal(`heph-${row.sandboxId}`);
    expect(claim?.metadata.labels).to.deep.equal({
      [LABELS.installation]: INSTALLATION,
      [LABELS.sandbox]: row.sandboxId,
      [LABELS.conversation]: row.conversationId,
    });
    expect(claim?.spec).to.have.all.keys('warmPoolRef', 'lifecycle');
    expect(stub().assignment).to.include({ gateway: GATEWAY, credential: row.credential, conversationId: row.conversationId });
    const seen = JSON.stringify([fake.claims, fake.requests, it.log.lines]);
    expect(seen, 'in no object, no command line and no log line').to.not.include(row.credential);
  });

  it('make one claim when the answer to its creation is lost, and give one pod the same assignment twice when that answer is', async () => {
    fake.fail({ method: 'POST', path: 'sandboxclaims', status: 504, afterwards: true });
    fake.fail({ method: 'EXEC', path: 'exec', status: 0, afterwards: true });
    const it = await open();
    const row = await start(it);
    await ready(it, row);
    expect(fake.claims).to.have.length(1);
    expect(stub().lines).to.have.length(2);
    expect(new Set(stub().lines).size).to.equal(1);
  });

  it('wait as long as the cluster asks when it is busy, and go on when it does not answer or the token has just expired', async () => {
    const it = await open();
    fake.fail({ method: 'POST', path: 'sandboxclaims', status: 429, retryAfterS: 1 });
    fake.fail({ method: 'POST', path: 'sandboxclaims', status: 500 });
    fake.fail({ method: 'POST', path: 'sandboxclaims', status: 401 });
    const row = await start(it);
    await ready(it, row);
    expect(fake.requests.filter(({ method, path }) => method === 'POST' && path.endsWith('sandboxclaims'))).to.have.length(4);
    expect(it.exits).to.deep.equal([]);
  });

  it('never take a claim of the same name that is somebody else’s', async () => {
    const it = await open();
    const row = { sandboxId: uuidv7<'sandbox'>(), conversationId: uuidv7<'conversation'>(), busy: false };
    const foreign = fake.addClaim(`heph-${row.sandboxId}`, { [LABELS.installation]: uuidv7(), [LABELS.sandbox]: row.sandboxId });
    rows.push(row);
    await it.host.start({ ...row, credential: 'secret' });
    await until('the server hears of an end', () => it.exits.length === 1);
    expect(it.exits).to.deep.equal([{ sandboxId: row.sandboxId, how: 'crashed' }]);
    expect(fake.claims).to.deep.equal([foreign]);
    expect(stub().lines).to.deep.equal([]);
  });

  it('start another while one waits for a pod, and give that one up when its time is over', async () => {
    const it = await open({ readyMaxMs: 400 });
    fake.podsStart = false;
    const slow = await start(it);
    await fake.until(() => fake.claims.length === 1);
    const other = await start(it);
    await fake.until(() => fake.claims.length === 2);
    fake.podsStart = true;
    await until('the server hears of an end', () => it.exits.length === 2);
    expect(it.exits.map(({ how }) => how)).to.deep.equal(['crashed', 'crashed']);
    expect(it.exits.map(({ sandboxId }) => sandboxId)).to.have.members([slow.sandboxId, other.sandboxId]);
    await fake.until(() => fake.claims.length === 0);
    expect(it.log.of('pod_not_started')[0]).to.include({ reason: 'DependenciesNotReady' });
  });

  it('notice a pod that dies, one that is deleted, and one in whose place another stands, also when the watch was cut meanwhile', async () => {
    const it = await open();
    const [dead, deleted, replaced] = [await start(it), await start(it), await start(it)];
    for (const row of [dead, deleted, replaced]) await ready(it, row);
    const claimOf = (row: Row) => fake.claims.find(({ metadata }) => metadata.name === `heph-${row.sandboxId}`);
    const [first, , third] = [claimOf(dead), claimOf(deleted), claimOf(replaced)];
    await (first && fake.podOf(first)?.end('at once'));
    fake.quietly(() => fake.deleteClaim(`heph-${deleted.sandboxId}`));
    fake.quietly(() => {
      if (third) third.status = { ...third.status, sandbox: { ...third.status.sandbox, podIPs: ['10.9.9.9'] } };
    });
    fake.forgetHistory();
    fake.cutWatches();
    await until('the server hears of an end', () => it.exits.length === 3);
    expect(it.exits.map(({ sandboxId }) => sandboxId)).to.have.members([dead, deleted, replaced].map((row) => row.sandboxId));
    expect(it.exits.every(({ how }) => how === 'crashed')).to.equal(true);
    await fake.until(() => fake.claims.length === 0);
  });

  it('go on from its place after a cut watch, and conclude nothing from a list that failed', async () => {
    const it = await open();
    const row = await start(it);
    await ready(it, row);
    fake.forgetHistory();
    fake.fail({ method: 'GET', path: 'sandboxclaims', status: 500, times: 3 });
    fake.cutWatches();
    await until('an operator is told', () => it.host.access().warning !== null);
    await fake.until(() => fake.watches === 1);
    await until('an operator is told', () => it.host.access().warning === null);
    expect(it.exits).to.deep.equal([]);
    expect(stateOf(it, row.sandboxId)).to.equal('idle');
  });

  it('end what no row wants, and leave another installation alone', async () => {
    const foreign = fake.addClaim('heph-foreign', { [LABELS.installation]: uuidv7(), [LABELS.sandbox]: uuidv7() });
    fake.addClaim('heph-left-behind', { [LABELS.installation]: INSTALLATION, [LABELS.sandbox]: uuidv7() });
    const it = await open();
    const row = await start(it);
    await ready(it, row);
    await fake.until(() => fake.claims.length === 2);
    expect(fake.claims.map(({ metadata }) => metadata.name)).to.have.members(['heph-foreign', `heph-${row.sandboxId}`]);
    expect(fake.claims).to.include(foreign);
  });

  it('be taken over by another server with the credential that they have, or be replaced when they have none', async () => {
    const first = await open();
    const row = await start(first);
    await ready(first, row);
    fake.podsStart = false;
    const unfinished = await start(first);
    await fake.until(() => fake.claims.length === 2);
    const second = await open();
    await until('the other server has taken over', () => {
      second.host.follow(rows.map((one) => ({ ...one, busy: one.sandboxId === row.sandboxId })));
      return second.host.list().length === 1 && second.exits.length === 1;
    });
    expect(stateOf(second, row.sandboxId)).to.equal('busy');
    expect(second.exits).to.deep.equal([{ sandboxId: unfinished.sandboxId, how: 'asked' }]);
    first.host.follow([]);
    expect(first.host.list(), 'what is not its own is forgotten, not ended').to.deep.equal([]);
    expect(stub().lines).to.have.length(1);
    await fake.until(() => fake.claims.length === 1);
  });

  it('run on when their server drains', async () => {
    const it = await open();
    const row = await start(it);
    await ready(it, row);
    await it.host.drain(1_000);
    expect(fake.pods).to.have.length(1);
    expect(it.exits).to.deep.equal([]);
    await it.host.start({ ...row, credential: 'x' }).then(
      () => expect.fail('nothing starts any more'),
      (error: { code: string }) => expect(error.code).to.equal('DRAINING'),
    );
  });

  it('be suspended when idle, and come back for their conversation alone, with another credential', async () => {
    const it = await open();
    const row = await start(it);
    await ready(it, row);
    const pod = stub();
    rows.splice(0);
    await it.host.rest(row.sandboxId);
    await fake.until(() => fake.claims[0] !== undefined && fake.modeOf(fake.claims[0]) === 'Suspended');
    await pod.ended;
    expect(fake.pods).to.deep.equal([]);
    const stranger = await start(it);
    await ready(it, stranger);
    expect(fake.claims).to.have.length(2);
    const again = await start(it, row.conversationId);
    await ready(it, again);
    expect(fake.claims, 'no third claim').to.have.length(2);
    expect(fake.claims[0]?.metadata.name).to.equal(`heph-${row.sandboxId}`);
    expect(fake.claims[0]?.metadata.labels)
      .to.include({ [LABELS.sandbox]: again.sandboxId })
      .and.not.have.property(LABELS.resting);
    const assignment = (fake.claims[0] && (fake.podOf(fake.claims[0]) as StubPod))?.assignment;
    expect(assignment?.credential).to.equal(again.credential).and.not.equal(row.credential);
    expect(it.exits).to.deep.equal([]);
  });

  it('be replaced when a suspended one does not wake up as it should', async () => {
    const it = await open();
    const row = await start(it);
    await ready(it, row);
    rows.splice(0);
    await it.host.rest(row.sandboxId);
    await fake.until(() => fake.claims[0] !== undefined && fake.modeOf(fake.claims[0]) === 'Suspended');
    fake.fail({ method: 'EXEC', path: 'exec', status: 400 });
    const again = await start(it, row.conversationId);
    await ready(it, again);
    expect(fake.claims.map(({ metadata }) => metadata.name)).to.deep.equal([`heph-${again.sandboxId}`]);
    expect(it.exits).to.deep.equal([]);
  });

  it('move the time at which the cluster ends them while a server answers for them, and end when none does', async () => {
    const it = await open({ backstopMs: 60_000 });
    const row = await start(it);
    await ready(it, row);
    const [claim] = fake.claims;
    const shutdownMs = () => Date.parse(claim?.spec.lifecycle.shutdownTime);
    if (claim) claim.spec.lifecycle.shutdownTime = new Date(Date.now() + 20_000).toISOString();
    fake.forgetHistory();
    fake.cutWatches();
    await until('the time is moved', () => {
      it.host.follow(rows);
      return shutdownMs() > Date.now() + 40_000;
    });
    fake.endExpired(Date.now() + 30_000);
    expect(fake.claims).to.have.length(1);
    fake.endExpired(Date.now() + 60_000);
    await until('the server hears of an end', () => it.exits.length === 1);
    expect(it.exits).to.deep.equal([{ sandboxId: row.sandboxId, how: 'crashed' }]);
  });

  it('tell an operator which permissions are missing, that the token is not accepted, and when it is well again', async () => {
    for (const lack of ['create sandboxclaims', 'create pods/exec']) fake.forbidden.add(lack);
    const it = await open();
    await until('an operator is told', () => it.host.access().warning !== null);
    expect(it.host.access().warning).to.equal(
      'RBAC does not let this server create sandboxclaims.extensions.agents.x-k8s.io, create pods/exec in namespace heph-spec. ' +
        'Grant it to its service account.',
    );
    fake.forbidden.clear();
    fake.tokenIsAccepted = false;
    fake.cutWatches();
    await until('the watch is refused', () => it.log.of('claims_watch_lost').some(({ kind }) => kind === 'unauthorised'));
    fake.tokenIsAccepted = true;
    await fake.until(() => fake.watches === 1);
    await until('an operator is told', () => it.host.access().warning === null);
    expect(it.host.access().why).to.equal('pods in namespace heph-spec');
  });
});
