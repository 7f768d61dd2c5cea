/**
 * Owns: the admin routes for workspaces and members on the operations listener (src/contract/people.ts).
 * Does not own: what they do (src/people). Every write answers 204; what it changed is read from the list.
 */
import type Koa from 'koa';
import type { z } from 'zod';
import {
  type MemberChange,
  type MemberInput,
  type MemberView,
  memberChangeSchema,
  memberInputSchema,
  slugSchema,
  type WorkspaceInput,
  type WorkspaceView,
  workspaceInputSchema,
} from '../../contract/people.ts';
import { readJsonBody } from '../body.ts';
import { parseInput } from '../input.ts';
import type { Route } from '../route.ts';

/** What the routes call; src/people implements it. */
export interface PeopleAdminPort {
  workspaces(): Promise<readonly WorkspaceView[]>;
  members(slug: string | null): Promise<readonly MemberView[]>;
  addWorkspace(input: WorkspaceInput): Promise<void>;
  addMember(input: MemberInput): Promise<void>;
  changeMember(change: MemberChange): Promise<void>;
}

const BODY_MAX_BYTES = 64 * 1024;

export function adminPeopleRoutes(admin: PeopleAdminPort): readonly Route[] {
  const list = (name: string, read: (ctx: Koa.Context) => Promise<unknown>): Route => ({
    method: 'GET',
    path: `/admin/api/${name}`,
    async handle(ctx) {
      ctx.set('Cache-Control', 'no-store');
      ctx.body = { [name]: await read(ctx) };
    },
  });
  const write = <T>(at: Pick<Route, 'method' | 'path'>, schema: z.ZodType<T>, change: (input: T) => Promise<void>): Route => ({
    ...at,
    async handle(ctx) {
      await change(parseInput(schema, await readJsonBody(ctx, { maxBytes: BODY_MAX_BYTES })));
      ctx.status = 204;
    },
  });
  return [
    list('workspaces', () => admin.workspaces()),
    list('members', (ctx) => admin.members(parseInput(slugSchema.nullable(), ctx.query['workspace'] ?? null))),
    write({ method: 'POST', path: '/admin/api/workspaces' }, workspaceInputSchema, (input) => admin.addWorkspace(input)),
    write({ method: 'POST', path: '/admin/api/members' }, memberInputSchema, (input) => admin.addMember(input)),
    write({ method: 'PATCH', path: '/admin/api/members' }, memberChangeSchema, (change) => admin.changeMember(change)),
  ];
}
