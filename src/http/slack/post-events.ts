/**
 * `POST /slack/events`: what Slack delivers. Its signature is its only credential, so no session, Host or Origin is asked for. It is stored, then
 * acknowledged: Slack waits three seconds, and sends again what was not.
 */
import { RuntimeFault } from '../../kernel/faults.ts';
import { readRawBody } from '../body.ts';
import type { SlackDoor } from '../ports.ts';
import type { Route } from '../route.ts';

export const SLACK_EVENTS_PATH = '/slack/events';

/** Slack's largest messages have 40,000 characters, escaped, in blocks as well as in text. */
const BODY_MAX_BYTES = 1024 * 1024;

export function postSlackEvents(door: SlackDoor): Route {
  return {
    method: 'POST',
    path: SLACK_EVENTS_PATH,
    async handle(ctx) {
      const body = await readRawBody(ctx, BODY_MAX_BYTES);
      const signed = { body, timestamp: ctx.get('x-slack-request-timestamp'), signature: ctx.get('x-slack-signature') };
      const received = await door.receive(signed);
      if (received === null)
        throw new RuntimeFault('UNAUTHENTICATED', 'This delivery is not signed with the signing secret of our Slack app.');
      ctx.status = 200;
      ctx.body = received.challenge === null ? {} : { challenge: received.challenge };
    },
  };
}
