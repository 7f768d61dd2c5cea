/**
 * Owns: what can go wrong between us and the cluster's API, as kinds, and which of them is tried again (src/kernel/transient.ts).
 */
import { type Clock, pause } from '../../../src/kernel/clock.ts';
import { TRANSIENT } from '../../../src/kernel/transient.ts';

/**
 * `taken`: the name or the version is taken (409). `missing` (404), `expired`: the watch's place in history is gone (410). `unauthorised`: the
 * token is not accepted (401), `forbidden`: RBAC (403), `invalid` (400, 422). `busy` (429). `away`: no answer, or one that it could not give.
 * `refused`: the pod did not take the credential.
 */
export type ClusterFaultKind = 'taken' | 'missing' | 'expired' | 'unauthorised' | 'forbidden' | 'invalid' | 'busy' | 'away' | 'refused';

export class ClusterFault extends Error {
  override readonly name = 'ClusterFault';
  readonly kind: ClusterFaultKind;
  /** What the API asks us to wait; null when it does not say. */
  readonly retryAfterMs: number | null;

  constructor(kind: ClusterFaultKind, cause?: unknown, retryAfterMs: number | null = null) {
    super(`the cluster: ${kind}`, { cause });
    this.kind = kind;
    this.retryAfterMs = retryAfterMs;
  }
}

const KINDS: Readonly<Record<number, ClusterFaultKind>> = {
  400: 'invalid',
  401: 'unauthorised',
  403: 'forbidden',
  404: 'missing',
  409: 'taken',
  410: 'expired',
  422: 'invalid',
  429: 'busy',
};

/** Whatever the client library threw. Its message may hold a whole object, so only the status is kept. */
export function toClusterFault(error: unknown): ClusterFault {
  if (error instanceof ClusterFault) return error;
  const { code, statusCode, headers } = error as { code?: unknown; statusCode?: unknown; headers?: Record<string, string> };
  // A web socket that is not opened tells the status in words only.
  const inWords = /response: (\d{3})/.exec((error as { message?: string }).message ?? '')?.[1];
  const status = [code, statusCode, Number(inWords)].find((one) => typeof one === 'number' && one >= 100) as number | undefined;
  const seconds = Number(headers?.['retry-after']);
  return new ClusterFault(KINDS[status ?? 0] ?? 'away', undefined, seconds > 0 ? seconds * 1_000 : null);
}

/** A token is read again each minute, so one that has expired may be accepted a little later. */
const TRIED_AGAIN: ReadonlySet<ClusterFaultKind> = new Set(['busy', 'away', 'unauthorised']);
const [PAUSE_MIN_MS, PAUSE_MAX_MS] = TRANSIENT.kubernetesCall.growsMs;

/** Until it works, fails for good, or `signal` aborts (then with its last fault). */
export async function persistently<T>(work: () => Promise<T>, at: { readonly clock: Clock; readonly signal: AbortSignal }): Promise<T> {
  for (let failures = 0; ; failures++) {
    try {
      return await work();
    } catch (error) {
      const fault = toClusterFault(error);
      if (!TRIED_AGAIN.has(fault.kind) || at.signal.aborted) throw fault;
      const full = Math.min(PAUSE_MAX_MS, PAUSE_MIN_MS * 2 ** Math.min(failures, 16));
      await pause(at.clock, Math.max(fault.retryAfterMs ?? 0, full * (0.5 + Math.random() / 2)), at.signal);
    }
  }
}
