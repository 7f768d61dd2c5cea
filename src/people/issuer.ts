/**
 * Owns: what an issuer says about itself (OpenID Connect discovery): read when it is first needed, kept for an hour; an older one serves on
 * while the issuer is away. One read at a time, and a pause after one that failed: a crowd at the door must not become a crowd at the issuer.
 */
import {
  allowInsecureRequests,
  type ClientAuth,
  ClientSecretBasic,
  ClientSecretPost,
  type Configuration,
  clockTolerance,
  discovery,
  enableNonRepudiationChecks,
  None,
} from 'openid-client';
import type { Clock } from '../kernel/clock.ts';
import { RuntimeFault } from '../kernel/faults.ts';
import { errorKind, type Log } from '../kernel/log.ts';

export interface IssuerOptions {
  readonly issuer: URL;
  readonly clientId: string;
  /** null: a public client. */
  readonly clientSecret: string | null;
  readonly clock: Clock;
  readonly log: Log;
  /** Bound of one request to the issuer. */
  readonly timeoutMs?: number;
}

const TIMEOUT_MS = 10_000;
const KEPT_MS = 3_600_000;
const PAUSE_AFTER_FAILURE_MS = 2_000;
/** Between our clock and the issuer's. */
export const CLOCK_TOLERANCE_S = 30;

export function issuerAway(cause?: unknown): RuntimeFault {
  const text = 'The identity provider of this installation does not answer. Try again in a moment.';
  return new RuntimeFault('SIGN_IN_UNAVAILABLE', text, { retry: 'later', cause });
}

export class Issuer {
  readonly #options: IssuerOptions;
  #known: { readonly configuration: Configuration; readonly readAtMs: number } | undefined;
  #reading: Promise<Configuration> | undefined;
  #failedAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: IssuerOptions) {
    this.#options = options;
  }

  /** Throws SIGN_IN_UNAVAILABLE when the issuer has never answered and does not now. */
  async configuration(): Promise<Configuration> {
    const nowMs = this.#options.clock.monotonicMs();
    if (this.#known && nowMs - this.#known.readAtMs < KEPT_MS) return this.#known.configuration;
    if (nowMs - this.#failedAtMs < PAUSE_AFTER_FAILURE_MS) return this.#older();
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  #older(cause?: unknown): Configuration {
    if (this.#known) return this.#known.configuration;
    throw issuerAway(cause);
  }

  async #read(): Promise<Configuration> {
    const { issuer, clientId, clientSecret, clock, log, timeoutMs = TIMEOUT_MS } = this.#options;
    try {
      const configuration = await discovery(issuer, clientId, { [clockTolerance]: CLOCK_TOLERANCE_S }, clientAuth(clientSecret), {
        timeout: timeoutMs / 1_000,
        // The settings allow http for an issuer on this machine only.
        execute: [enableNonRepudiationChecks, ...(issuer.protocol === 'http:' ? [allowInsecureRequests] : [])],
      });
      this.#known = { configuration, readAtMs: clock.monotonicMs() };
      return configuration;
    } catch (error) {
      this.#failedAtMs = clock.monotonicMs();
      log.error('issuer_discovery_failed', { kind: errorKind(error) });
      return this.#older(error);
    }
  }
}

/** In the body where the issuer says that it takes that; else in the header, which every issuer must take. */
function clientAuth(secret: string | null): ClientAuth {
  if (secret === null) return None();
  const [inBody, inHeader] = [ClientSecretPost(secret), ClientSecretBasic(secret)];
  return (...call) => {
    const methods = call[0].token_endpoint_auth_methods_supported ?? [];
    (methods.includes('client_secret_post') ? inBody : inHeader)(...call);
  };
}
