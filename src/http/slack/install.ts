/**
 * `GET /slack/install?workspace=slug` sends an administrator to Slack's consent page; `GET /slack/oauth/callback` is where Slack sends them back.
 */
import { RuntimeFault } from '../../kernel/faults.ts';
import type { Authenticator } from '../auth/authenticator.ts';
import { answerPage, type SmallPage } from '../auth/pages.ts';
import type { SlackInstallDoor } from '../ports.ts';
import type { Route } from '../route.ts';
import { askedOrSentToSignIn } from './sign-in.ts';

const HOME = { href: '/', label: 'Open the chat' };
const FOUND = 302;

export function slackInstallRoutes({
  install,
  authenticator,
}: {
  readonly install: SlackInstallDoor;
  readonly authenticator: Authenticator;
}): readonly Route[] {
  return [
    {
      method: 'GET',
      path: '/slack/install',
      async handle(ctx) {
        const workspace = typeof ctx.query['workspace'] === 'string' ? ctx.query['workspace'] : '';
        const asker = await askedOrSentToSignIn(ctx, authenticator);
        if (!asker) return;
        if (!(await install.mayInstall(asker.accountId, workspace))) {
          throw new RuntimeFault('FORBIDDEN', 'Only an administrator of a workspace connects it to Slack. Name it as ?workspace=slug.');
        }
        ctx.status = FOUND;
        ctx.respond = false;
        await install.begin(ctx.req, ctx.res, { workspace, accountId: asker.accountId });
      },
    },
    {
      method: 'GET',
      path: '/slack/oauth/callback',
      async handle(ctx) {
        const { accountId } = await authenticator.authenticate(ctx);
        const done = await install.finish(ctx.req, ctx.res, accountId);
        answerPage(ctx, done.kind === 'connected' ? connected(done.team) : refused(done.why));
      },
    },
  ];
}

const connected = (team: string): SmallPage => ({
  ...{ status: 200, reason: 'slack-connected', title: 'Slack is connected', links: [HOME] },
  text: `The Slack team ${team} is connected. Send the app a direct message there.`,
});

const refused = (why: string): SmallPage => ({
  ...{ status: 400, reason: 'slack-not-connected', title: 'Slack is not connected', links: [HOME] },
  text: why,
});
