/**
 * Owns: the provider of each connection: built once, built again when its row changed, and the old one ends when its calls have.
 * The provider of the environment has its address and key from this server's memory and serves only what this server was told to serve: a
 * key never goes to the address of another server's settings.
 */

import type { CallTarget } from '../../db/gateway/open-call.ts';
import { readConnection } from '../../db/gateway/read-connection.ts';
import type { Executor } from '../../db/pool.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';
import { type SecretBox, SecretError } from '../kernel/secret-box.ts';
import { type AddressRules, checkBaseUrl, guardedLookup } from './base-url.ts';
import { DemoProvider } from './demo/demo-provider.ts';
import { HttpProvider } from './http-provider.ts';
import type { EnvironmentProvider, ModelBounds } from './model-config.ts';
import { ADDRESS_REFUSED, type GatewayProblem, KEY_SEALED, NO_MODEL, OTHER_ENVIRONMENT } from './problems.ts';
import type { Provider } from './provider.ts';

export interface ProvidersOptions {
  readonly db: Executor;
  readonly clock: Clock;
  readonly log: Log;
  readonly bounds: ModelBounds;
  /** The provider of this server's environment; null: it has none. */
  readonly environment: EnvironmentProvider | null;
  readonly secrets: SecretBox;
  readonly addressRules: AddressRules;
}

/** Connections whose providers are kept; more than any installation has. */
const KEPT_MAX = 200;

interface Kept {
  readonly stamp: string;
  readonly provider: Promise<Provider | GatewayProblem>;
}

export class Providers {
  readonly #options: ProvidersOptions;
  readonly #environment: HttpProvider | null;
  readonly #builtIn: DemoProvider;
  readonly #kept = new Map<string, Kept>();

  constructor(options: ProvidersOptions) {
    this.#options = options;
    this.#environment = options.environment && new HttpProvider(options.environment, options.bounds);
    this.#builtIn = new DemoProvider(options.clock);
  }

  /** Who answers a call, or why nobody can. Rejects when the database does not answer. */
  async of(target: CallTarget): Promise<Provider | GatewayProblem> {
    const { source, api, providerModel } = target;
    if (source === 'built-in') return this.#builtIn;
    if (source === 'admin') return this.#fromRow(target);
    const own = this.#options.environment;
    return this.#environment && own?.api === api && own.model === providerModel ? this.#environment : OTHER_ENVIRONMENT;
  }

  /** Ends what is left of every provider. */
  async close(): Promise<void> {
    const kept = await Promise.all([...this.#kept.values()].map(({ provider }) => provider));
    this.#kept.clear();
    await Promise.all([...kept, this.#environment].map((one) => (one && 'close' in one ? one.close() : undefined)));
  }

  #fromRow({ connectionId, stamp }: CallTarget): Promise<Provider | GatewayProblem> {
    const kept = this.#kept.get(connectionId);
    if (kept?.stamp === stamp) return kept.provider;
    this.#forget(connectionId);
    const [oldest] = this.#kept.keys();
    if (oldest !== undefined && this.#kept.size >= KEPT_MAX) this.#forget(oldest);
    const provider = this.#build(connectionId);
    const entry = { stamp, provider };
    this.#kept.set(connectionId, entry);
    // What could not be built is tried again with the next call.
    const drop = () => this.#kept.get(connectionId) === entry && this.#kept.delete(connectionId);
    provider.then((built) => 'send' in built || drop(), drop);
    return provider;
  }

  #forget(connectionId: string): void {
    const kept = this.#kept.get(connectionId);
    this.#kept.delete(connectionId);
    kept?.provider.then(
      (built) => 'retire' in built && built.retire(),
      () => undefined, // it was never built
    );
  }

  async #build(connectionId: string): Promise<Provider | GatewayProblem> {
    const { db, bounds, secrets, log, addressRules } = this.#options;
    const row = await readConnection(db, connectionId);
    if (!row) return NO_MODEL;
    const checked = checkBaseUrl(row.baseUrl, addressRules);
    if (checked.kind === 'refused') return ADDRESS_REFUSED;
    try {
      const apiKey = row.apiKeySealed && secrets.open(row.apiKeySealed, connectionId);
      return new HttpProvider({ api: row.api, baseUrl: checked.url, apiKey }, bounds, guardedLookup(addressRules));
    } catch (error) {
      if (!(error instanceof SecretError)) throw error;
      log.error('connection_key_sealed', { connectionId });
      return KEY_SEALED;
    }
  }
}
