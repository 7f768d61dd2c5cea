/** `GET /startupz`: 503 until everything has started once. */
import type { Route } from '../route.ts';

export function getStartupz(started: () => boolean): Route {
  return {
    method: 'GET',
    path: '/startupz',
    handle(ctx) {
      ctx.status = started() ? 200 : 503;
      ctx.body = { started: started() };
    },
  };
}
