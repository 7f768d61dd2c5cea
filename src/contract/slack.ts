/**
 * Owns: the admin wire of the operations listener for Slack and the outbox. The command line speaks it.
 */
import { z } from 'zod';

const slugSchema = z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'must be the slug of a workspace');
export const teamSchema = z.string().regex(/^[A-Z0-9]{1,30}$/, 'must be the id of a Slack team, such as T0123ABCD');

export const slackConnectSchema = z.strictObject({
  team: teamSchema,
  workspace: slugSchema,
  /** The bot token of the app in that team. */
  token: z.string().min(10).max(500),
});
export type SlackConnectInput = z.infer<typeof slackConnectSchema>;

export const slackDisconnectSchema = z.strictObject({ team: teamSchema });

export const outboxDecisionSchema = z.strictObject({ decision: z.enum(['sent', 'again']) });
export type OutboxDecision = z.infer<typeof outboxDecisionSchema>['decision'];

export const OUTBOX_STATES = ['PENDING', 'SENDING', 'SENT', 'RETRY', 'UNCERTAIN', 'PARKED', 'DEAD'] as const;
export const outboxStateSchema = z.enum(OUTBOX_STATES);

export interface SlackConnectionView {
  readonly team: string;
  readonly workspace: string;
  /** ENDING: what was written through it is being erased. */
  readonly state: 'ACTIVE' | 'ENDING';
  readonly why: string | null;
  readonly connectedAt: string;
}

/** One thing that Slack needs. */
export interface SlackCheckView {
  readonly what: string;
  readonly ok: string;
  /** What to do about it. */
  readonly next: string;
}

export interface OutboxActionView {
  readonly id: string;
  readonly state: string;
  /** Why it is in this state: a code, never words of a person. */
  readonly reason: string | null;
  readonly workspace: string;
  readonly team: string;
  readonly channel: string;
  readonly turn: string | null;
  readonly attempts: number;
  readonly createdAt: string;
}
