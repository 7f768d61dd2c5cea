/**
 * Owns: what `/readyz` says: named parts, each with a verdict and why. A part that does not answer in time is not ready.
 */

export interface PartState {
  readonly ok: boolean;
  /** For an operator: what is so, and what to do when it is not ok. Never a secret. */
  readonly why: string;
}

export interface ReadinessPart {
  readonly name: string;
  /** False: only told. True: while it is not ok this server takes no traffic. */
  readonly required: boolean;
  check(): PartState | Promise<PartState>;
}

export interface Readiness {
  readonly ready: boolean;
  readonly parts: Readonly<Record<string, PartState & { readonly required: boolean }>>;
}

const CHECK_TIMEOUT_MS = 2_000;

/** Asks every part, at the same time. Never rejects. */
export async function readReadiness(parts: readonly ReadinessPart[]): Promise<Readiness> {
  const states = await Promise.all(parts.map(async (part) => [part.name, { ...(await ask(part)), required: part.required }] as const));
  return { ready: states.every(([, state]) => state.ok || !state.required), parts: Object.fromEntries(states) };
}

async function ask(part: ReadinessPart): Promise<PartState> {
  const late = Promise.withResolvers<PartState>();
  const timer = setTimeout(() => late.resolve({ ok: false, why: `no answer within ${CHECK_TIMEOUT_MS} ms` }), CHECK_TIMEOUT_MS);
  try {
    return await Promise.race([part.check(), late.promise]);
  } catch {
    return { ok: false, why: 'the check failed; the log says more' };
  } finally {
    clearTimeout(timer);
  }
}
