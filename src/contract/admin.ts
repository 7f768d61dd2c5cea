/**
 * Owns: the admin wire of the operations listener for models: connections, models, bindings, budgets. The command line speaks it.
 * Money and prices are decimals in text, so that nothing is rounded: prices per million tokens, in the one currency of the installation.
 */
import { z } from 'zod';
import { llmApiSchema } from './agent.ts';

const nameSchema = z.string().regex(/^[a-z0-9][a-z0-9.-]{0,62}$/, 'must be 1 to 63 of a-z, 0-9, - and ., beginning with a letter or digit');
const slugSchema = z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'must be the slug of a workspace');
const decimalSchema = z.string().regex(/^\d{1,9}(\.\d{1,9})?$/, 'must be a decimal such as 2.5');
/** Not one of the names by which the settings of a server are rows. */
const isOurs = (name: string) => !['environment', 'demo'].includes(name);
const tokensSchema = z.number().int().min(1).max(100_000_000);

export const connectionInputSchema = z.strictObject({
  name: slugSchema.refine(isOurs, 'is a name that Heph uses itself'),
  api: llmApiSchema,
  baseUrl: z.string().min(1).max(2_000),
  apiKey: z.string().min(1).max(4_000).optional(),
});
export type ConnectionInput = z.infer<typeof connectionInputSchema>;

export const connectionChangeSchema = z.strictObject({
  disabled: z.boolean().optional(),
  apiKey: z.string().min(1).max(4_000).optional(),
});
export type ConnectionChange = z.infer<typeof connectionChangeSchema>;

export interface ConnectionView {
  readonly name: string;
  readonly api: string;
  /** null: built in. */
  readonly baseUrl: string | null;
  readonly source: 'environment' | 'admin';
  readonly hasKey: boolean;
  /** Calls are paused until then, because the provider does not answer. */
  readonly pausedUntil: string | null;
  readonly disabled: boolean;
}

export const priceSchema = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('PRICED'),
    input: decimalSchema,
    output: decimalSchema,
    /** Without one, cached tokens cost what input costs. */
    cacheRead: decimalSchema.optional(),
    cacheWrite: decimalSchema.optional(),
  }),
  z.strictObject({ kind: z.literal('NO_CHARGE'), note: z.string().trim().min(1).max(500) }),
  z.strictObject({ kind: z.literal('UNPRICED') }),
]);
export type Price = z.infer<typeof priceSchema>;

export const modelInputSchema = z.strictObject({
  name: nameSchema.refine(isOurs, 'is a name that Heph uses itself'),
  connection: z.string().min(1).max(63),
  providerModel: z.string().min(1).max(200),
  contextTokens: tokensSchema,
  outputTokens: tokensSchema,
  price: priceSchema,
});
export type ModelInput = z.infer<typeof modelInputSchema>;

export const modelChangeSchema = z.strictObject({ price: priceSchema });
export type ModelView = ModelInput;

/** The longest deadline of a turn. */
const TIMEOUT_MAX_MS = 900_000;

export const bindingInputSchema = z.strictObject({
  /** null: every workspace without a binding of its own. */
  workspace: slugSchema.nullable(),
  /** null: no binding of an admin any more. */
  model: z.string().min(1).max(63).nullable(),
  timeoutMs: z.number().int().min(1_000).max(TIMEOUT_MAX_MS).default(300_000),
});
export type BindingInput = z.infer<typeof bindingInputSchema>;

export interface BindingView {
  readonly workspace: string | null;
  readonly model: string;
  readonly timeoutMs: number;
  readonly source: 'environment' | 'admin';
}

export const budgetInputSchema = z.strictObject({
  /** null: the whole installation. */
  workspace: slugSchema.nullable(),
  /** null: no limit. */
  monthlyLimit: decimalSchema.nullable(),
});
export type BudgetInput = z.infer<typeof budgetInputSchema>;

export interface BudgetView {
  readonly workspace: string | null;
  readonly monthlyLimit: string;
  /** In this calendar month, UTC. */
  readonly spent: string;
  /** Calls of this month whose cost nobody knows: they are in no sum. */
  readonly unknownCalls: number;
}

export const memberChangeSchema = z.strictObject({
  /** null: every workspace of the account. */
  workspace: slugSchema.nullable(),
  aiAllowed: z.boolean(),
});
export type MemberChange = z.infer<typeof memberChangeSchema>;

/** What may be asked of `GET /admin/api/usage`. */
export const usageQuerySchema = z.strictObject({
  month: z
    .string()
    .regex(/^\d{4}-(0[1-9]|1[0-2])$/, 'must be a month such as 2026-03')
    .optional(),
  workspace: slugSchema.optional(),
});
export const callsQuerySchema = z.strictObject({ turn: z.string().min(1).max(100) });

/** A purse in one month (UTC). */
export interface UsageView {
  readonly month: string;
  /** null: the whole installation. */
  readonly workspace: string | null;
  /** null: no limit. */
  readonly budget: string | null;
  readonly spent: string;
  /** Model calls that were opened. */
  readonly calls: number;
  /** Of these, ended calls whose cost nobody knows: they are in no sum. */
  readonly unknownCalls: number;
}

/** A model call of a turn. */
export interface CallView {
  readonly id: string;
  readonly attempt: number;
  readonly api: string;
  /** The provider's name of the model. */
  readonly model: string;
  /** How it ended; `open`: not yet; `unknown`: its server died. */
  readonly outcome: string;
  /** The provider's HTTP status. */
  readonly status: number | null;
  /** null where the provider did not say. */
  readonly tokens: {
    readonly input: number | null;
    readonly output: number | null;
    readonly cacheRead: number | null;
    readonly cacheWrite: number | null;
  };
  /** A decimal; `unknown` where nobody knows it; null while the call is open. */
  readonly cost: string | null;
  readonly openedAt: string;
  readonly closedAt: string | null;
}
