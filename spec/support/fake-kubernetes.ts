/**
 * Owns: the API of a cluster with agent-sandbox in it, as far as a server asks: claims (list, watch, create, read, merge patch, delete), sandboxes
 * (read, patch), exec into a pod, and reviews of access. Over real HTTP, for the real client. A spec breaks it: statuses for the next calls,
 * a token that is not accepted, permissions that are missing, watches that are cut or whose history is gone, an empty warm pool, dead pods.
 * Does not own: what runs in a pod (fake-pods.ts).
 */
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Duplex } from 'node:stream';
import { json } from 'node:stream/consumers';
import { type FakeObject, type Fault, merge, NoResponse, refuse, type SeenRequest, selects, send, write } from './fake-kubernetes-parts.ts';
import { type PodMaker, type RunningPod, StubPod } from './fake-pods.ts';
import { FakeWebSocket } from './fake-websocket.ts';

const NAMESPACE = 'heph-spec';
const CLAIMS = `/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/${NAMESPACE}/sandboxclaims`;
const SANDBOXES = `/apis/agents.x-k8s.io/v1beta1/namespaces/${NAMESPACE}/sandboxes`;
const REVIEWS = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
const EXEC = new RegExp(`^/api/v1/namespaces/${NAMESPACE}/pods/([^/]+)/exec$`);
const [STDIN, STDOUT, STATUS] = [0, 1, 3];

interface FakeSandbox {
  readonly name: string;
  mode: 'Running' | 'Suspended';
  pod: RunningPod | null;
  address: string | null;
}

export class FakeKubernetes {
  readonly namespace = NAMESPACE;
  /** The file for KUBECONFIG. */
  readonly kubeconfig: string;
  readonly requests: SeenRequest[] = [];
  readonly faults: Fault[] = [];
  /** `verb resource` that RBAC does not allow. */
  readonly forbidden = new Set<string>();
  tokenIsAccepted = true;
  /** While false, no pod becomes ready: the pool is empty and the image is being pulled. */
  podsStart = true;
  readonly #server: Server;
  readonly #makePod: PodMaker;
  readonly #dir = mkdtempSync(path.join(tmpdir(), 'heph-kube-'));
  readonly #claims = new Map<string, FakeObject>();
  readonly #sandboxes = new Map<string, FakeSandbox>();
  readonly #history: { version: number; type: string; object: FakeObject }[] = [];
  readonly #watchers = new Set<{ response: ServerResponse; selector: string }>();
  readonly #waiting = new Set<() => void>();
  #version = 1;
  #oldest = 0;
  #addresses = 0;

