/** `GET /auth/me`: who is signed in, and the workspaces of the account, for a page's switcher. Also for an account without a workspace. */
import { readOwnAccount } from '../../../db/people/members.ts';
import type { Me } from '../../contract/people.ts';
import { RuntimeFault } from '../../kernel/faults.ts';
import type { Route } from '../route.ts';
import type { WebDeps } from '../web/deps.ts';

export function getMe({ db, authenticator, signOutUrl }: Pick<WebDeps, 'db' | 'authenticator'> & { signOutUrl: string | null }): Route {
  return {
    method: 'GET',
    path: '/auth/me',
    async handle(ctx) {
      const { accountId } = await authenticator.authenticate(ctx);
      const own = await readOwnAccount(db, accountId);
      if (!own) throw new RuntimeFault('FORBIDDEN', 'This account is not there any more.');
      ctx.body = { account: own.account, workspaces: [...own.workspaces], signOutUrl } satisfies Me;
    },
  };
}
