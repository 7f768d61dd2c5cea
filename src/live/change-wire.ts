/**
 * Owns: changes as payloads of NOTIFY: many to a payload, a large one cut into several, each below the limit in bytes.
 */
import { z } from 'zod';
import { fits, type Message } from '../../db/live/payloads.ts';
import { type Change, changeSchema } from '../contract/changes.ts';

export const CHANGE_CHANNEL = 'heph_change';

const letterSchema = z.object({ server: z.string(), changes: z.array(changeSchema) });

/** Ids in one piece of a change that is too large for a payload: 150 quoted ids are about 5,900 bytes. */
const IDS_PER_PIECE = 150;

/** One change for both, or null when there is a hole between them: a hole must stay visible. */
export function mergeChanges(first: Change, second: Change): Change | null {
  const [a, b] = [sinceOf(first), sinceOf(second)];
  if (b > first.version || a > second.version) return null;
  const union = (x: readonly string[], y: readonly string[]) => [...new Set([...x, ...y])];
  const read = first.read || second.read;
  const slots = first.slots || second.slots;
  return {
    workspaceId: first.workspaceId,
    conversationId: first.conversationId,
    accountId: first.accountId,
    version: Math.max(first.version, second.version),
    since: Math.min(a, b),
    turnIds: union(first.turnIds, second.turnIds),
    entryIds: union(first.entryIds, second.entryIds),
    sealedRunIds: union(first.sealedRunIds, second.sealedRunIds),
    ...(read ? { read } : {}),
    ...(slots ? { slots } : {}),
  };
}

/** The version before the change. */
export function sinceOf(change: Change): number {
  return change.since ?? change.version - 1;
}

/** As few payloads as possible, none longer than PostgreSQL takes. */
export function packChanges(server: string, changes: readonly Change[]): readonly Message[] {
  const letters: string[] = [];
  let letter: Change[] = [];
  const seal = (pieces: readonly Change[]) => JSON.stringify({ server, changes: pieces });
  for (const piece of changes.flatMap((change) => (fits(seal([change])) ? [change] : cutChange(change)))) {
    if (letter.length > 0 && !fits(seal([...letter, piece]))) {
      letters.push(seal(letter));
      letter = [];
    }
    letter.push(piece);
  }
  if (letter.length > 0) letters.push(seal(letter));
  return letters.map((payload) => ({ channel: CHANGE_CHANNEL, payload }));
}

/** Pieces that tell the same together. Each names the whole step, so that the first to arrive leaves no hole. */
function cutChange(change: Change): readonly Change[] {
  const pieces: Change[] = [];
  const ids = (['turnIds', 'entryIds', 'sealedRunIds'] as const).flatMap((list) => change[list].map((id) => ({ list, id })));
  for (let at = 0; at < ids.length; at += IDS_PER_PIECE) {
    const piece: Change = { ...change, turnIds: [], entryIds: [], sealedRunIds: [] };
    for (const { list, id } of ids.slice(at, at + IDS_PER_PIECE)) piece[list].push(id);
    pieces.push(piece);
  }
  return pieces;
}

/** What another server wrote; null when it is our own echo or cannot be read. */
export function unpackChanges(payload: string, ownServer: string): readonly Change[] | null {
  // PostgreSQL sends our words back to us too: most of what one server hears.
  if (payload.startsWith(`{"server":${JSON.stringify(ownServer)},`)) return null;
  const letter = letterSchema.safeParse(parse(payload));
  return letter.success && letter.data.server !== ownServer ? letter.data.changes : null;
}

/** The value of a JSON text; undefined when it is none. */
export function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