  private constructor(makePod: PodMaker) {
    this.#makePod = makePod;
    this.kubeconfig = path.join(this.#dir, 'config');
    this.#server = createServer((request, response) => void this.#serve(request, response));
    this.#server.on('upgrade', (request: IncomingMessage, socket: Duplex) => void this.#upgrade(request, socket));
  }

  static async start(makePod: PodMaker = () => new StubPod()): Promise<FakeKubernetes> {
    const fake = new FakeKubernetes(makePod);
    fake.#server.listen(0, '127.0.0.1');
    await once(fake.#server, 'listening');
    const { port } = fake.#server.address() as AddressInfo;
    const context = { name: 'spec', context: { cluster: 'spec', user: 'spec', namespace: NAMESPACE } };
    const config = {
      ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'spec', contexts: [context] },
      clusters: [{ name: 'spec', cluster: { server: `http://127.0.0.1:${port}`, 'insecure-skip-tls-verify': true } }],
      users: [{ name: 'spec', user: { token: 'the-token' } }],
    };
    writeFileSync(fake.kubeconfig, JSON.stringify(config));
    return fake;
  }

  get claims(): readonly FakeObject[] {
    return [...this.#claims.values()];
  }

  /** The pods that run, oldest first. */
  get pods(): readonly RunningPod[] {
    return [...this.#sandboxes.values()].flatMap(({ pod }) => pod ?? []);
  }

  get watches(): number {
    return this.#watchers.size;
  }

  modeOf(claim: FakeObject): string | undefined {
    return this.#sandboxes.get(claim.metadata.name)?.mode;
  }

  podOf(claim: FakeObject): RunningPod | null {
    return this.#sandboxes.get(claim.metadata.name)?.pod ?? null;
  }

  /** Resolves when it holds; looked at after each request and each change. */
  async until(holds: () => boolean): Promise<void> {
    while (!holds()) await new Promise<void>((resolve) => this.#waiting.add(resolve));
  }

  fail(fault: Omit<Fault, 'times'> & { times?: number }): void {
    this.faults.push({ times: 1, ...fault });
  }

  /** A claim of somebody else, or of an earlier life of ours. */
  addClaim(name: string, labels: Record<string, string>): FakeObject {
    return this.#create({ metadata: { name, labels }, spec: { warmPoolRef: { name: 'pool' } } });
  }

  /** Pods that could not start until now may. */
  letPodsStart(): void {
    this.podsStart = true;
    for (const sandbox of this.#sandboxes.values()) void this.#run(sandbox);
  }

  cutWatches(): void {
    for (const { response } of this.#watchers) response.destroy();
  }

  /** What happened so far is forgotten: a watch from an older version is answered 410. */
  forgetHistory(): void {
    this.#history.length = 0;
    this.#oldest = ++this.#version;
  }

  /** A watcher hears of no change for now, as when events are lost; the objects change. */
  quietly(change: () => void): void {
    const watchers = [...this.#watchers];
    this.#watchers.clear();
    change();
    for (const watcher of watchers) this.#watchers.add(watcher);
  }

  deleteClaim(name: string): void {
    const claim = this.#claims.get(name);
    if (!claim) return;
    this.#claims.delete(name);
    this.#tell('DELETED', claim);
    const sandbox = this.#sandboxes.get(name);
    this.#sandboxes.delete(name);
    void sandbox?.pod?.end('gracefully');
  }

  /** What the controller does when it looks at the time. */
  endExpired(nowMs: number): void {
    for (const claim of this.claims) {
      if (Date.parse(claim.spec.lifecycle?.shutdownTime) <= nowMs) this.deleteClaim(claim.metadata.name);
    }
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    for (const { response } of this.#watchers) response.destroy();
    await Promise.all(this.pods.map((pod) => pod.end('at once')));
    rmSync(this.#dir, { recursive: true, force: true });
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://fake');
    const method = request.method ?? 'GET';
    const body = method === 'GET' ? undefined : await json(request).catch(() => undefined);
    this.requests.push({ method, path: url.pathname, body });
    const fault = this.#faultFor(method, url.pathname);
    if (fault?.afterwards) this.#answer({ method, url, body }, new NoResponse() as never);
    if (fault) refuse(response, fault.status, fault.retryAfterS);
    else if (!this.tokenIsAccepted || request.headers.authorization !== 'Bearer the-token') refuse(response, 401);
    else this.#answer({ method, url, body }, response);
    this.#wake();
  }

  #faultFor(method: string, pathname: string): Fault | undefined {
    const matches = (one: Fault) => (one.method ?? method) === method && pathname.includes(one.path ?? '') && one.times > 0;
    const fault = this.faults.find(matches);
    if (fault) fault.times -= 1;
    return fault;
  }

  // biome-ignore lint/suspicious/noExplicitAny: a request's body, as it comes.
  #answer({ method, url, body }: { method: string; url: URL; body: any }, response: ServerResponse): void {
    const [kind, name] = url.pathname.startsWith(CLAIMS)
      ? ['sandboxclaims', url.pathname.slice(CLAIMS.length + 1)]
      : ['sandboxes', url.pathname.slice(SANDBOXES.length + 1)];
    if (url.pathname === REVIEWS) {
      this.#review(body, response);
      return;
    }
    const verb = name === '' && method === 'GET' ? 'list' : { GET: 'get', POST: 'create', PATCH: 'patch', DELETE: 'delete' }[method];
    if (this.forbidden.has(`${verb} ${kind}`)) {
      refuse(response, 403);
      return;
    }
    if (kind === 'sandboxes') {
      this.#answerSandbox(name, method === 'PATCH' ? body : null, response);
      return;
    }
    if (name === '' && method === 'GET') {
      if (url.searchParams.get('watch')) this.#watch(url, response);
      else this.#list(url, response);
      return;
    }
    if (method === 'POST') {
      if (this.#claims.has(body.metadata.name)) {
        refuse(response, 409);
        return;
      }
      send(response, 201, this.#create(body));
      return;
    }
    const claim = this.#claims.get(name);
    if (!claim) {
      refuse(response, 404);
      return;
    }
    if (method === 'PATCH') {
      this.#patch(claim, body, response);
      return;
    }
    if (method === 'DELETE') {
      if (body?.preconditions?.uid !== undefined && body.preconditions.uid !== claim.metadata.uid) {
        refuse(response, 409);
        return;
      }
      this.deleteClaim(name);
    }
    send(response, 200, claim);
  }

  // biome-ignore lint/suspicious/noExplicitAny: a request's body, as it comes.
  #review(body: any, response: ServerResponse): void {
    const { verb, resource, subresource } = body.spec.resourceAttributes;
    const allowed = !this.forbidden.has(`${verb} ${resource}${subresource ? `/${subresource}` : ''}`);
    send(response, 201, { ...body, status: { allowed } });
  }

  // biome-ignore lint/suspicious/noExplicitAny: a request's body, as it comes.
  #answerSandbox(name: string, patch: any, response: ServerResponse): void {
    const sandbox = this.#sandboxes.get(name);
    if (!sandbox) {
      refuse(response, 404);
      return;
    }
    if (patch) this.#setMode(sandbox, patch.spec.operatingMode);
    const metadata = { name, uid: `uid-of-${name}`, resourceVersion: '1', annotations: { 'agents.x-k8s.io/pod-name': `pod-of-${name}` } };
    send(response, 200, { apiVersion: 'agents.x-k8s.io/v1beta1', kind: 'Sandbox', metadata, spec: { operatingMode: sandbox.mode } });
  }

  #setMode(sandbox: FakeSandbox, mode: FakeSandbox['mode']): void {
    sandbox.mode = mode;
    if (mode === 'Running') {
      void this.#run(sandbox);
      return;
    }
    const { pod } = sandbox;
    sandbox.pod = null;
    sandbox.address = null;
    this.#setReady(sandbox, 'SandboxSuspended');
    void pod?.end('gracefully');
  }

  #create(body: Pick<FakeObject, 'spec'> & { metadata: { name: string; labels: Record<string, string> } }): FakeObject {
    const { name, labels } = body.metadata;
    const claim: FakeObject = {
      ...{ apiVersion: 'extensions.agents.x-k8s.io/v1beta1', kind: 'SandboxClaim', spec: body.spec, status: {} },
      metadata: { name, uid: `uid-${++this.#version}`, resourceVersion: '', labels: { ...labels }, annotations: {} },
    };
    this.#claims.set(name, claim);
    this.#tell('ADDED', claim);
    const sandbox: FakeSandbox = { name, mode: 'Running', pod: null, address: null };
    this.#sandboxes.set(name, sandbox);
    this.#setReady(sandbox, 'DependenciesNotReady');
    void this.#run(sandbox);
    return claim;
  }

  async #run(sandbox: FakeSandbox): Promise<void> {
    if (!this.podsStart || sandbox.pod !== null || sandbox.mode === 'Suspended') return;
    const pod = this.#makePod();
    sandbox.pod = pod;
    const isCurrent = (): boolean => sandbox.pod === pod && this.#sandboxes.get(sandbox.name) === sandbox;
    void pod.ended.then((phase) => {
      if (isCurrent()) this.#finish(sandbox, phase);
    });
    await pod.ready.catch(() => undefined);
    if (!isCurrent()) return;
    sandbox.address = `10.0.0.${++this.#addresses}`;
    this.#setReady(sandbox, 'DependenciesReady');
  }

  #finish(sandbox: FakeSandbox, phase: 'Succeeded' | 'Failed'): void {
    sandbox.pod = null;
    this.#setReady(sandbox, `Pod${phase}`, [{ type: 'Finished', status: 'True', reason: `Pod${phase}` }]);
  }

  #setReady(sandbox: FakeSandbox, reason: string, more: readonly object[] = []): void {
    const ready = reason === 'DependenciesReady';
    const claim = this.#claims.get(sandbox.name);
    if (!claim) return;
    claim.status = {
      conditions: [{ type: 'Ready', status: ready ? 'True' : 'False', reason }, ...more],
      sandbox: { name: sandbox.name, ...(sandbox.address === null ? {} : { podIPs: [sandbox.address] }) },
    };
    this.#tell('MODIFIED', claim);
  }

  // biome-ignore lint/suspicious/noExplicitAny: a merge patch.
  #patch(claim: FakeObject, patch: any, response: ServerResponse): void {
    const at = patch.metadata?.resourceVersion;
    if (at !== undefined && at !== claim.metadata.resourceVersion) {
      refuse(response, 409);
      return;
    }
    for (const part of ['labels', 'annotations'] as const) merge(claim.metadata[part], patch.metadata?.[part] ?? {});
    if (patch.spec) claim.spec = { ...claim.spec, ...patch.spec };
    this.#tell('MODIFIED', claim);
    send(response, 200, claim);
  }

