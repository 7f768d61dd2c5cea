/**
 * Owns: the admin routes for Slack and the outbox on the operations listener (src/contract/slack.ts).
 * Does not own: what they do (src/slack/admin.ts).
 */
import type Koa from 'koa';
import {
  type OutboxActionView,
  type OutboxDecision,
  outboxDecisionSchema,
  outboxStateSchema,
  type SlackCheckView,
  type SlackConnectInput,
  type SlackConnectionView,
  slackConnectSchema,
  slackDisconnectSchema,
} from '../../contract/slack.ts';
import { readJsonBody } from '../body.ts';
import { parseInput, pathId } from '../input.ts';
import { param, type Route } from '../route.ts';

/** What the routes call; src/slack implements it. */
export interface SlackAdminPort {
  connections(): Promise<readonly SlackConnectionView[]>;
  connect(input: SlackConnectInput): Promise<void>;
  disconnect(team: string): Promise<void>;
  check(): Promise<readonly SlackCheckView[]>;
  /** `state` null: all that is not sent. */
  actions(state: string | null): Promise<readonly OutboxActionView[]>;
  decide(id: string, decision: OutboxDecision): Promise<void>;
}

const BODY_MAX_BYTES = 64 * 1024;

export function adminSlackRoutes(admin: SlackAdminPort, guard: (ctx: Koa.Context) => void): readonly Route[] {
  const body = (ctx: Koa.Context) => readJsonBody(ctx, { maxBytes: BODY_MAX_BYTES });
  const list = (path: string, name: string, read: (ctx: Koa.Context) => Promise<unknown>): Route => ({
    method: 'GET',
    path: `/admin/api/${path}`,
    async handle(ctx) {
      guard(ctx);
      ctx.set('Cache-Control', 'no-store');
      ctx.body = { [name]: await read(ctx) };
    },
  });
  const write = (path: string, change: (ctx: Koa.Context) => Promise<void>): Route => ({
    method: 'POST',
    path: `/admin/api/${path}`,
    async handle(ctx) {
      guard(ctx);
      await change(ctx);
      ctx.status = 204;
    },
  });
  return [
    list('slack', 'slack', () => admin.connections()),
    list('slack/check', 'check', () => admin.check()),
    write('slack', async (ctx) => admin.connect(parseInput(slackConnectSchema, await body(ctx)))),
    write('slack/disconnect', async (ctx) => admin.disconnect(parseInput(slackDisconnectSchema, await body(ctx)).team)),
    list('outbox', 'outbox', (ctx) => admin.actions(parseInput(outboxStateSchema.nullable(), ctx.query['state'] ?? null))),
    write('outbox/:id', async (ctx) => {
      const id = pathId<'action'>(param(ctx, 'id'), 'NOT_FOUND', 'There is no such action. heph outbox list shows their ids.');
      await admin.decide(id, parseInput(outboxDecisionSchema, await body(ctx)).decision);
    }),
  ];
}
