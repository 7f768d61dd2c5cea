/**
 * Owns: every call to the cluster's API. `@kubernetes/client-node` is imported here only, and only when it is needed: it takes a second
 * and 70 MB to load.
 * Does not own: what is tried again (faults.ts), what the objects mean (objects.ts).
 * Each call is bounded as a whole. Faults are ClusterFault.
 */
import { PassThrough, Readable } from 'node:stream';
import { ClusterFault, toClusterFault } from './faults.ts';
import { CLAIMS, type Claim, claimListSchema, claimSchema, LABELS, SANDBOXES, type SandboxObject, sandboxSchema } from './objects.ts';

type Kube = typeof import('@kubernetes/client-node');
type KubeConfig = InstanceType<Kube['KubeConfig']>;

const CALL_MAX_MS = 10_000;
const EXEC_MAX_MS = 15_000;
/** The API ends a watch after this long by itself. */
const WATCH_MAX_S = 240;
/** What a pod's program may answer. */
const EXEC_ANSWER_MAX_BYTES = 4_096;
const LIST_PAGE = 500;

export interface Need {
  readonly group: string;
  readonly resource: string;
  readonly subresource?: string;
  readonly verb: string;
}

export type WatchChange = { readonly type: 'set' | 'gone'; readonly claim: Claim };

export interface ExecRequest {
  readonly pod: string;
  readonly container: string;
  readonly command: readonly string[];
  /** Goes to the program's standard input: never seen in a command line or in the API's audit log. */
  readonly input: string;
}

export class Cluster {
  readonly namespace: string;
  readonly #kube: Kube;
  readonly #config: KubeConfig;
  readonly #objects: InstanceType<Kube['CustomObjectsApi']>;
  readonly #reviews: InstanceType<Kube['AuthorizationV1Api']>;

  private constructor(kube: Kube, config: KubeConfig, namespace: string) {
    this.#kube = kube;
    this.#config = config;
    this.namespace = namespace;
    this.#objects = config.makeApiClient(kube.CustomObjectsApi);
    this.#reviews = config.makeApiClient(kube.AuthorizationV1Api);
  }

  /** The cluster that this process belongs to, or that KUBECONFIG names. `namespace` null: the service account's. */
  static async open(namespace: string | null): Promise<Cluster> {
    const kube = await import('@kubernetes/client-node');
    const config = new kube.KubeConfig();
    config.loadFromDefault();
    // What the library makes up when there is nothing: a server on this machine, without a user.
    if (config.getCurrentContext() === 'loaded-context') {
      throw new Error('HEPH_SANDBOX_HOST is kubernetes, and there is neither a service account nor a KUBECONFIG here.');
    }
    const own = config.getContextObject(config.getCurrentContext())?.namespace;
    return new Cluster(kube, config, namespace ?? own ?? 'default');
  }

  /** All claims of an installation, at one version. */
  async listClaims(installation: string): Promise<{ claims: readonly Claim[]; version: string }> {
    const claims: Claim[] = [];
    for (let page: string | undefined; ; ) {
      const where = { ...this.#at(CLAIMS), labelSelector: `${LABELS.installation}=${installation}`, limit: LIST_PAGE };
      const answer = await this.#call((options) =>
        this.#objects.listNamespacedCustomObject({ ...where, ...(page === undefined ? {} : { _continue: page }) }, options),
      );
      const list = claimListSchema.parse(answer);
      claims.push(...list.items);
      page = (answer as { metadata: { continue?: string } }).metadata.continue || undefined;
      if (page === undefined) return { claims, version: list.metadata.resourceVersion };
    }
  }

