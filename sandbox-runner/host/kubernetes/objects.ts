/**
 * Owns: the objects of kubernetes-sigs/agent-sandbox as we read and write them: SandboxClaim (extensions.agents.x-k8s.io/v1beta1) and
 * Sandbox (agents.x-k8s.io/v1beta1), and the labels by which we know our own.
 * A claim names no environment and no volume: each forces a cold start. Labels hold ids only, never a name or a word of a person.
 * SandboxTemplate and SandboxWarmPool belong to the operator (deploy/): nothing of ours writes them.
 */
import { z } from 'zod';
import type { ConversationId, SandboxId } from '../../../src/kernel/ids.ts';

export const CLAIMS = { group: 'extensions.agents.x-k8s.io', version: 'v1beta1', plural: 'sandboxclaims' } as const;
export const SANDBOXES = { group: 'agents.x-k8s.io', version: 'v1beta1', plural: 'sandboxes' } as const;

export const LABELS = {
  installation: 'heph/installation',
  sandbox: 'heph/sandbox',
  conversation: 'heph/conversation',
  /** Its row has ended and its pod is gone; its conversation may get it back. */
  resting: 'heph/resting',
} as const;
/** The addresses of the pod that has taken the credential. */
const HANDED_TO = 'heph/handed-to';
/** The controller's: the pod's name, where it is not the sandbox's. */
const POD_NAME = 'agents.x-k8s.io/pod-name';

const metadata = z.object({
  name: z.string(),
  uid: z.string(),
  resourceVersion: z.string(),
  labels: z.record(z.string(), z.string()).optional(),
  annotations: z.record(z.string(), z.string()).optional(),
  deletionTimestamp: z.string().optional(),
});
const condition = z.object({ type: z.string(), status: z.string(), reason: z.string().optional() });

/** What we read of a claim. The cluster's version may say more. */
export const claimSchema = z.object({
  metadata,
  spec: z.object({ lifecycle: z.object({ shutdownTime: z.string().optional() }).optional() }),
  status: z
    .object({
      conditions: z.array(condition).optional(),
      sandbox: z.object({ name: z.string().optional(), podIPs: z.array(z.string()).optional() }).optional(),
    })
    .optional(),
});
export type Claim = z.infer<typeof claimSchema>;

export const claimListSchema = z.object({ metadata: z.object({ resourceVersion: z.string() }), items: z.array(claimSchema) });
export const sandboxSchema = z.object({ metadata, spec: z.object({ operatingMode: z.string().optional() }) });
export type SandboxObject = z.infer<typeof sandboxSchema>;

export interface Ownership {
  readonly installation: string;
  readonly sandboxId: SandboxId;
  readonly conversationId: ConversationId;
}

/** Deterministic, so that a create whose answer was lost is repeated without making a second one. */
export function claimName(sandboxId: SandboxId): string {
  return `heph-${sandboxId}`;
}

/** A claim for one conversation's sandbox; the cluster deletes it, with its pod, at `shutdownAt` unless that is moved. */
export function newClaim(owner: Ownership, warmPool: string, shutdownAt: Date): object {
  return {
    apiVersion: `${CLAIMS.group}/${CLAIMS.version}`,
    kind: 'SandboxClaim',
    metadata: {
      name: claimName(owner.sandboxId),
      labels: {
        [LABELS.installation]: owner.installation,
        [LABELS.sandbox]: owner.sandboxId,
        [LABELS.conversation]: owner.conversationId,
      },
    },
    spec: { warmPoolRef: { name: warmPool }, ...lifecycle(shutdownAt) },
  };
}

function lifecycle(shutdownAt: Date): object {
  return { lifecycle: { shutdownTime: shutdownAt.toISOString(), shutdownPolicy: 'Delete' } };
}

/** Merge patches of a claim. `at` the version that was read: the patch fails when somebody wrote in between. */
export const patches = {
  renewed: (shutdownAt: Date) => ({ spec: lifecycle(shutdownAt) }),
  handedTo: (addresses: string) => ({ metadata: { annotations: { [HANDED_TO]: addresses } } }),
  resting: (shutdownAt: Date) => ({
    metadata: { labels: { [LABELS.resting]: 'true' }, annotations: { [HANDED_TO]: null } },
    spec: lifecycle(shutdownAt),
  }),
  takenUp: (at: Claim, sandboxId: SandboxId, shutdownAt: Date) => ({
    metadata: {
      resourceVersion: at.metadata.resourceVersion,
      labels: { [LABELS.resting]: null, [LABELS.sandbox]: sandboxId },
    },
    spec: lifecycle(shutdownAt),
  }),
};

export function sandboxIdOf(claim: Claim): SandboxId | null {
  return (claim.metadata.labels?.[LABELS.sandbox] as SandboxId | undefined) ?? null;
}

export function belongsTo(claim: Claim, owner: Ownership): boolean {
  const { labels = {} } = claim.metadata;
  return labels[LABELS.installation] === owner.installation && labels[LABELS.sandbox] === owner.sandboxId;
}

export function isResting(claim: Claim): boolean {
  return claim.metadata.labels?.[LABELS.resting] === 'true';
}

/** Its pod is ready and has an address. */
export function isReady(claim: Claim): boolean {
  return hasCondition(claim, 'Ready') && addressesOf(claim) !== null && claim.status?.sandbox?.name !== undefined && !isGoing(claim);
}

export function isGoing(claim: Claim): boolean {
  return claim.metadata.deletionTimestamp !== undefined;
}

/** Why it is not ready yet, in the controller's words for programs; null when it does not say. */
export function reasonOf(claim: Claim): string | null {
  return claim.status?.conditions?.find(({ type }) => type === 'Ready')?.reason ?? null;
}

export function handedTo(claim: Claim): string | null {
  return claim.metadata.annotations?.[HANDED_TO] ?? null;
}

export function addressesOf(claim: Claim): string | null {
  const addresses = claim.status?.sandbox?.podIPs ?? [];
  return addresses.length === 0 ? null : addresses.join(',');
}

/**
 * The pod that was given the credential is no more: it ended, it is being deleted, or another stands in its place, which has no credential.
 * A pod that is not ready for a moment is left alone: the lease of what it does decides.
 */
export function isLost(claim: Claim, handed: string): boolean {
  if (isGoing(claim) || hasCondition(claim, 'Finished')) return true;
  const now = addressesOf(claim);
  return now === null ? !hasCondition(claim, 'Ready') : now !== handed;
}

export function podNameOf(sandbox: SandboxObject): string {
  return sandbox.metadata.annotations?.[POD_NAME] ?? sandbox.metadata.name;
}

/** When the cluster ends it, milliseconds since the Unix epoch. */
export function shutdownMsOf(claim: Claim): number {
  return Date.parse(claim.spec.lifecycle?.shutdownTime ?? '') || 0;
}

function hasCondition(claim: Claim, wanted: string): boolean {
  return claim.status?.conditions?.some(({ type, status }) => type === wanted && status === 'True') ?? false;
}
