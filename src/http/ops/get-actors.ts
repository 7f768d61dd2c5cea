/** `GET /admin/api/actors`: the supervision tree: each actor with its state, mailbox and last fault. Ids and counts only. */
import type Koa from 'koa';
import type { ActorView } from '../../../actors/index.ts';
import type { Route } from '../route.ts';

export function getActors(list: () => readonly ActorView[], guard: (ctx: Koa.Context) => void): Route {
  return {
    method: 'GET',
    path: '/admin/api/actors',
    handle(ctx) {
      guard(ctx);
      ctx.set('Cache-Control', 'no-store');
      ctx.body = { actors: list() };
    },
  };
}
