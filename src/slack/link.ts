/**
 * Owns: the one-time link by which a user of Slack and an account become one. It is signed, names the notice that offered it, and serves
 * once, within the hour, for somebody who is signed in.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Database } from '../../db/pool.ts';
import { findLink, redeemLink } from '../../db/slack/people.ts';
import { type AccountId, isUuid } from '../kernel/ids.ts';

const VALID_MS = 3_600_000;

function mac(signingSecret: string, actionId: string): string {
  return createHmac('sha256', signingSecret).update(`heph link:${actionId}`).digest('base64url');
}

export function linkToken(signingSecret: string, actionId: string): string {
  return `${actionId}.${mac(signingSecret, actionId)}`;
}

export class Links {
  readonly #db: Database;
  readonly #signingSecret: string;

  constructor(db: Database, signingSecret: string) {
    this.#db = db;
    this.#signingSecret = signingSecret;
  }

  /** Whom the link is for; null when it is none of ours, was used, or is too old. */
  async look(token: string): Promise<{ readonly teamId: string; readonly userId: string } | null> {
    const actionId = this.#actionOf(token);
    const link = actionId === null ? null : await findLink(this.#db, actionId, VALID_MS);
    return link?.usable ? link : null;
  }

  /** False as in `look`. */
  async use(token: string, accountId: AccountId): Promise<boolean> {
    const actionId = this.#actionOf(token);
    return actionId !== null && this.#db.transaction((tx) => redeemLink(tx, { actionId, accountId, validMs: VALID_MS }));
  }

  #actionOf(token: string): string | null {
    const [actionId = '', given = ''] = token.split('.');
    const [left, right] = [Buffer.from(given), Buffer.from(mac(this.#signingSecret, actionId))];
    return isUuid(actionId) && left.length === right.length && timingSafeEqual(left, right) ? actionId : null;
  }
}
