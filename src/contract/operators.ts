/**
 * Owns: the operator wire of the operations listener: what runs, waits and is stuck, why, and what an operator may do about it. The command
 * line and the operator page speak it. Ids, codes, counts and times; never words of a conversation.
 */
import { z } from 'zod';
import { idSchema, type Surface, surfaceSchema, type TurnStatus } from './common.ts';
import { slugSchema } from './people.ts';

/** What somebody may do on the operations listener, the least first: read; act on turns, claims and servers; configure, and see words. */
export const OPS_ROLES = ['viewer', 'operator', 'admin'] as const;
export type OpsRole = (typeof OPS_ROLES)[number];

export function mayAs(role: OpsRole, needed: OpsRole): boolean {
  return OPS_ROLES.indexOf(role) >= OPS_ROLES.indexOf(needed);
}

/** `GET /admin/api/me`. */
export interface OperatorMe {
  /** As the log of actions has it: `local`, `token:…`, or the id of an account. */
  readonly name: string;
  readonly role: OpsRole;
  /** Where a POST signs out; null: there is nothing to sign out of. */
  readonly signOutUrl: string | null;
}

/**
 * Why a turn waits. `behind`: another turn of its conversation is first. `paused`: an operator paused claims. `no-server`: no server that
 * starts sandboxes is there. `sandbox-cannot-start`: starts failed. `no-slot`, `no-sandbox`: there is none yet. `starting`: nothing is missing.
 */
export const WAIT_REASONS = ['behind', 'paused', 'no-server', 'sandbox-cannot-start', 'no-slot', 'no-sandbox', 'starting'] as const;
export type WaitReason = (typeof WAIT_REASONS)[number];

/** Rules by which a turn is stuck; src/ops/stuck.ts has them with their bounds. */
export const STUCK_RULES = [
  'QUEUED_NO_SERVER',
  'QUEUED_NO_SLOT_LONG',
  'QUEUED_SANDBOX_FAILING',
  'QUEUED_NO_SANDBOX_LONG',
  'QUEUED_UNCLAIMED_LONG',
  'RUNNING_LEASE_EXPIRED',
  'RUNNING_HOST_DEAD',
  'STOPPING_LONG',
  'CALLS_OPEN_OF_DEAD_HOST',
] as const;
export type StuckRule = (typeof STUCK_RULES)[number];

export interface StuckView {
  readonly rule: StuckRule;
  /** What is so, and what to do. */
  readonly text: string;
}

export interface OperatorTurn {
  readonly id: string;
  readonly conversationId: string;
  readonly workspace: string;
  readonly surface: Surface;
  readonly status: TurnStatus;
  /** `stopping`: stopped, and its loop may still end it. */
  readonly phase: 'queued' | 'running' | 'stopping' | 'ended';
  readonly attempt: number;
  readonly epoch: number;
  readonly createdAt: string;
  readonly startedAt: string | null;
  readonly endedAt: string | null;
  /** Since the question, milliseconds. */
  readonly ageMs: number;
  readonly waiting: { readonly why: WaitReason /** A turn. */; readonly behind: string | null } | null;
  /** Left, milliseconds; negative: over for so long. null: no attempt runs. */
  readonly leaseMs: number | null;
  readonly deadlineMs: number | null;
  /** The server whose sandbox has it. */
  readonly host: { readonly id: string; readonly name: string; readonly alive: boolean } | null;
  /** The code that its person sees. */
  readonly error: string | null;
  readonly stuck: readonly StuckView[];
}

export const TURN_STATES = ['open', 'queued', 'running', 'stuck', 'ended'] as const;
export const OPERATOR_PAGE = { defaultRows: 50, maxRows: 200 } as const;
export const limitSchema = z.coerce.number().int().min(1).max(OPERATOR_PAGE.maxRows).default(OPERATOR_PAGE.defaultRows);

/** Which turns; each member that is absent: all. */
export const turnFilterSchema = z.strictObject({
  state: z.enum(TURN_STATES).default('open'),
  workspace: slugSchema.optional(),
  surface: surfaceSchema.optional(),
  conversation: idSchema.optional(),
  /** Why they wait. */
  why: z.enum(WAIT_REASONS).optional(),
  /** By which rule they are stuck. */
  rule: z.enum(STUCK_RULES).optional(),
});
export type TurnFilterInput = z.infer<typeof turnFilterSchema>;

