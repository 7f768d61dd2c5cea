/**
 * Owns: the admin wire of the operations listener for Slack. The command line speaks it.
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

export const OUTBOX_STATES = ['PENDING', 'SENDING', 'SENT', 'RETRY', 'UNCERTAIN', 'PARKED', 'DEAD'] as const;

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
