/**
 * Owns: identifiers. Every id in the ledger, on the wire and in Pi's session entries is a uuidv7, so ids sort by creation time.
 * Branded types keep a turn id from being passed where a conversation id is meant. Uses Web Crypto only: the browser imports this file too.
 */
declare const brand: unique symbol;
/** A string that is known to be an id of kind `K`. */
export type Id<K extends string> = string & { readonly [brand]: K };
export type WorkspaceId = Id<'workspace'>;
export type AccountId = Id<'account'>;
export type ConversationId = Id<'conversation'>;
export type EntryId = Id<'entry'>;
export type TurnId = Id<'turn'>;
export type RunId = Id<'run'>;
export type SandboxId = Id<'sandbox'>;
export type HostId = Id<'host'>;
export type CallId = Id<'call'>;

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

const pool = new Uint8Array(4096);
let poolAt = pool.length;
let lastMs = 0;
let sequence = 0;

function randomByte(): number {
  if (poolAt >= pool.length) {
    crypto.getRandomValues(pool);
    poolAt = 0;
  }
  return pool[poolAt++] as number;
}

/**
 * A new uuidv7 (RFC 9562): 48 bits of Unix milliseconds, then a 12-bit counter, then 62 random bits.
 * Ids of one process rise strictly, also within one millisecond and when the clock steps back.
 */
export function uuidv7<K extends string>(nowMs: number = Date.now()): Id<K> {
  if (nowMs > lastMs) {
    lastMs = nowMs;
    sequence = ((randomByte() << 8) | randomByte()) & 0x7ff;
  } else if (++sequence > 0xfff) {
    lastMs += 1;
    sequence = 0;
  }
  const time = lastMs.toString(16).padStart(12, '0');
  let tail = '';
  for (let i = 0; i < 8; i++) {
    const byte = i === 0 ? (randomByte() & 0x3f) | 0x80 : randomByte();
    tail += byte.toString(16).padStart(2, '0');
  }
  const rand = `7${sequence.toString(16).padStart(3, '0')}`;
  return `${time.slice(0, 8)}-${time.slice(8)}-${rand}-${tail.slice(0, 4)}-${tail.slice(4)}` as Id<K>;
}

/** True for a lower-case uuid of any version. Upper case is refused, so that one id has one spelling. */
export function isUuid(value: unknown): value is string {
  return typeof value === 'string' && UUID.test(value);
}

/** A secret of 256 random bits, URL-safe. Only its SHA-256 is ever stored. */
export function newSecret(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(32));
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');
}
