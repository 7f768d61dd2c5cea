/**
 * Owns: the admin routes for models on the operations listener: connections, models, bindings, budgets (src/contract/admin.ts).
 * Does not own: what they do (src/models). Every write answers 204; what it changed is read from the list.
 */
import type { z } from 'zod';
import {
  type BindingInput,
  type BindingView,
  type BudgetInput,
  type BudgetView,
  bindingInputSchema,
  budgetInputSchema,
  type ConnectionChange,
  type ConnectionInput,
  type ConnectionView,
  connectionChangeSchema,
  connectionInputSchema,
  type ModelInput,
  type ModelView,
  modelChangeSchema,
  modelInputSchema,
  type Price,
} from '../../contract/admin.ts';
import { readJsonBody } from '../body.ts';
import { parseInput } from '../input.ts';
import { param, type Route } from '../route.ts';

/** What the routes call; src/models implements it. */
export interface ModelAdminPort {
  connections(): Promise<readonly ConnectionView[]>;
  models(): Promise<readonly ModelView[]>;
  bindings(): Promise<readonly BindingView[]>;
  budgets(): Promise<readonly BudgetView[]>;
  addConnection(input: ConnectionInput): Promise<void>;
  changeConnection(name: string, change: ConnectionChange): Promise<void>;
  addModel(input: ModelInput): Promise<void>;
  priceModel(name: string, price: Price): Promise<void>;
  bind(input: BindingInput): Promise<void>;
  setBudget(input: BudgetInput): Promise<void>;
}

const BODY_MAX_BYTES = 64 * 1024;

export function adminModelRoutes(admin: ModelAdminPort): readonly Route[] {
  const list = (name: string, read: () => Promise<unknown>): Route => ({
    method: 'GET',
    path: `/admin/api/${name}`,
    async handle(ctx) {
      ctx.set('Cache-Control', 'no-store');
      ctx.body = { [name]: await read() };
    },
  });
  const write = <T>(
    at: Pick<Route, 'method' | 'path'>,
    schema: z.ZodType<T>,
    change: (input: T, name: string) => Promise<void>,
  ): Route => ({
    ...at,
    async handle(ctx) {
      await change(parseInput(schema, await readJsonBody(ctx, { maxBytes: BODY_MAX_BYTES })), param(ctx, 'name') ?? '');
      ctx.status = 204;
    },
  });
  return [
    list('connections', () => admin.connections()),
    list('models', () => admin.models()),
    list('bindings', () => admin.bindings()),
    list('budgets', () => admin.budgets()),
    write({ method: 'POST', path: '/admin/api/connections' }, connectionInputSchema, (input) => admin.addConnection(input)),
    write({ method: 'PATCH', path: '/admin/api/connections/:name' }, connectionChangeSchema, (input, name) =>
      admin.changeConnection(name, input),
    ),
    write({ method: 'POST', path: '/admin/api/models' }, modelInputSchema, (input) => admin.addModel(input)),
    write({ method: 'PATCH', path: '/admin/api/models/:name' }, modelChangeSchema, (input, name) => admin.priceModel(name, input.price)),
    write({ method: 'PUT', path: '/admin/api/bindings' }, bindingInputSchema, (input) => admin.bind(input)),
    write({ method: 'PUT', path: '/admin/api/budgets' }, budgetInputSchema, (input) => admin.setBudget(input)),
  ];
}
