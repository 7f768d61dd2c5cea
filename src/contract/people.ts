/**
 * Owns: the wire of people: the admin API for workspaces and members (the command line speaks it), and `GET /auth/me`.
 */
import { z } from 'zod';
import { idSchema } from './common.ts';

export const slugSchema = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'must be 1 to 63 of a-z, 0-9 and -, beginning with a letter or digit');

/** What a member may do, the least first. */
export const roleSchema = z.enum(['member', 'admin', 'operator']);
export type Role = z.infer<typeof roleSchema>;

const shownNameSchema = z.string().trim().min(1).max(200);

export const workspaceInputSchema = z.strictObject({ slug: slugSchema, name: shownNameSchema });
export type WorkspaceInput = z.infer<typeof workspaceInputSchema>;

export interface WorkspaceView {
  readonly slug: string;
  readonly name: string;
  /** Active ones, invited ones included. */
  readonly members: number;
}

export const memberInputSchema = z.strictObject({
  workspace: slugSchema,
  email: z.string().min(3).max(254),
  role: roleSchema.default('member'),
  name: shownNameSchema.optional(),
});
export type MemberInput = z.infer<typeof memberInputSchema>;

export const memberChangeSchema = z.strictObject({
  workspace: slugSchema,
  /** An email, or the id of an account. */
  member: z.string().min(3).max(254),
  /** null: removed. */
  role: roleSchema.nullable(),
});
export type MemberChange = z.infer<typeof memberChangeSchema>;

export interface MemberView {
  readonly workspace: string;
  /** Id of the account. */
  readonly account: string;
  /** null: the account is known by none. */
  readonly email: string | null;
  readonly name: string;
  readonly role: Role;
  /** `invited`: nobody has signed in to the account yet. */
  readonly state: 'active' | 'invited' | 'removed';
  /** Whether an AI model may work for them there. */
  readonly ai: 'on' | 'off';
}

/** `GET /auth/me`: who is signed in, and where. */
export const meSchema = z.object({
  account: z.object({ id: idSchema, displayName: z.string(), timeZone: z.string() }),
  workspaces: z.array(z.object({ slug: z.string(), name: z.string(), role: roleSchema })),
  /** Where a POST signs out; null where nobody signs in. */
  signOutUrl: z.string().nullable(),
});
export type Me = z.infer<typeof meSchema>;

/** `POST /auth/logout`: where the browser can go to sign out at the issuer, too. */
export const signOutSchema = z.object({ issuerSignOutUrl: z.string().nullable() });
export type SignOut = z.infer<typeof signOutSchema>;

/**
 * Why a sign-in ended without a session: it took too long, was used already or began in another browser; the person said no; the issuer sent
 * something that is not valid; the issuer does not answer; the account is being erased.
 */
export type SignInRefusal = 'expired' | 'denied' | 'invalid' | 'unreachable' | 'erased';
