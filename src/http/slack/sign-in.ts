/**
 * Owns: pages of Slack that a person opens before they are signed in: they sign in and come back.
 */
import type Koa from 'koa';
import { RuntimeFault } from '../../kernel/faults.ts';
import type { Asker, Authenticator } from '../auth/authenticator.ts';
import { SIGN_IN_URL } from '../auth/signed-in.ts';

/** null: the browser was sent to sign in, and comes back to this very address. */
export async function askedOrSentToSignIn(ctx: Koa.Context, authenticator: Authenticator): Promise<Asker | null> {
  try {
    return await authenticator.authenticate(ctx);
  } catch (error) {
    if (!(error instanceof RuntimeFault) || error.code !== 'SIGNED_OUT') throw error;
    ctx.status = 303;
    ctx.set('Location', `${SIGN_IN_URL}?${new URLSearchParams({ return: ctx.path + ctx.search })}`);
    return null;
  }
}
