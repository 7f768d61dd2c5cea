/**
 * Owns: reading a request or an answer in one piece, within a bound.
 */
import type { IncomingMessage } from 'node:http';

/** How much more than the bound is read and thrown away, so that a client gets the refusal instead of a broken connection. */
const DISCARD_FACTOR = 4;

export type BodyResult = { readonly kind: 'body'; readonly bytes: Buffer } | { readonly kind: 'too_large'; readonly read: boolean };

/** Reads a request. `too_large` with `read: false`: bytes of it are still on the way. Rejects when the client hangs up. */
export async function readRequest(req: IncomingMessage, maxBytes: number): Promise<BodyResult> {
  const discardMaxBytes = maxBytes * DISCARD_FACTOR;
  if (Number(req.headers['content-length'] ?? 0) > discardMaxBytes) return { kind: 'too_large', read: false };
  const chunks: Buffer[] = [];
  let total = 0;
  for await (const chunk of req.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    total += chunk.length;
    if (total <= maxBytes) chunks.push(chunk);
    else chunks.length = 0;
    if (total > discardMaxBytes) return { kind: 'too_large', read: false };
  }
  return total <= maxBytes ? { kind: 'body', bytes: Buffer.concat(chunks) } : { kind: 'too_large', read: true };
}

/** Reads an answer; null when it is larger than `maxBytes`. `onChunk` hears how many pieces have arrived. */
export async function readWhole(
  body: AsyncIterable<Uint8Array>,
  maxBytes: number,
  onChunk: (chunks: number) => void,
): Promise<Buffer | null> {
  const chunks: Uint8Array[] = [];
  let total = 0;
  for await (const chunk of body) {
    total += chunk.length;
    if (total > maxBytes) return null;
    chunks.push(chunk);
    onChunk(chunks.length);
  }
  return Buffer.concat(chunks);
}
