/**
 * Owns: how a runner in a pod gets its one assignment: a unix socket in the pod, to which the server's `exec` of assign.ts brings a line.
 * The runner has nothing before it, and nobody else is in the pod. Afterwards only the very same assignment is confirmed (the answer to
 * the first may have been lost): a pod serves one conversation with one credential.
 * Does not own: standard input, by which a runner of the local host is told (protocol.ts, driver.ts).
 */
import { timingSafeEqual } from 'node:crypto';
import { rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { type RunnerAssignment, runnerAssignmentSchema } from '../src/contract/agent.ts';
import { readLines } from './protocol.ts';

/** Somebody who connects and says nothing is hung up on, milliseconds. */
const SAYS_MAX_MS = 10_000;

/**
 * Listens, and resolves with the first assignment; the door stays open to confirm it, until `closed` aborts (a runner never closes it).
 * Rejects when the socket cannot be made.
 */
export function awaitAssignment(socketPath: string, closed?: AbortSignal): Promise<RunnerAssignment> {
  const assigned = Promise.withResolvers<RunnerAssignment>();
  let taken: Buffer | null = null;

  /** True when this runner is the one of that assignment. */
  const take = (line: string): boolean => {
    const bytes = Buffer.from(line);
    if (taken !== null) return taken.length === bytes.length && timingSafeEqual(taken, bytes);
    const assignment = runnerAssignmentSchema.parse(JSON.parse(line));
    taken = bytes;
    assigned.resolve(assignment);
    return true;
  };
  const serve = async (socket: Socket): Promise<void> => {
    socket.on('error', () => undefined);
    socket.setTimeout(SAYS_MAX_MS, () => socket.destroy());
    let accepted = false;
    try {
      const said = await readLines(socket).next();
      accepted = said.done !== true && take(said.value);
    } catch {
      // Not an assignment: it is refused like another's.
    }
    socket.end(`${JSON.stringify({ accepted })}\n`);
  };

  const server = createServer({ allowHalfOpen: true }, (socket) => void serve(socket));
  server.on('error', assigned.reject);
  rmSync(socketPath, { force: true }); // of a process before this one in the same pod
  const before = process.umask(0o177);
  server.listen({ path: socketPath, ...(closed ? { signal: closed } : {}) });
  process.umask(before);
  return assigned.promise;
}
