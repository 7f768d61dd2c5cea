/**
 * Owns: the admin wire of the operations listener for repositories. The command line speaks it.
 */
import { z } from 'zod';

const slugSchema = z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'must be the slug of a workspace');
const nameSchema = z
  .string()
  .regex(/^[a-z0-9][a-z0-9._-]{0,62}$/, 'must be 1 to 63 of a-z, 0-9, -, _ and ., beginning with a letter or digit');

export const repositoryInputSchema = z.strictObject({
  cloneUrl: z.string().min(1).max(2_000),
  /** null: from the last part of the URL. */
  name: nameSchema.nullable(),
  /** null: the only workspace. */
  workspace: slugSchema.nullable(),
  /** The default branch; null: the remote's own. */
  branch: z.string().min(1).max(200).nullable(),
});
export type RepositoryInput = z.infer<typeof repositoryInputSchema>;

export interface RepositoryView {
  readonly workspace: string;
  readonly name: string;
  readonly cloneUrl: string;
  readonly branch: string | null;
  /** Requests that are known. */
  readonly requests: number;
  /** When the remote answered last. */
  readonly seenAt: string | null;
}
