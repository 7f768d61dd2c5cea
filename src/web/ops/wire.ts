/**
 * Owns: requests of the operator page, the sentence of one that failed, and the token that an operator gave, for this tab only.
 */
import { t } from './words.ts';

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

/** A request that was refused; its message is for the operator. */
export class Refusal extends Error {
  readonly status: number;
  /** Where a browser signs in; null: nobody signs in here. */
  readonly signInUrl: string | null;

  constructor(message: string, status: number, signInUrl: string | null) {
    super(message);
    this.status = status;
    this.signInUrl = signInUrl;
  }
}

const TIMEOUT_MS = 8_000;
const TOKEN = 'heph.ops.token';

function savedToken(): string | null {
  try {
    return sessionStorage.getItem(TOKEN);
  } catch {
    return null; // no storage in this browser: the token lasts until the page is loaded again
  }
}

let token = savedToken();

/** From now on every request of this tab carries it; null: none. */
export function setToken(next: string | null): void {
  token = next;
  try {
    if (next === null) sessionStorage.removeItem(TOKEN);
    else sessionStorage.setItem(TOKEN, next);
  } catch {
    // the same
  }
}

export const hasToken = (): boolean => token !== null;

/** What a request below `/admin/api/` answers. Rejects with an Error whose message is for the operator. */
export async function request<T>(path: string, body?: unknown, timeoutMs = TIMEOUT_MS): Promise<T> {
  const headers = {
    ...(token === null ? {} : { authorization: `Bearer ${token}` }),
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
  };
  const sent = body === undefined ? { headers } : { method: 'POST', body: JSON.stringify(body), headers };
  const response = await fetch(`/admin/api/${path}`, { ...sent, signal: AbortSignal.timeout(timeoutMs) }).catch(() => null);
  if (response === null) throw new Error(t('This server does not answer. Look whether it runs; another server shows the same page.'));
  const answer: unknown = await response.json().catch(() => null);
  if (response.ok) return answer as T;
  const { detail, signInUrl } = (answer ?? {}) as { detail?: unknown; signInUrl?: unknown };
  const text = typeof detail === 'string' ? detail : t('The server answered {status}.', { status: response.status });
  throw new Refusal(text, response.status, typeof signInUrl === 'string' ? signInUrl : null);
}