  /**
   * Tells of changes after `version` until the API ends the watch, `signal` aborts, or the wire is quiet for too long. Resolves with the version
   * to go on from. Rejects with `expired` when the history does not reach back so far.
   */
  async watchClaims(
    from: { readonly installation: string; readonly version: string },
    tell: (change: WatchChange) => void,
    signal: AbortSignal,
  ): Promise<string> {
    const path = `/apis/${CLAIMS.group}/${CLAIMS.version}/namespaces/${this.namespace}/${CLAIMS.plural}`;
    const query = {
      labelSelector: `${LABELS.installation}=${from.installation}`,
      resourceVersion: from.version,
      allowWatchBookmarks: true,
      timeoutSeconds: WATCH_MAX_S,
    };
    let { version } = from;
    const over = Promise.withResolvers<void>();
    const hear = (type: string, object: { code?: number; metadata?: { resourceVersion?: string } }): void => {
      if (type === 'ERROR') {
        over.reject(toClusterFault(object));
        return;
      }
      version = object.metadata?.resourceVersion ?? version;
      const claim = type === 'BOOKMARK' ? null : claimSchema.safeParse(object);
      if (claim?.success) tell({ type: type === 'DELETED' ? 'gone' : 'set', claim: claim.data });
    };
    const ended = (error: unknown): void => {
      if (error && (error as { name?: string }).name !== 'TimeoutError') over.reject(toClusterFault(error));
      else over.resolve();
    };
    const request = await new this.#kube.Watch(this.#config).watch(path, query, hear, ended).catch((error: unknown) => {
      throw toClusterFault(error);
    });
    const abort = (): void => request.abort();
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    try {
      await over.promise;
      return version;
    } finally {
      signal.removeEventListener('abort', abort);
      request.abort();
    }
  }

  async createClaim(body: object): Promise<Claim> {
    return claimSchema.parse(
      await this.#call((options) => this.#objects.createNamespacedCustomObject({ ...this.#at(CLAIMS), body }, options)),
    );
  }

  async getClaim(name: string): Promise<Claim> {
    return claimSchema.parse(
      await this.#call((options) => this.#objects.getNamespacedCustomObject({ ...this.#at(CLAIMS), name }, options)),
    );
  }

  async patchClaim(name: string, body: object): Promise<Claim> {
    return claimSchema.parse(
      await this.#call((options) => this.#objects.patchNamespacedCustomObject({ ...this.#at(CLAIMS), name, body }, options)),
    );
  }

  /** This very object: one of the same name that was made since is left alone. One that is gone is no fault. */
  async deleteClaim(claim: Pick<Claim, 'metadata'>): Promise<void> {
    const { name, uid } = claim.metadata;
    const body = { preconditions: { uid } };
    await this.#call((options) => this.#objects.deleteNamespacedCustomObject({ ...this.#at(CLAIMS), name, body }, options)).catch(
      (fault: ClusterFault) => {
        if (fault.kind !== 'missing' && fault.kind !== 'taken') throw fault;
      },
    );
  }

  async getSandbox(name: string): Promise<SandboxObject> {
    return sandboxSchema.parse(
      await this.#call((options) => this.#objects.getNamespacedCustomObject({ ...this.#at(SANDBOXES), name }, options)),
    );
  }

  async setOperatingMode(name: string, operatingMode: 'Running' | 'Suspended'): Promise<void> {
    const body = { spec: { operatingMode } };
    await this.#call((options) => this.#objects.patchNamespacedCustomObject({ ...this.#at(SANDBOXES), name, body }, options));
  }

  /** Runs a program in a pod and returns what it printed. Rejects with `refused` when it ended with another code than 0. */
  async exec({ pod, container, command, input }: ExecRequest): Promise<string> {
    const answer = new PassThrough();
    let said = '';
    answer.on('data', (chunk: Buffer) => {
      if (said.length < EXEC_ANSWER_MAX_BYTES) said += chunk.toString('utf8');
    });
    const over = Promise.withResolvers<void>();
    over.promise.catch(() => undefined); // awaited below, perhaps after it has failed
    const stdin = new Readable({ read: () => undefined });
    const exec = new this.#kube.Exec(this.#config);
    const dropped = new PassThrough().resume();
    const opening = exec.exec(this.namespace, pod, container, [...command], answer, dropped, stdin, false, (status) => {
      if (status.status === 'Success') over.resolve();
      else over.reject(new ClusterFault('refused'));
    });
    const late = setTimeout(() => over.reject(new ClusterFault('away')), EXEC_MAX_MS);
    try {
      const socket = await Promise.race([opening, over.promise.then(() => opening)]);
      socket.onclose = () => over.reject(new ClusterFault('away'));
      stdin.push(`${input}\n`);
      await over.promise;
      return said;
    } catch (error) {
      throw toClusterFault(error);
    } finally {
      clearTimeout(late);
      // Also one that opens only after we have given up.
      opening.then((socket) => socket.close()).catch(() => undefined);
    }
  }

  /** Whether RBAC lets this process do that. */
  async mayI({ group, resource, subresource, verb }: Need): Promise<boolean> {
    const resourceAttributes = { namespace: this.namespace, group, resource, verb, ...(subresource === undefined ? {} : { subresource }) };
    const body = { spec: { resourceAttributes } };
    const review = await this.#call((options) => this.#reviews.createSelfSubjectAccessReview({ body }, options));
    return review.status?.allowed ?? false;
  }

  #at<T extends object>(kind: T): T & { namespace: string } {
    return { ...kind, namespace: this.namespace };
  }

  async #call<T>(work: (options: ReturnType<Kube['setHeaderOptions']>) => Promise<T>): Promise<T> {
    const { setHeaderMiddleware, PatchStrategy } = this.#kube;
    const header = setHeaderMiddleware('Content-Type', PatchStrategy.MergePatch);
    const bounded: typeof header = {
      pre(request) {
        request.setSignal(AbortSignal.timeout(CALL_MAX_MS));
        return request.getHttpMethod() === 'PATCH' ? header.pre(request) : setHeaderMiddleware('Accept', 'application/json').pre(request);
      },
      post: (response) => header.post(response),
    };
    try {
      return await work({ middleware: [bounded], middlewareMergeStrategy: 'append' });
    } catch (error) {
      throw toClusterFault(error);
    }
  }
}
