/**
 * Owns: tokens of connections when the key that seals them changes.
 */
import type { Executor } from '../../db/pool.ts';
import { resealToken, sealedTokens } from '../../db/slack/connections.ts';
import type { Log } from '../kernel/log.ts';
import { type SecretBox, SecretError } from '../kernel/secret-box.ts';

/** Seals with the current key what an older one sealed. A token that no key here opens is told and left alone. */
export async function rotateTokens({
  db,
  secrets,
  log,
}: {
  readonly db: Executor;
  readonly secrets: SecretBox;
  readonly log: Log;
}): Promise<void> {
  if (!secrets.canSeal) return;
  for (const { id, sealed } of await sealedTokens(db)) {
    if (!secrets.isOld(sealed)) continue;
    try {
      await resealToken(db, { id, from: sealed, to: secrets.seal(secrets.open(sealed, id), id) });
      log.info('slack token rotated', { connectionId: id });
    } catch (error) {
      if (!(error instanceof SecretError)) throw error;
      log.error('slack token sealed with another key', { connectionId: id });
    }
  }
}
