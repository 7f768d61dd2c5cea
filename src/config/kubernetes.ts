/**
 * Owns: where sandboxes run, and the variables of a cluster: `HEPH_SANDBOX_HOST`, `HEPH_KUBERNETES_*`.
 */
import type { Reader } from './reader.ts';

export interface KubernetesConfig {
  /** null: the service account's. */
  readonly namespace: string | null;
  /** The SandboxWarmPool that claims are made from. */
  readonly warmPool: string;
  /** Where a pod reaches the agent listener of any server. */
  readonly agentUrl: URL;
  /** From the wish for a sandbox to a pod that has its credential, milliseconds. */
  readonly readyMs: number;
  /** How long an idle sandbox is kept suspended for its conversation, milliseconds; 0: it is deleted. */
  readonly suspendedMs: number;
}

/** What Kubernetes calls a DNS label or subdomain. */
const NAME = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;

/** null: sandboxes are processes of this machine. Every variable is read in both cases, so that none counts as misspelt. */
export function readKubernetes(read: Reader): KubernetesConfig | null {
  const host = read.choice('HEPH_SANDBOX_HOST', 'local', ['local', 'kubernetes']);
  const namespace = name(read, 'HEPH_KUBERNETES_NAMESPACE');
  const warmPool = name(read, 'HEPH_KUBERNETES_WARM_POOL');
  const agentUrl = read.url('HEPH_KUBERNETES_AGENT_URL', ['http:', 'https:']);
  const readyMs = read.durationMs('HEPH_KUBERNETES_READY', '2m', ['1s', '1h']);
  const suspendedMs = read.durationMs('HEPH_KUBERNETES_SUSPENDED', '1h', ['0ms', '30d']);
  if (host !== 'kubernetes') return null;
  const needed = { HEPH_KUBERNETES_WARM_POOL: warmPool, HEPH_KUBERNETES_AGENT_URL: agentUrl };
  for (const [variable, value] of Object.entries(needed)) {
    if (value === null && read.raw(variable) === null)
      read.problems.push(`${variable} is not set, and HEPH_SANDBOX_HOST is kubernetes. Set it.`);
  }
  if (agentUrl !== null && agentUrl.href !== `${agentUrl.origin}/`) {
    read.bad(
      'HEPH_KUBERNETES_AGENT_URL',
      agentUrl.origin + agentUrl.pathname,
      'an origin without a path, for example http://heph-agent:8081',
    );
  }
  return warmPool === null || agentUrl === null ? null : { namespace, warmPool, agentUrl, readyMs, suspendedMs };
}

function name(read: Reader, variable: string): string | null {
  const value = read.raw(variable);
  if (value === null || NAME.test(value)) return value;
  read.bad(variable, value.slice(0, 60), 'the name of an object in Kubernetes: small letters, digits, hyphens and dots');
  return null;
}
