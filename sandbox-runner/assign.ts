/**
 * Owns: the program that the server runs in a pod: it brings one line of its standard input to the runner's socket (its argument), prints the
 * runner's answer, and goes. A runner that is still starting is waited for.
 */
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { readLines } from './protocol.ts';

const STARTS_MAX_MS = 10_000;
const LOOK_AGAIN_MS = 50;

/** The runner's answer to `line`; null when there is no runner that answers. */
export async function bring(socketPath: string, line: string): Promise<string | null> {
  for (const untilMs = performance.now() + STARTS_MAX_MS; performance.now() < untilMs; await sleep(LOOK_AGAIN_MS)) {
    const socket = connect(socketPath);
    try {
      await once(socket, 'connect');
      socket.write(`${line}\n`);
      const answer = await readLines(socket).next();
      if (answer.done !== true) return answer.value;
    } catch {
      // Not there yet, or gone in the middle.
    } finally {
      socket.destroy();
    }
  }
  return null;
}

if (import.meta.main) {
  const said = await readLines(process.stdin).next();
  const answer = said.done === true ? null : await bring(process.argv[2] ?? '', said.value);
  if (answer !== null) process.stdout.write(`${answer}\n`);
  // What is left on standard input does not keep this program.
  process.exit(answer === null ? 1 : 0);
}
