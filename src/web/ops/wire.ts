/**
 * Owns: requests of the operator page, and the sentence of one that failed.
 */

/** An actor of this server, as `GET /admin/api/actors` has it. */
export interface ActorLine {
  readonly kind: string;
  readonly id: string;
  readonly state: string;
  readonly mailboxDepth: number;
  readonly oldestWaitMs: number;
  readonly lastFault: string | null;
  readonly commandsHandled: number;
}

const TIMEOUT_MS = 8_000;

/** What a request below `/admin/api/` answers. Rejects with an Error whose message is for the operator. */
export async function request<T>(path: string, body?: unknown): Promise<T> {
  const post = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
  const response = await fetch(`/admin/api/${path}`, { ...post, signal: AbortSignal.timeout(TIMEOUT_MS) }).catch(() => null);
  if (response === null) throw new Error('This server does not answer. Look whether it runs; another server shows the same page.');
  const answer: unknown = await response.json().catch(() => null);
  if (response.ok) return answer as T;
  const detail = (answer as { detail?: unknown } | null)?.detail;
  throw new Error(typeof detail === 'string' ? detail : `The server answered ${response.status}.`);
}
