/**
 * Owns: what an idle conversation actor costs in memory: actors of real conversations are activated from their rows, and the heap after a
 * full collection is compared with the heap before. Started with --expose-gc.
 */
import { activate, conversationActors, openBenchDatabase } from './support/activation.ts';
import { serveParent } from './support/parent.ts';

interface Wanted {
  readonly url: string;
  readonly ids: readonly string[];
}

const AT_ONCE = 8;
/** Actors of the first round: code, pool and caches are there before the heap is looked at. */
const WARM_UP = 200;

function liveBytes(): number {
  for (let nth = 0; nth < 3; nth++) globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

async function activateAll(actors: ReturnType<typeof conversationActors>, ids: readonly string[]): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    // A server gets each id in a string of its own; ours would be counted to nobody.
    while (next < ids.length) await activate(actors, Buffer.from(ids[next++] ?? '').toString());
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
}

/** Bytes per actor. */
async function measure({ url, ids }: Wanted): Promise<number> {
  const db = await openBenchDatabase(url);
  const actors = conversationActors(db, ids.length);
  await activateAll(actors, ids.slice(0, WARM_UP));
  const before = liveBytes();
  const measured = ids.slice(WARM_UP);
  await activateAll(actors, measured);
  const bytes = liveBytes() - before;
  if (actors.size !== ids.length) throw new Error(`${actors.size} of ${ids.length} actors are in memory`);
  await actors.close();
  await db.close();
  return bytes / measured.length;
}

const commands = { measure };
export type ActorMemoryCommands = typeof commands;

serveParent(commands, null);
