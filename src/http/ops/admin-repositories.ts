/**
 * Owns: the admin routes for repositories on the operations listener (src/contract/repositories.ts).
 * Does not own: what they do (src/context/loaders/git/admin.ts).
 */
import { type RepositoryInput, type RepositoryView, repositoryInputSchema } from '../../contract/repositories.ts';
import { RuntimeFault } from '../../kernel/faults.ts';
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
const NO_GIT = 'This server loads no repositories: git 2.37 or newer is not installed here, or HEPH_GIT_CHECKOUT_ENABLED is false.';

/** `usable` null: this server has no git; each route says so. */
export function adminRepositoryRoutes(usable: RepositoryAdminPort | null): readonly Route[] {
  const admitted = (): RepositoryAdminPort => {
    if (usable === null) throw new RuntimeFault('NOT_FOUND', NO_GIT);
    return usable;
  };
  return [
    {
      method: 'GET',
      path: '/admin/api/repositories',
      async handle(ctx) {
        const admin = admitted();
        ctx.set('Cache-Control', 'no-store');
        ctx.body = { repositories: await admin.list() };
      },
    },
    {
      method: 'POST',
      path: '/admin/api/repositories',
      async handle(ctx) {
        const admin = admitted();
        await admin.add(parseInput(repositoryInputSchema, await readJsonBody(ctx, { maxBytes: BODY_MAX_BYTES })));
        ctx.status = 204;
      },
    },
    {
      method: 'DELETE',
      path: '/admin/api/repositories/:name',
      async handle(ctx) {
        const admin = admitted();
        const { workspace } = ctx.query;
        await admin.remove(param(ctx, 'name') ?? '', typeof workspace === 'string' ? workspace : null);
        ctx.status = 204;
      },
    },
  ];
}
