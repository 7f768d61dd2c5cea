/**
 * `GET /slack/link?token=…` shows whom a link is for and asks; `POST /slack/link` links. Nothing is linked by following a link: whoever sends
 * somebody else their own link would get that person's conversations.
 */
import type { Authenticator } from '../auth/authenticator.ts';
import { answerPage, type SmallPage } from '../auth/pages.ts';
import { readRawBody } from '../body.ts';
import type { SlackDoor } from '../ports.ts';
import type { Route } from '../route.ts';
import { askedOrSentToSignIn } from './sign-in.ts';

export const SLACK_LINK_PATH = '/slack/link';
const BODY_MAX_BYTES = 4 * 1024;
const HOME = { href: '/', label: 'Open the chat' };

const OVER: SmallPage = {
  ...{ status: 410, reason: 'slack-link-over', title: 'This link is over', links: [HOME] },
  text: 'It was used already, or is older than an hour. Send the app a message in Slack to get another one.',
};
const LINKED: SmallPage = {
  ...{ status: 200, reason: 'slack-linked', title: 'Your Slack user is linked', links: [HOME] },
  text: 'Go back to Slack and ask your question again.',
};

interface Deps {
  readonly door: SlackDoor;
  readonly authenticator: Authenticator;
}

export function slackLinkRoutes({ door, authenticator }: Deps): readonly Route[] {
  return [
    {
      method: 'GET',
      path: SLACK_LINK_PATH,
      async handle(ctx) {
        const token = typeof ctx.query['token'] === 'string' ? ctx.query['token'] : '';
        if (!(await askedOrSentToSignIn(ctx, authenticator))) return;
        const link = await door.lookAtLink(token);
        answerPage(ctx, link === null ? OVER : asking(token, link));
      },
    },
    {
      method: 'POST',
      path: SLACK_LINK_PATH,
      async handle(ctx) {
        const { accountId } = await authenticator.authenticate(ctx);
        const token = new URLSearchParams((await readRawBody(ctx, BODY_MAX_BYTES)).toString('utf8')).get('token') ?? '';
        answerPage(ctx, (await door.redeemLink(token, accountId)) ? LINKED : OVER);
      },
    },
  ];
}

function asking(token: string, { teamId, userId }: { readonly teamId: string; readonly userId: string }): SmallPage {
  return {
    ...{ status: 200, reason: 'slack-link', title: 'Link your Slack user?', links: [] },
    text: `The user ${userId} of the Slack team ${teamId} will ask, and read, as you. Go on only if you asked for this link yourself.`,
    form: { action: SLACK_LINK_PATH, fields: { token }, button: 'Link this user to my account' },
  };
}
