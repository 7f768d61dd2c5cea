/**
 * Owns: sealing again, with the current key, what an older one sealed: one loop for each table that holds secrets.
 * Does not own: the tables (a SecretStore of db/).
 */
import type { Log } from './log.ts';
import { type SecretBox, SecretError } from './secret-box.ts';

export interface SealedSecret {
  /** Of its row: the owner that it was sealed for. */
  readonly id: string;
  readonly sealed: Buffer;
}

/** The secrets of one table. */
export interface SecretStore {
  all(): Promise<readonly SealedSecret[]>;
  /** Writes `to` where `from` still stands: what somebody stored meanwhile stays. True: it was written. */
  replace(change: { readonly id: string; readonly from: Buffer; readonly to: Buffer }): Promise<boolean>;
}

export interface Rotation {
  readonly secrets: SecretBox;
  readonly store: SecretStore;
  /** What the secrets are, for the log: "connection key". */
  readonly what: string;
  readonly log: Log;
}

/** Without a current key nothing happens. A secret that no key here opens is told and left alone: another server may have its key. */
export async function rotateSecrets({ secrets, store, what, log }: Rotation): Promise<void> {
  if (!secrets.canSeal) return;
  for (const { id, sealed } of await store.all()) {
    if (!secrets.isOld(sealed)) continue;
    try {
      const replaced = await store.replace({ id, from: sealed, to: secrets.seal(secrets.open(sealed, id), id) });
      if (replaced) log.info('secret rotated', { what, id });
    } catch (error) {
      if (!(error instanceof SecretError)) throw error;
      log.error('secret sealed with another key', { what, id });
    }
  }
}
