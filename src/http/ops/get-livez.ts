/** `GET /livez`: the process answers. It touches nothing else. */
import type { Route } from '../route.ts';

export function getLivez(): Route {
  return {
    method: 'GET',
    path: '/livez',
    handle(ctx) {
      ctx.body = { live: true };
    },
  };
}
