/**
 * Owns: what the web listener asks of a way to sign in. `local.ts` is one; a session cookie or a bearer token (oidc) is another.
 */
import type Koa from 'koa';
import type { Member } from '../../../actors/index.ts';
import type { Database } from '../../../db/pool.ts';
import { findMembership } from '../../../db/web/membership.ts';
import { RuntimeFault } from '../../kernel/faults.ts';
import type { AccountId } from '../../kernel/ids.ts';
import { param } from '../route.ts';

export interface Authenticator {
  /** Before anything is served, the page included. Throws FORBIDDEN when this server must not answer such a request at all. */
  admit(ctx: Koa.Context): void;
  /** Who asks. Throws UNAUTHENTICATED, FORBIDDEN or ORIGIN_REFUSED. */
  authenticate(ctx: Koa.Context): Promise<AccountId>;
}

/** What a slug can be at all (the table says the same): anything else, for example a NUL, never reaches a statement. */
const SLUG = /^[a-z0-9][a-z0-9-]{0,62}$/;

/** The asking account as a member of the workspace in the path. Throws WORKSPACE_NOT_FOUND for any other. rule: R16 */
export async function requireMember(ctx: Koa.Context, authenticator: Authenticator, db: Database): Promise<Member> {
  const accountId = await authenticator.authenticate(ctx);
  const slug = param(ctx, 'slug') ?? '';
  const member = SLUG.test(slug) ? await findMembership(db, slug, accountId) : null;
  if (member) return member;
  throw noWorkspace();
}

export function noWorkspace(): RuntimeFault {
  return new RuntimeFault(
    'WORKSPACE_NOT_FOUND',
    'There is no such workspace for this account. Check the address, or ask for an invitation.',
  );
}
