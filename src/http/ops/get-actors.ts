/**
 * `GET /admin/api/actors`: the supervision tree: each actor with its state, mailbox and last fault. `GET /admin/api/actors/:kind/:id`: one.
 * Ids and counts only.
 */
import type Koa from 'koa';
import type { ActorView } from '../../../actors/index.ts';
import { RuntimeFault } from '../../kernel/faults.ts';
import { param, type Route } from '../route.ts';

export function getActors(list: () => readonly ActorView[]): readonly Route[] {
  const open = (ctx: Koa.Context) => ctx.set('Cache-Control', 'no-store');
  return [
    {
      method: 'GET',
      path: '/admin/api/actors',
      handle(ctx) {
        open(ctx);
        ctx.body = { actors: list() };
      },
    },
    {
      method: 'GET',
      path: '/admin/api/actors/:kind/:id',
      handle(ctx) {
        open(ctx);
        const actor = list().find(({ kind, id }) => kind === param(ctx, 'kind') && id === param(ctx, 'id'));
        if (!actor) throw new RuntimeFault('NOT_FOUND', 'This server has no such actor in memory now. Another may have it, or none does.');
        ctx.body = { actor };
      },
    },
  ];
}
