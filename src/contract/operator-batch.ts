/**
 * Owns: the wire of one action on many turns, of a revealed entry and of an operator's role, on the operations listener.
 */
import { z } from 'zod';
import { keySchema, OPS_ROLES, type OperatorActionView, type OpsRole, reasonSchema, TURN_ACTIONS, turnFilterSchema } from './operators.ts';

/** Turns of one batch at most. */
export const BATCH_MAX_TURNS = 500;

const batchShape = {
  action: z.enum(TURN_ACTIONS),
  filter: turnFilterSchema,
};
export const batchPreviewSchema = z.strictObject(batchShape);
/** `count`: how many turns the operator means. A batch of another size is refused. */
export const batchInputSchema = z.strictObject({
  ...batchShape,
  count: z.number().int().min(1).max(BATCH_MAX_TURNS),
  reason: reasonSchema,
  /** Shorter than that of one action: each turn has its own, made of it. */
  idempotencyKey: keySchema.max(80),
});
export type BatchPreviewInput = z.infer<typeof batchPreviewSchema>;
export type BatchInput = z.infer<typeof batchInputSchema>;

export interface BatchPreview {
  /** Turns that the filter has now; more than a batch may have when `tooMany`. */
  readonly count: number;
  readonly tooMany: boolean;
  /** Of these, the action would be done to so many now, and be refused for the others. */
  readonly allowed: number;
  readonly effects: readonly { readonly effect: string; readonly allowed: boolean; readonly count: number }[];
}

export interface BatchResult {
  /** null: nothing was done to any. */
  readonly batchId: string | null;
  /** This key was used before: what was left of that batch is done now. */
  readonly repeated: boolean;
  readonly results: readonly {
    readonly turn: string;
    /** `failed`: repeat the batch with its key. */
    readonly outcome: 'done' | 'refused' | 'failed';
    /** Why it was refused or failed, or what is so now. */
    readonly detail: string;
  }[];
}

export const revealInputSchema = z.strictObject({ reason: reasonSchema, idempotencyKey: keySchema });
export type RevealInput = z.infer<typeof revealInputSchema>;

export interface RevealedEntry {
  readonly entry: {
    readonly id: string;
    readonly conversationId: string;
    readonly turnId: string | null;
    readonly seq: number;
    readonly kind: string;
    readonly createdAt: string;
    /** What a person sees. */
    readonly text: string | null;
    /** As it is stored, JSON. */
    readonly payload: string | null;
    /** Longer than what is shown. */
    readonly cut: boolean;
  };
  /** The row in the log of actions. */
  readonly action: Pick<OperatorActionView, 'operator' | 'reason'> & { readonly repeated: boolean };
}

export const operatorInputSchema = z.strictObject({
  /** An email, or the id of an account. */
  member: z.string().min(3).max(254),
  /** null: taken back. */
  role: z.enum(OPS_ROLES).nullable(),
  reason: reasonSchema,
  idempotencyKey: keySchema,
});
export type OperatorInput = z.infer<typeof operatorInputSchema>;

export interface OperatorAccountView {
  readonly account: string;
  readonly email: string | null;
  readonly role: OpsRole;
  /** `membership`: by the role `operator` in a workspace. */
  readonly source: 'given' | 'membership';
  readonly by: string | null;
}
