/**
 * Owns: the operator routes of the operations listener (src/contract/operator*.ts): what is there, and the actions.
 * Does not own: what they read and do (src/ops), who may (roles.ts). An action without `?preview=true` needs a reason and an idempotency key.
 */
import type Koa from 'koa';
import {
  type BatchInput,
  type BatchPreview,
  type BatchPreviewInput,
  type BatchResult,
  batchInputSchema,
  batchPreviewSchema,
  type OperatorAccountView,
  operatorInputSchema,
  type RevealedEntry,
  type RevealInput,
  revealInputSchema,
} from '../../contract/operator-batch.ts';
import {
  type ConversationPage,
  type ConversationQuery,
  conversationQuerySchema,
  type OutboxPage,
  type OutboxQuery,
  outboxQuerySchema,
  type SandboxesPage,
  type SandboxesQuery,
  type SpendingLine,
  type SpendingQuery,
  sandboxesQuerySchema,
  spendingQuerySchema,
} from '../../contract/operator-views.ts';
import {
  type ActionPreview,
  type ActionResult,
  actionInputSchema,
  actionsQuerySchema,
  type OperatorActionName,
  type OperatorActionView,
  type OperatorMe,
  type OperatorTurnPage,
  type OperatorTurns,
  type OpsRole,
  type Overview,
  previewInputSchema,
  TURN_ACTIONS,
  type TurnsQuery,
  turnsQuerySchema,
} from '../../contract/operators.ts';
import { RuntimeFault } from '../../kernel/faults.ts';
import { SIGN_OUT_URL } from '../auth/post-logout.ts';
import { readJsonBody } from '../body.ts';
import { InputFault, parseInput, pathId } from '../input.ts';
import { param, type Route } from '../route.ts';
import { operatorOf } from './operator-guard.ts';

interface Ask {
  readonly action: OperatorActionName;
  readonly target: string | null;
  readonly role?: OpsRole | null;
}
interface Because {
  readonly reason: string;
  readonly idempotencyKey: string;
  readonly operator: string;
}

/** What the routes call; src/ops implements it. */
export interface OperatorPort {
  readonly view: {
    overview(): Promise<Overview>;
    turns(query: TurnsQuery): Promise<OperatorTurns>;
    /** null: there is no such turn. */
    turn(id: string): Promise<OperatorTurnPage | null>;
    actions(before: string | null, limit: number): Promise<{ actions: readonly OperatorActionView[]; nextBefore: string | null }>;
  };
  readonly pages: {
    outbox(query: OutboxQuery): Promise<OutboxPage>;
    sandboxes(query: SandboxesQuery): Promise<SandboxesPage>;
    spending(query: SpendingQuery): Promise<readonly SpendingLine[]>;
    /** null: there is no such conversation. */
    conversation(id: string, query: ConversationQuery): Promise<ConversationPage | null>;
  };
  readonly actions: {
    preview(ask: Ask): Promise<ActionPreview>;
    run(order: Ask & Because): Promise<ActionResult>;
  };
  readonly batch: {
    preview(input: BatchPreviewInput): Promise<BatchPreview>;
    run(order: BatchInput & { readonly operator: string }): Promise<BatchResult>;
  };
  readonly entries: {
    preview(entryId: string): Promise<ActionPreview>;
    reveal(order: RevealInput & { readonly entryId: string; readonly operator: string }): Promise<RevealedEntry>;
  };
  operators(): Promise<readonly OperatorAccountView[]>;
}

const BODY_MAX_BYTES = 8 * 1024;
const API = '/admin/api';
const isPreview = (ctx: Koa.Context) => ctx.query['preview'] === 'true';
const bodyOf = (ctx: Koa.Context) => readJsonBody(ctx, { maxBytes: BODY_MAX_BYTES, optional: true });

function read(path: string, answer: (ctx: Koa.Context) => Promise<unknown>): Route {
  return {
    ...{ method: 'GET', path: `${API}/${path}` },
    async handle(ctx) {
      ctx.set('Cache-Control', 'no-store');
      ctx.body = await answer(ctx);
    },
  };
}

function post(path: string, answer: (ctx: Koa.Context, body: Record<string, unknown>) => Promise<unknown>): Route {
  return {
    ...{ method: 'POST', path: `${API}/${path}` },
    async handle(ctx) {
      ctx.set('Cache-Control', 'no-store');
      ctx.body = await answer(ctx, await bodyOf(ctx));
    },
  };
}

export function operatorRoutes(port: OperatorPort): readonly Route[] {
  return [...reads(port), ...actions(port), ...wordsAndRoles(port)];
}