  #list(url: URL, response: ServerResponse): void {
    const items = this.claims.filter((claim) => selects(url.searchParams.get('labelSelector'), claim));
    send(response, 200, { apiVersion: 'v1', kind: 'List', metadata: { resourceVersion: String(this.#version) }, items });
  }

  #watch(url: URL, response: ServerResponse): void {
    if (this.forbidden.has('watch sandboxclaims')) {
      refuse(response, 403);
      return;
    }
    const from = Number(url.searchParams.get('resourceVersion'));
    const selector = url.searchParams.get('labelSelector') ?? '';
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
    if (from < this.#oldest) {
      response.end(`${JSON.stringify({ type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired' } })}\n`);
      return;
    }
    const watcher = { response, selector };
    for (const { version, type, object } of this.#history) if (version > from) write(watcher, type, object);
    this.#watchers.add(watcher);
    response.on('close', () => {
      this.#watchers.delete(watcher);
      this.#wake();
    });
  }

  #tell(type: string, object: FakeObject): void {
    object.metadata.resourceVersion = String(++this.#version);
    const copy = structuredClone(object);
    this.#history.push({ version: this.#version, type, object: copy });
    for (const watcher of this.#watchers) write(watcher, type, copy);
    this.#wake();
  }

  async #upgrade(request: IncomingMessage, socket: Duplex): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://fake');
    this.requests.push({ method: 'EXEC', path: url.pathname, body: url.searchParams.getAll('command') });
    const fault = this.#faultFor('EXEC', url.pathname);
    const name = EXEC.exec(url.pathname)?.[1]?.replace('pod-of-', '') ?? '';
    const pod = this.#sandboxes.get(name)?.pod;
    const status = fault && !fault.afterwards ? fault.status : this.forbidden.has('create pods/exec') ? 403 : pod ? null : 404;
    if (status !== null || !pod) {
      socket.end(`HTTP/1.1 ${status} No\r\ncontent-length: 0\r\n\r\n`);
      return;
    }
    let said = '';
    const wire = new FakeWebSocket(request, socket, (message) => {
      if (message[0] !== STDIN) return;
      said += message.subarray(1).toString('utf8');
      const end = said.indexOf('\n');
      if (end < 0) return;
      void pod.exec(url.searchParams.getAll('command'), said.slice(0, end)).then(({ code, out }) => {
        if (fault) return socket.destroy(); // the answer is lost
        wire.send(Buffer.concat([Buffer.from([STDOUT]), Buffer.from(out)]));
        const told = code === 0 ? { status: 'Success' } : { status: 'Failure', reason: 'NonZeroExitCode' };
        wire.send(Buffer.concat([Buffer.from([STATUS]), Buffer.from(JSON.stringify(told))]));
        wire.close();
      });
      said = '';
    });
    this.#wake();
  }

  #wake(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const resolve of waiting) resolve();
  }
}