export const turnsQuerySchema = turnFilterSchema.extend({
  limit: limitSchema,
  /** By age. Stuck turns are always oldest first. */
  sort: z.enum(['newest', 'oldest']).default('newest'),
  /** The last turn of the page before. */
  before: idSchema.optional(),
});
export type TurnsQuery = z.infer<typeof turnsQuerySchema>;
export const actionsQuerySchema = z.strictObject({ limit: limitSchema, before: idSchema.optional() });

export interface OperatorTurns {
  /** Newest first; `stuck` oldest first. */
  readonly turns: readonly OperatorTurn[];
  /** For the next page; null: this is the last. */
  readonly nextBefore: string | null;
}

export interface TimelineEvent {
  readonly at: string;
  /** `asked`, `claimed`, `attempt`, `call`, `entry`, `sandbox`, `action` (of an operator), `ended`. */
  readonly what: string;
  /** Codes, counts and sizes; of an action its reason. */
  readonly detail: string;
  /** Of an `entry`: its id, to reveal it by. */
  readonly entryId?: string;
}

export interface OperatorTurnPage {
  readonly turn: OperatorTurn;
  /** Oldest first. */
  readonly timeline: readonly TimelineEvent[];
}

interface Counted {
  readonly name: string;
  readonly count: number;
}

export interface ServerView {
  readonly id: string;
  readonly name: string;
  readonly build: string | null;
  readonly state: 'up' | 'draining' | 'suspected' | 'ended';
  readonly startedAt: string;
  readonly sandboxes: number;
  readonly sandboxesMax: number;
  readonly running: number;
  /** It answers this request. */
  readonly self: boolean;
}

export interface Overview {
  readonly slots: { readonly limit: number; readonly held: number; readonly free: number; readonly retiring: number };
  readonly turns: { readonly running: number; readonly stopping: number; readonly queued: number; readonly oldestWaitingMs: number | null };
  /** By rule, of the oldest open turns; `lookedAt` turns were judged, and there may be more when `complete` is false. */
  readonly stuck: { readonly byRule: readonly Counted[]; readonly lookedAt: number; readonly complete: boolean };
  /** What is to be said and is not yet; `uncertain`: nobody knows whether it was. */
  readonly outbox: { readonly pending: number; readonly uncertain: number; readonly oldestMs: number | null };
  /** Of the last hour. */
  readonly failures: readonly Counted[];
  readonly modelCalls: readonly Counted[];
  readonly sandboxes: readonly Counted[];
  readonly servers: readonly ServerView[];
  readonly pauses: readonly {
    /** Both null: the installation. */
    readonly workspace: string | null;
    readonly surface: Surface | null;
    readonly reason: string;
    readonly operator: string;
    readonly pausedAt: string;
  }[];
}

/** Actions on one turn. */
export const TURN_ACTIONS = ['stop', 'requeue', 'skip', 'release'] as const;
export type TurnAction = (typeof TURN_ACTIONS)[number];
export const ACTIONS = [
  ...TURN_ACTIONS,
  ...(['pause-claims', 'resume-claims', 'drain', 'outbox-sent', 'outbox-again', 'reveal-entry', 'set-operator'] as const),
] as const;
export type OperatorActionName = (typeof ACTIONS)[number];

export const REASON_MAX_CHARS = 500;
export const reasonSchema = z.string().trim().min(1, 'say why').max(REASON_MAX_CHARS);
export const keySchema = z.string().min(1).max(128);

/** Body of an action. A preview needs neither reason nor key. */
export const actionInputSchema = z.strictObject({
  reason: reasonSchema,
  idempotencyKey: keySchema,
  /** Of pause and resume: a workspace's slug, or a surface, not both; neither: the installation. */
  workspace: z.string().min(1).max(63).nullable().optional(),
  surface: surfaceSchema.nullable().optional(),
});
export const previewInputSchema = actionInputSchema.partial();

type Note = Readonly<Record<string, string | number | boolean | null>>;

export interface ActionPreview {
  readonly action: OperatorActionName;
  readonly target: string;
  /** False: it would be refused now, and `effect` says why. */
  readonly allowed: boolean;
  /** What it does, a sentence. */
  readonly effect: string;
  readonly before: Note;
}

export interface OperatorActionView {
  readonly id: string;
  readonly action: OperatorActionName;
  readonly target: string;
  readonly operator: string;
  readonly reason: string;
  /** `BEGUN`: it was cut off; a repeat with its key takes it up again. */
  readonly state: 'BEGUN' | 'DONE';
  readonly before: Note;
  readonly after: Note | null;
  readonly at: string;
  /** The batch that it belongs to. */
  readonly batchId: string | null;
}

/** `repeated`: this key was used before; nothing was done again. */
export type ActionResult = OperatorActionView & { readonly repeated: boolean };
