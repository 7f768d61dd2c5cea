/** `GET …/mentor/events`: the event stream of the account (server-sent events). Membership and sign-in are asked again before everything it sends. */
import { requireProvenMember } from '../auth/authenticator.ts';
import type { Route } from '../route.ts';
import { SseChannel, STREAM_HEADERS } from '../sse.ts';
import type { WebDeps } from './deps.ts';

export function getEvents({ db, authenticator, live, clock }: WebDeps): Route {
  return {
    method: 'GET',
    path: '/workspaces/:slug/mentor/events',
    async handle(ctx) {
      const { member, proof } = await requireProvenMember(ctx, authenticator, db);
      if (ctx.method === 'HEAD') {
        ctx.status = 200;
        ctx.set(STREAM_HEADERS);
        return;
      }
      live.open(member, () => new SseChannel(ctx, clock), proof);
    },
  };
}