function reads({ view, pages }: OperatorPort): readonly Route[] {
  return [
    read('me', async (ctx): Promise<OperatorMe> => {
      const { name, role } = operatorOf(ctx);
      const signedIn = name !== 'local' && !name.startsWith('token:') && ctx.get('authorization') === '';
      return { name, role, signOutUrl: signedIn ? SIGN_OUT_URL : null };
    }),
    read('overview', () => view.overview()),
    read('turns', (ctx) => view.turns(parseInput(turnsQuerySchema, { ...ctx.query }))),
    read('turns/:id', async (ctx) => (await view.turn(turnId(ctx))) ?? missing('TURN_NOT_FOUND', NO_TURN)),
    read('conversations/:id', async (ctx) => {
      const id = pathId(param(ctx, 'id'), 'CONVERSATION_NOT_FOUND', NO_CONVERSATION);
      const page = await pages.conversation(id, parseInput(conversationQuerySchema, { ...ctx.query }));
      return page ?? missing('CONVERSATION_NOT_FOUND', NO_CONVERSATION);
    }),
    read('outbox', (ctx) => pages.outbox(parseInput(outboxQuerySchema, { ...ctx.query }))),
    read('sandboxes', (ctx) => pages.sandboxes(parseInput(sandboxesQuerySchema, { ...ctx.query }))),
    read('spending', async (ctx) => ({ spending: await pages.spending(parseInput(spendingQuerySchema, { ...ctx.query })) })),
    read('actions', (ctx) => {
      const { before = null, limit } = parseInput(actionsQuerySchema, { ...ctx.query });
      return view.actions(before, limit);
    }),
  ];
}

type Place = { readonly workspace?: string | null | undefined; readonly surface?: 'app' | 'slack' | null | undefined };

function actions(port: OperatorPort): readonly Route[] {
  const action = (path: string, name: OperatorActionName, targetOf: (ctx: Koa.Context, place: Place) => string | null): Route =>
    post(path, async (ctx, body) => {
      if (isPreview(ctx)) return port.actions.preview({ action: name, target: targetOf(ctx, parseInput(previewInputSchema, body)) });
      const { reason, idempotencyKey, ...place } = parseInput(actionInputSchema, body);
      const because = { reason, idempotencyKey, operator: operatorOf(ctx).name };
      return port.actions.run({ action: name, target: targetOf(ctx, place), ...because });
    });
  const outboxId = (ctx: Koa.Context) => pathId<'action'>(param(ctx, 'id'), 'NOT_FOUND', NO_OUTBOX_ACTION);
  return [
    ...TURN_ACTIONS.map((name) => action(`turns/:id/${name}`, name, turnId)),
    action('claims/pause', 'pause-claims', (_ctx, place) => pauseTarget(place)),
    action('claims/resume', 'resume-claims', (_ctx, place) => pauseTarget(place)),
    action('drain', 'drain', () => null),
    action('outbox/:id/sent', 'outbox-sent', outboxId),
    action('outbox/:id/again', 'outbox-again', outboxId),
    post('batch', (ctx, body) => {
      if (isPreview(ctx)) return port.batch.preview(parseInput(batchPreviewSchema, body));
      return port.batch.run({ ...parseInput(batchInputSchema, body), operator: operatorOf(ctx).name });
    }),
  ];
}

function wordsAndRoles(port: OperatorPort): readonly Route[] {
  return [
    post('entries/:id/reveal', (ctx, body) => {
      const entryId = pathId(param(ctx, 'id'), 'ENTRY_NOT_FOUND', NO_ENTRY);
      if (isPreview(ctx)) return port.entries.preview(entryId);
      return port.entries.reveal({ ...parseInput(revealInputSchema, body), entryId, operator: operatorOf(ctx).name });
    }),
    read('operators', async () => ({ operators: await port.operators() })),
    post('operators', (ctx, body) => {
      if (isPreview(ctx)) {
        const { member: target, role } = parseInput(operatorInputSchema.pick({ member: true, role: true }), body);
        return port.actions.preview({ action: 'set-operator', target, role });
      }
      const { member: target, role, ...because } = parseInput(operatorInputSchema, body);
      return port.actions.run({ action: 'set-operator', target, role, ...because, operator: operatorOf(ctx).name });
    }),
  ];
}

/** The target of a pause: a workspace, a surface, or (null) the installation. */
function pauseTarget({ workspace = null, surface = null }: Place): string | null {
  if (workspace !== null && surface !== null)
    throw new InputFault([{ path: 'surface', message: 'a pause is of one workspace or of one surface, not of both' }]);
  return surface === null ? workspace : `surface:${surface}`;
}

const NO_TURN = 'There is no such turn. heph turns lists them.';
const NO_CONVERSATION = 'There is no such conversation. The page of a turn names its own.';
const NO_ENTRY = 'There is no such entry. The page of its conversation lists their ids.';
const NO_OUTBOX_ACTION = 'There is no such action. heph outbox list shows their ids.';
const turnId = (ctx: Koa.Context): string => pathId(param(ctx, 'id'), 'TURN_NOT_FOUND', NO_TURN);

function missing(code: 'TURN_NOT_FOUND' | 'CONVERSATION_NOT_FOUND', text: string): never {
  throw new RuntimeFault(code, text);
}
