/**
 * Owns: the admin routes for repositories on the operations listener (src/contract/repositories.ts).
 * Does not own: what they do (src/context/loaders/git/admin.ts).
 */
import type Koa from 'koa';
import { type RepositoryInput, type RepositoryView, repositoryInputSchema } from '../../contract/repositories.ts';
import { readJsonBody } from '../body.ts';
import { parseInput } from '../input.ts';
import { param, type Route } from '../route.ts';

/** What the routes call. */
export interface RepositoryAdminPort {
  list(): Promise<readonly RepositoryView[]>;
  add(input: RepositoryInput): Promise<void>;
  /** `workspace` null: the only one. */
  remove(name: string, workspace: string | null): Promise<void>;
}

const BODY_MAX_BYTES = 64 * 1024;

export function adminRepositoryRoutes(admin: RepositoryAdminPort, guard: (ctx: Koa.Context) => void): readonly Route[] {
  return [
    {
      method: 'GET',
      path: '/admin/api/repositories',
      async handle(ctx) {
        guard(ctx);
        ctx.set('Cache-Control', 'no-store');
        ctx.body = { repositories: await admin.list() };
      },
    },
    {
      method: 'POST',
      path: '/admin/api/repositories',
      async handle(ctx) {
        guard(ctx);
        await admin.add(parseInput(repositoryInputSchema, await readJsonBody(ctx, { maxBytes: BODY_MAX_BYTES })));
        ctx.status = 204;
      },
    },
    {
      method: 'DELETE',
      path: '/admin/api/repositories/:name',
      async handle(ctx) {
        guard(ctx);
        const { workspace } = ctx.query;
        await admin.remove(param(ctx, 'name') ?? '', typeof workspace === 'string' ? workspace : null);
        ctx.status = 204;
      },
    },
  ];
}
