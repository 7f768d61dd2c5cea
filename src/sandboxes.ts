/**
 * Owns: where sandboxes run, by HEPH_SANDBOX_HOST: processes of this machine or pods of a cluster, behind one interface.
 * Does not own: how either does it (local-sandboxes.ts, sandbox-runner/host).
 */
import type { SandboxHost } from '../actors/index.ts';
import { installationId, liveAmong } from '../db/ledger/outliving.ts';
import type { Database } from '../db/pool.ts';
import type { Config, KubernetesConfig } from './config.ts';
import { StartError } from './database.ts';
import type { HttpListener } from './http/index.ts';
import { systemClock } from './kernel/clock.ts';
import { errorKind, type Log } from './kernel/log.ts';
import { commandsRunAsUs, commandWarning, isolationNote, localHost, prepareLocalSandboxes } from './local-sandboxes.ts';

export interface HostParts {
  readonly db: Database;
  /** The agent listener, and its address on this machine. */
  readonly agent: HttpListener;
  readonly gateway: string;
}

export interface Sandboxes {
  /** What everybody who uses the page must know about commands here; null when there is nothing. */
  readonly warning: string | null;
  /** A command of the assistant can do what this server's user can. */
  readonly commandsRunAsUs: boolean;
  openHost(parts: HostParts): Promise<SandboxHost>;
  /** For /readyz. */
  note(): { readonly warning: string | null; readonly why: string };
}

/** Asks the machine, or finds the cluster. Rejects with a StartError when what is required is not to be had. */
export function prepareSandboxes(config: Config, log: Log): Promise<Sandboxes> {
  return config.kubernetes === null ? local(config, log) : pods(config.kubernetes, log);
}

async function local(config: Config, log: Log): Promise<Sandboxes> {
  const sandboxes = await prepareLocalSandboxes(config, log);
  const { isolation } = sandboxes;
  return {
    warning: commandWarning(config, isolation),
    commandsRunAsUs: commandsRunAsUs(config, isolation),
    openHost: async ({ agent, gateway }) => localHost({ config, log, sandboxes, agent, gateway }),
    note: () => isolationNote(config, isolation),
  };
}

async function pods(kubernetes: KubernetesConfig, log: Log): Promise<Sandboxes> {
  const { namespace, warmPool, agentUrl, readyMs: readyMaxMs, suspendedMs } = kubernetes;
  // Loaded only here: the client of the cluster's API is large.
  const [{ Cluster }, { KubernetesSandboxHost }] = await Promise.all([
    import('../sandbox-runner/host/kubernetes/cluster.ts'),
    import('../sandbox-runner/host/kubernetes/host.ts'),
  ]);
  const cluster = await Cluster.open(namespace).catch((error: unknown) => {
    if (error instanceof Error && error.message.includes('HEPH_')) throw new StartError(error.message);
    throw new StartError(`The file that KUBECONFIG names cannot be used (${errorKind(error)}). Correct it, or unset HEPH_SANDBOX_HOST.`);
  });
  let note = (): { warning: string | null; why: string } => ({ warning: null, why: 'not open yet' });
  return {
    ...{ warning: null, commandsRunAsUs: false },
    async openHost({ db }) {
      const host = new KubernetesSandboxHost({
        ...{ cluster, warmPool, readyMaxMs, suspendedMs, log },
        gateway: agentUrl.origin,
        installation: await installationId(db),
        liveAmong: (ids) => liveAmong(db, ids),
        clock: systemClock,
      });
      note = () => host.access();
      return host;
    },
    note: () => note(),
  };
}
