/**
 * Owns: what an operator is told of our way to the cluster: whether it answers, and which permissions RBAC lacks.
 */
import type { Clock, Timer } from '../../../src/kernel/clock.ts';
import type { Cluster, Need } from './cluster.ts';
import { type ClusterFault, toClusterFault } from './faults.ts';
import { CLAIMS, SANDBOXES } from './objects.ts';

const needs = (of: Omit<Need, 'verb'>, verbs: readonly string[]): Need[] => verbs.map((verb) => ({ ...of, verb }));

/** All that this server does in its namespace. A web socket is asked for by GET, and newer clusters want `create` for it as well. */
export const NEEDS: readonly Need[] = [
  ...needs({ group: CLAIMS.group, resource: CLAIMS.plural }, ['get', 'list', 'watch', 'create', 'patch', 'delete']),
  ...needs({ group: SANDBOXES.group, resource: SANDBOXES.plural }, ['get', 'patch']),
  ...needs({ group: '', resource: 'pods', subresource: 'exec' }, ['get', 'create']),
];

/** While something is wrong it is looked at again this often. */
const LOOK_AGAIN_MS = 30_000;

const SENTENCES: Readonly<Partial<Record<ClusterFault['kind'], string>>> = {
  unauthorised: 'The cluster does not accept our token. Check the service account of this server.',
  missing: 'The cluster does not know SandboxClaims. Install agent-sandbox with its extensions (v1beta1).',
  busy: 'The cluster asks us to come less often. New sandboxes start late.',
  away: 'The API of the cluster does not answer. Sandboxes that run go on; new ones wait.',
};

export class Access {
  readonly #cluster: Pick<Cluster, 'mayI' | 'namespace'>;
  readonly #timer: Timer;
  #fault: ClusterFault | null = null;
  #lacks: readonly string[] = [];
  #looking: Promise<void> | null = null;
  #known = false;

  constructor(cluster: Pick<Cluster, 'mayI' | 'namespace'>, clock: Clock) {
    this.#cluster = cluster;
    this.#timer = clock.every(LOOK_AGAIN_MS, () => {
      if (this.#warning() !== null) void this.look();
    });
    void this.look();
  }

  /** A call went well (null), or as it did. */
  learnt(fault: ClusterFault | null): void {
    const before = this.#fault?.kind;
    this.#fault = fault;
    const changed = fault === null ? this.#lacks.length > 0 : fault.kind === 'forbidden' && before !== 'forbidden';
    if (changed) void this.look();
  }

  /** Asks the cluster for each permission. Never rejects. */
  look(): Promise<void> {
    this.#looking ??= this.#review().finally(() => {
      this.#looking = null;
    });
    return this.#looking;
  }

  state(): { readonly warning: string | null; readonly why: string } {
    return { warning: this.#warning(), why: this.#known ? `pods in namespace ${this.#cluster.namespace}` : 'not asked yet' };
  }

  stop(): void {
    this.#timer.cancel();
  }

  async #review(): Promise<void> {
    try {
      const answers = await Promise.all(NEEDS.map(async (need) => ((await this.#cluster.mayI(need)) ? [] : [nameOf(need)])));
      this.#lacks = answers.flat();
      this.#known = true;
      if (this.#fault?.kind === 'forbidden' && this.#lacks.length === 0) this.#fault = null;
    } catch (error) {
      this.#fault = toClusterFault(error);
    }
  }

  #warning(): string | null {
    if (this.#lacks.length > 0) {
      return `RBAC does not let this server ${this.#lacks.join(', ')} in namespace ${this.#cluster.namespace}. Grant it to its service account.`;
    }
    return this.#fault && (SENTENCES[this.#fault.kind] ?? `The cluster refused a call (${this.#fault.kind}).`);
  }
}

function nameOf({ verb, resource, subresource, group }: Need): string {
  return `${verb} ${resource}${subresource === undefined ? '' : `/${subresource}`}${group === '' ? '' : `.${group}`}`;
}
