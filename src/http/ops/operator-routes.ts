/**
 * Owns: the operator routes of the operations listener (src/contract/operators.ts): what runs and waits, and the actions.
 * Does not own: what they read and do (src/ops). An action without `?preview=true` needs a reason and an idempotency key.
 */
import type Koa from 'koa';
import {
  type ActionPreview,
  type ActionResult,
  actionInputSchema,
  actionsQuerySchema,
  type OperatorActionName,
  type OperatorActionView,
  type OperatorTurnPage,
  type OperatorTurns,
  type Overview,
  previewInputSchema,
  type TurnsQuery,
  turnsQuerySchema,
} from '../../contract/operators.ts';
import { RuntimeFault } from '../../kernel/faults.ts';
import { readJsonBody } from '../body.ts';
import { parseInput, pathId } from '../input.ts';
import { param, type Route } from '../route.ts';

interface Ask {
  readonly action: OperatorActionName;
  readonly target: string | null;
}

/** What the routes call; src/ops implements it. */
export interface OperatorPort {
  overview(): Promise<Overview>;
  turns(query: TurnsQuery): Promise<OperatorTurns>;
  /** null: there is no such turn. */
  turn(id: string): Promise<OperatorTurnPage | null>;
  actions(before: string | null, limit: number): Promise<{ actions: readonly OperatorActionView[]; nextBefore: string | null }>;
  preview(ask: Ask): Promise<ActionPreview>;
  run(order: Ask & { readonly reason: string; readonly idempotencyKey: string; readonly operator: string }): Promise<ActionResult>;
}

const BODY_MAX_BYTES = 8 * 1024;
/** The admin guard lets in this machine only: everybody there is one operator. */
const OPERATOR = 'local';

export function operatorRoutes(port: OperatorPort, guard: (ctx: Koa.Context) => void): readonly Route[] {
  const read = (path: string, answer: (ctx: Koa.Context) => Promise<unknown>): Route => ({
    method: 'GET',
    path: `/admin/api/${path}`,
    async handle(ctx) {
      guard(ctx);
      ctx.set('Cache-Control', 'no-store');
      ctx.body = await answer(ctx);
    },
  });
  const action = (
    path: string,
    name: OperatorActionName,
    targetOf: (ctx: Koa.Context, workspace: string | null) => string | null,
  ): Route => ({
    method: 'POST',
    path: `/admin/api/${path}`,
    async handle(ctx) {
      guard(ctx);
      const body = await readJsonBody(ctx, { maxBytes: BODY_MAX_BYTES, optional: true });
      if (ctx.query['preview'] === 'true') {
        const { workspace = null } = parseInput(previewInputSchema, body);
        ctx.body = await port.preview({ action: name, target: targetOf(ctx, workspace) });
        return;
      }
      const { reason, idempotencyKey, workspace = null } = parseInput(actionInputSchema, body);
      ctx.body = await port.run({ action: name, target: targetOf(ctx, workspace), reason, idempotencyKey, operator: OPERATOR });
    },
  });
  const ofTurn = (ctx: Koa.Context) => turnId(ctx);
  const ofWorkspace = (_ctx: Koa.Context, workspace: string | null) => workspace;
  return [
    read('overview', () => port.overview()),
    read('turns', (ctx) => port.turns(parseInput(turnsQuerySchema, { ...ctx.query }))),
    read('turns/:id', async (ctx) => {
      const page = await port.turn(turnId(ctx));
      if (page) return page;
      throw noTurn();
    }),
    read('actions', (ctx) => {
      const { before = null, limit } = parseInput(actionsQuerySchema, { ...ctx.query });
      return port.actions(before, limit);
    }),
    action('turns/:id/stop', 'stop', ofTurn),
    action('turns/:id/requeue', 'requeue', ofTurn),
    action('turns/:id/skip', 'skip', ofTurn),
    action('claims/pause', 'pause-claims', ofWorkspace),
    action('claims/resume', 'resume-claims', ofWorkspace),
    action('drain', 'drain', () => null),
  ];
}

const NO_TURN = 'There is no such turn. heph turns lists them.';
const noTurn = () => new RuntimeFault('TURN_NOT_FOUND', NO_TURN);
const turnId = (ctx: Koa.Context): string => pathId(param(ctx, 'id'), 'TURN_NOT_FOUND', NO_TURN);
