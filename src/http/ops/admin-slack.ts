/**
 * Owns: the admin routes for Slack on the operations listener (src/contract/slack.ts).
 * Does not own: what they do (src/slack/admin.ts).
 */
import type Koa from 'koa';
import {
  type SlackCheckView,
  type SlackConnectInput,
  type SlackConnectionView,
  slackConnectSchema,
  slackDisconnectSchema,
} from '../../contract/slack.ts';
import { readJsonBody } from '../body.ts';
import { parseInput } from '../input.ts';
import type { Route } from '../route.ts';

/** What the routes call; src/slack implements it. */
export interface SlackAdminPort {
  connections(): Promise<readonly SlackConnectionView[]>;
  connect(input: SlackConnectInput): Promise<void>;
  disconnect(team: string): Promise<void>;
  check(): Promise<readonly SlackCheckView[]>;
}

const BODY_MAX_BYTES = 64 * 1024;

export function adminSlackRoutes(admin: SlackAdminPort): readonly Route[] {
  const body = (ctx: Koa.Context) => readJsonBody(ctx, { maxBytes: BODY_MAX_BYTES });
  const list = (path: string, name: string, read: (ctx: Koa.Context) => Promise<unknown>): Route => ({
    method: 'GET',
    path: `/admin/api/${path}`,
    async handle(ctx) {
      ctx.set('Cache-Control', 'no-store');
      ctx.body = { [name]: await read(ctx) };
    },
  });
  const write = (path: string, change: (ctx: Koa.Context) => Promise<void>): Route => ({
    method: 'POST',
    path: `/admin/api/${path}`,
    async handle(ctx) {
      await change(ctx);
      ctx.status = 204;
    },
  });
  return [
    list('slack', 'slack', () => admin.connections()),
    list('slack/check', 'check', () => admin.check()),
    write('slack', async (ctx) => admin.connect(parseInput(slackConnectSchema, await body(ctx)))),
    write('slack/disconnect', async (ctx) => admin.disconnect(parseInput(slackDisconnectSchema, await body(ctx)).team)),
  ];
}
