/**
 * Owns: from a sandbox's row to a pod that has its credential: take the claim that rests for the conversation, or make one; wait until its
 * pod is ready; hand the credential over by exec; write on the claim which pod has it.
 * Does not own: what becomes of it afterwards (host.ts).
 * A repeat of any step changes nothing: the claim's name is the sandbox's, and a pod takes the same assignment twice.
 */
import { z } from 'zod';
import type { RunnerAssignment } from '../../../src/contract/agent.ts';
import type { Clock } from '../../../src/kernel/clock.ts';
import { WORKSPACE_DIR } from '../../config.ts';
import type { ClaimBook } from './claim-book.ts';
import type { Cluster } from './cluster.ts';
import { ClusterFault, persistently, toClusterFault } from './faults.ts';
import {
  addressesOf,
  belongsTo,
  type Claim,
  claimName,
  isGoing,
  isReady,
  isResting,
  LABELS,
  newClaim,
  type Ownership,
  patches,
  podNameOf,
} from './objects.ts';

/** The container of the template, and what is run in it; its working folder is the project. */
export const POD = {
  container: 'runner',
  socket: '/run/heph/assignment.sock',
  command: ['node', 'sandbox-runner/assign.ts', '/run/heph/assignment.sock'],
} as const;

const answerSchema = z.object({ accepted: z.boolean() });

export interface BringUpDeps {
  readonly cluster: Cluster;
  readonly book: ClaimBook;
  readonly clock: Clock;
  readonly warmPool: string;
  /** Where a pod reaches the agent listener. */
  readonly gateway: string;
  /** When the cluster ends a sandbox that nobody renews. */
  readonly shutdownAt: () => Date;
}

export interface BringUpRequest extends Ownership {
  readonly credential: string;
}

/** Resolves with the claim whose pod has the credential. Rejects with a ClusterFault: `signal` says how long it may take. */
export async function bringUp(deps: BringUpDeps, request: BringUpRequest, signal: AbortSignal): Promise<Claim> {
  const resumed = await resume(deps, request);
  if (resumed !== null) {
    try {
      return await handOver(deps, request, { claim: resumed, signal });
    } catch (error) {
      // Its old pod is still there, or it does not come back: a new one does not have to wait for it.
      await deps.cluster.deleteClaim(resumed).catch(() => undefined);
      if (signal.aborted) throw error;
    }
  }
  return handOver(deps, request, { claim: await make(deps, request, signal), signal });
}

async function make({ cluster, book, clock, warmPool, shutdownAt }: BringUpDeps, owner: Ownership, signal: AbortSignal): Promise<Claim> {
  const name = claimName(owner.sandboxId);
  const create = async (): Promise<Claim> => {
    try {
      return await cluster.createClaim(newClaim(owner, warmPool, shutdownAt()));
    } catch (error) {
      if (toClusterFault(error).kind !== 'taken') throw error;
      // The answer to an earlier try was lost: it is ours when its labels say so.
      const there = await cluster.getClaim(name);
      if (!belongsTo(there, owner)) throw error;
      return there;
    }
  };
  const claim = await persistently(create, { clock, signal });
  book.note(claim);
  return claim;
}

/** The claim that rests for this conversation, awake again; null when there is none, or somebody else was faster. */
async function resume({ cluster, book, shutdownAt }: BringUpDeps, owner: Ownership): Promise<Claim | null> {
  const known = book.claims.find((claim) => isResting(claim) && claim.metadata.labels?.[LABELS.conversation] === owner.conversationId);
  if (known === undefined) return null;
  try {
    const resting = await cluster.getClaim(known.metadata.name);
    const sandbox = resting.status?.sandbox?.name;
    // One whose old pod is still there would be asked to take a second credential.
    if (sandbox === undefined || !isResting(resting) || isGoing(resting) || isReady(resting)) return null;
    const claim = await cluster.patchClaim(resting.metadata.name, patches.takenUp(resting, owner.sandboxId, shutdownAt()));
    book.note(claim);
    await cluster.setOperatingMode(sandbox, 'Running');
    return claim;
  } catch {
    return null;
  }
}

async function handOver(deps: BringUpDeps, request: BringUpRequest, at: { claim: Claim; signal: AbortSignal }): Promise<Claim> {
  const { cluster, book, clock, gateway } = deps;
  const { name } = at.claim.metadata;
  const ready = await book.until(name, isReady, at.signal);
  const assignment: RunnerAssignment = {
    ...{ gateway, credential: request.credential, conversationId: request.conversationId },
    ...{ bash: true, workDir: WORKSPACE_DIR },
  };
  const give = async (): Promise<string> => {
    const sandbox = await cluster.getSandbox(ready.status?.sandbox?.name ?? name);
    const run = { pod: podNameOf(sandbox), container: POD.container, command: POD.command, input: JSON.stringify(assignment) };
    return cluster.exec(run);
  };
  const answer = await persistently(give, { clock, signal: at.signal });
  if (!accepted(answer)) throw new ClusterFault('refused');
  const note = () => cluster.patchClaim(name, patches.handedTo(addressesOf(ready) ?? ''));
  const noted = await persistently(note, { clock, signal: at.signal });
  book.note(noted);
  return noted;
}

function accepted(answer: string): boolean {
  try {
    return answerSchema.parse(JSON.parse(answer)).accepted;
  } catch {
    return false;
  }
}
