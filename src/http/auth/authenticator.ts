/**
 * Owns: what the web listener asks of a way to sign in. `local.ts` is one; `signed-in.ts` (a session cookie or a Bearer token) is the other.
 */
import type Koa from 'koa';
import type { Member } from '../../../actors/index.ts';
import type { SignInProof } from '../../../db/people/sessions.ts';
import type { Database } from '../../../db/pool.ts';
import { findMembership } from '../../../db/web/membership.ts';
import { RuntimeFault } from '../../kernel/faults.ts';
import type { AccountId } from '../../kernel/ids.ts';
import { param } from '../route.ts';

/** Who asks, and by what that was seen. */
export interface Asker {
  readonly accountId: AccountId;
  readonly proof: SignInProof;
}

export interface Authenticator {
  /** Before anything is served, the page included. Throws FORBIDDEN when this server must not answer such a request at all. */
  admit(ctx: Koa.Context): void;
  /** May answer a request for the page itself, before it is served: true when it has. */
  greet?(ctx: Koa.Context): boolean;
  /** Who asks. Throws SIGNED_OUT, UNAUTHENTICATED, FORBIDDEN or ORIGIN_REFUSED. */
  authenticate(ctx: Koa.Context): Promise<Asker>;
}

/** What a slug can be at all (the table says the same): anything else, for example a NUL, never reaches a statement. */
export const SLUG = /^[a-z0-9][a-z0-9-]{0,62}$/;

/** The asking account as a member of the workspace in the path. Throws WORKSPACE_NOT_FOUND for any other. rule: R16 */
export async function requireMember(ctx: Koa.Context, authenticator: Authenticator, db: Database): Promise<Member> {
  return (await requireProvenMember(ctx, authenticator, db)).member;
}

/** The same, with what a stream needs to ask again. */
export async function requireProvenMember(
  ctx: Koa.Context,
  authenticator: Authenticator,
  db: Database,
): Promise<{ readonly member: Member; readonly proof: SignInProof }> {
  const { accountId, proof } = await authenticator.authenticate(ctx);
  const slug = param(ctx, 'slug') ?? '';
  const member = SLUG.test(slug) ? await findMembership(db, slug, accountId) : null;
  if (member) return { member, proof };
  throw workspaceNotFound();
}

export function workspaceNotFound(): RuntimeFault {
  return new RuntimeFault(
    'WORKSPACE_NOT_FOUND',
    'There is no such workspace for this account. Check the address, or ask for an invitation.',
  );
}
