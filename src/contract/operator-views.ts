/**
 * Owns: the wire of what operators look at beside turns: the outbox, sandboxes, spending, and one conversation with its actor. Ids, codes,
 * counts and times; never words.
 */
import { z } from 'zod';
import { idSchema } from './common.ts';
import { limitSchema, type OperatorActionView, type OperatorTurn } from './operators.ts';
import { slugSchema } from './people.ts';
import { OUTBOX_STATES } from './slack.ts';

export const outboxQuerySchema = z.strictObject({
  /** Absent: all that is not sent. */
  state: z.enum(OUTBOX_STATES).optional(),
  workspace: slugSchema.optional(),
  channel: z.string().min(1).max(30).optional(),
  conversation: idSchema.optional(),
  limit: limitSchema,
  /** `nextAfter` of the page before. */
  after: z.coerce.number().int().min(0).optional(),
});
export type OutboxQuery = z.infer<typeof outboxQuerySchema>;

export interface OutboxLine {
  readonly id: string;
  readonly state: string;
  /** Why it is in this state: a code. */
  readonly reason: string | null;
  readonly workspace: string;
  readonly team: string;
  readonly channel: string;
  readonly turn: string | null;
  readonly attempts: number;
  readonly createdAt: string;
  readonly dueAt: string | null;
}

export interface OutboxChannelLine {
  readonly workspace: string;
  readonly team: string;
  readonly channel: string;
  readonly pending: number;
  readonly uncertain: number;
  readonly parked: number;
  readonly dead: number;
  readonly oldestMs: number | null;
}

export interface OutboxPage {
  readonly channels: readonly OutboxChannelLine[];
  /** Oldest first. */
  readonly outbox: readonly OutboxLine[];
  readonly nextAfter: number | null;
}

export const SANDBOX_STATES = ['live', 'ended', 'failed'] as const;
export const sandboxesQuerySchema = z.strictObject({
  state: z.enum(SANDBOX_STATES).default('live'),
  /** A server's name or id. */
  host: z.string().min(1).max(200).optional(),
  workspace: slugSchema.optional(),
  conversation: idSchema.optional(),
  limit: limitSchema,
  before: idSchema.optional(),
});
export type SandboxesQuery = z.infer<typeof sandboxesQuerySchema>;

export interface SandboxLine {
  readonly id: string;
  readonly conversation: string;
  readonly workspace: string;
  readonly state: 'STARTING' | 'READY' | 'ENDED' | 'START_FAILED';
  readonly host: { readonly id: string; readonly name: string; readonly alive: boolean };
  /** Of an ended one: how long it lived. */
  readonly ageMs: number;
  readonly createdAt: string;
  readonly turn: string | null;
  readonly epoch: number | null;
  /** Its runner, when it is one of this server's; null: another server knows. */
  readonly runner: { readonly state: string; readonly pid: number | null; readonly memoryBytes: number | null } | null;
}

export interface SandboxesPage {
  /** Newest first. */
  readonly sandboxes: readonly SandboxLine[];
  readonly nextBefore: string | null;
}

export const spendingQuerySchema = z.strictObject({
  month: z
    .string()
    .regex(/^\d{4}-(0[1-9]|1[0-2])$/, 'must be a month such as 2026-11')
    .optional(),
  workspace: slugSchema.optional(),
});
export type SpendingQuery = z.infer<typeof spendingQuerySchema>;

export interface SpendingLine {
  readonly month: string;
  readonly workspace: string;
  readonly model: string;
  readonly calls: number;
  readonly open: number;
  readonly unknown: number;
  readonly tokens: { readonly input: number; readonly output: number; readonly cacheRead: number };
  readonly cost: string;
}

export const conversationQuerySchema = z.strictObject({ before: z.coerce.number().int().min(1).optional(), limit: limitSchema });
export type ConversationQuery = z.infer<typeof conversationQuerySchema>;

/** One claim of a run. */
export interface AttemptLine {
  readonly turn: string;
  readonly epoch: number;
  readonly sandbox: string | null;
  readonly host: string | null;
  /** null: the ledger does not know. */
  readonly beganAt: string | null;
  readonly endedAt: string | null;
  /** `LEASED`: it runs. `unknown`: only a later one and its model calls tell of it. */
  readonly how: string;
  readonly leaseMs: number | null;
  readonly deadlineMs: number | null;
  readonly calls: number;
}

/** A place in the ledger: an entry, or numbers that no entry has. */
export type LedgerLine =
  | {
      readonly seq: number;
      readonly id: string;
      readonly kind: string;
      readonly turn: string | null;
      readonly bytes: number;
      readonly createdAt: string;
      readonly erased: boolean;
    }
  | { readonly seq: number; readonly missing: number };

export interface ConversationPage {
  readonly conversation: {
    readonly id: string;
    readonly workspace: string;
    readonly account: string;
    readonly parent: string | null;
    readonly version: number;
    readonly createdAt: string;
    readonly entries: number;
    readonly erased: number;
  };
  /** As this server has it in memory; null: it has not. */
  readonly actor: {
    readonly state: string;
    readonly mailboxDepth: number;
    readonly oldestWaitMs: number;
    readonly lastFault: string | null;
    readonly commandsHandled: number;
  } | null;
  /** What waits in it, in the order in which it will run; then what runs. */
  readonly mailbox: readonly OperatorTurn[];
  /** Ended ones, newest first. */
  readonly ended: readonly OperatorTurn[];
  /** Newest turn first, its epochs in order. */
  readonly attempts: readonly AttemptLine[];
  /** Newest first. */
  readonly ledger: readonly LedgerLine[];
  /** For the next page of the ledger. */
  readonly nextBefore: number | null;
  readonly sandboxes: readonly SandboxLine[];
  readonly outbox: readonly OutboxLine[];
  readonly actions: readonly OperatorActionView[];
}
