/**
 * Owns: the admin routes for the AI choice of members and for what was spent, on the operations listener (src/contract/admin.ts).
 * Does not own: what they do (src/models/members.ts).
 */
import type { z } from 'zod';
import {
  type CallView,
  callsQuerySchema,
  type MemberChange,
  memberChangeSchema,
  type UsageView,
  usageQuerySchema,
} from '../../contract/admin.ts';
import { readJsonBody } from '../body.ts';
import { parseInput } from '../input.ts';
import { param, type Route } from '../route.ts';

/** What the routes call; src/models implements it. */
export interface MemberAdminPort {
  changeMember(account: string, change: MemberChange): Promise<void>;
  usage(month: string | null, workspace: string | null): Promise<readonly UsageView[]>;
  calls(turnId: string): Promise<readonly CallView[]>;
}

const BODY_MAX_BYTES = 64 * 1024;

export function adminMemberRoutes(admin: MemberAdminPort): readonly Route[] {
  const list = <T>(name: string, schema: z.ZodType<T>, read: (query: T) => Promise<unknown>): Route => ({
    method: 'GET',
    path: `/admin/api/${name}`,
    async handle(ctx) {
      ctx.set('Cache-Control', 'no-store');
      ctx.body = { [name]: await read(parseInput(schema, { ...ctx.query })) };
    },
  });
  return [
    list('usage', usageQuerySchema, ({ month = null, workspace = null }) => admin.usage(month, workspace)),
    list('calls', callsQuerySchema, ({ turn }) => admin.calls(turn)),
    {
      method: 'PATCH',
      path: '/admin/api/members/:account',
      async handle(ctx) {
        const change = parseInput(memberChangeSchema, await readJsonBody(ctx, { maxBytes: BODY_MAX_BYTES }));
        await admin.changeMember(param(ctx, 'account') ?? '', change);
        ctx.status = 204;
      },
    },
  ];
}
