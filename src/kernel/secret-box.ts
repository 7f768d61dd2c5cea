/**
 * Owns: sealing secrets for the database: AES-256-GCM under HEPH_SECRET_KEY, bound to the row that they belong to.
 * Two keys make a rotation: the new one seals, either opens. A sealed secret names its key, so that a wrong key is told from a broken row.
 * Layout: version (1 byte), key name (8), nonce (12), tag (16), ciphertext.
 */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';

const VERSION = 1;
export const SECRET_KEY_BYTES = 32;
const [NAME_BYTES, NONCE_BYTES, TAG_BYTES] = [8, 12, 16];
const HEAD_BYTES = 1 + NAME_BYTES + NONCE_BYTES + TAG_BYTES;

/** Its message is a sentence for an operator and holds no secret. */
export class SecretError extends Error {
  override readonly name = 'SecretError';
}

interface NamedKey {
  readonly name: Buffer;
  readonly key: Buffer;
}

function named(key: Buffer): NamedKey {
  return { key, name: createHash('sha256').update('heph key name').update(key).digest().subarray(0, NAME_BYTES) };
}

export class SecretBox {
  readonly #current: NamedKey | null;
  readonly #keys: readonly NamedKey[];

  /** `current` seals and opens, `old` only opens; null where none is configured. Keys have 32 bytes. */
  constructor({ current, old }: { readonly current: Buffer | null; readonly old: Buffer | null }) {
    this.#current = current && named(current);
    this.#keys = [current, old].flatMap((key) => (key ? [named(key)] : []));
  }

  get canSeal(): boolean {
    return this.#current !== null;
  }

  /** `owner` is the id of the row: a secret that is copied to another row does not open there. Throws a SecretError without a key. */
  seal(secret: string, owner: string): Buffer {
    if (!this.#current) {
      throw new SecretError(
        `A key can only be stored when HEPH_SECRET_KEY is set (${SECRET_KEY_BYTES} random bytes in Base64). Set it and restart every server.`,
      );
    }
    const nonce = randomBytes(NONCE_BYTES);
    const head = Buffer.concat([Buffer.of(VERSION), this.#current.name, nonce]);
    const cipher = createCipheriv('aes-256-gcm', this.#current.key, nonce, { authTagLength: TAG_BYTES });
    cipher.setAAD(Buffer.concat([head, Buffer.from(owner)]));
    const text = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()]);
    return Buffer.concat([head, cipher.getAuthTag(), text]);
  }

  /** Throws a SecretError when the key is not here, or the bytes are not what was sealed for this owner. */
  open(sealed: Buffer, owner: string): string {
    const head = sealed.subarray(0, 1 + NAME_BYTES + NONCE_BYTES);
    const key = this.#keyOf(sealed);
    const decipher = createDecipheriv('aes-256-gcm', key, head.subarray(1 + NAME_BYTES), { authTagLength: TAG_BYTES });
    decipher.setAAD(Buffer.concat([head, Buffer.from(owner)]));
    decipher.setAuthTag(sealed.subarray(head.length, HEAD_BYTES));
    try {
      return Buffer.concat([decipher.update(sealed.subarray(HEAD_BYTES)), decipher.final()]).toString('utf8');
    } catch {
      throw new SecretError('A stored key was changed or copied from another row. Store it again.');
    }
  }

  /** True for a secret that an older key sealed: seal it again, then the old key may go. */
  isOld(sealed: Buffer): boolean {
    return this.#current !== null && !nameOf(sealed).equals(this.#current.name);
  }

  #keyOf(sealed: Buffer): Buffer {
    if (sealed.length < HEAD_BYTES || sealed[0] !== VERSION) throw new SecretError('A stored key is not readable. Store it again.');
    const found = this.#keys.find(({ name }) => name.equals(nameOf(sealed)));
    if (found) return found.key;
    throw new SecretError(
      'A stored key was sealed with another HEPH_SECRET_KEY. Set that one (or HEPH_SECRET_KEY_OLD to it) and restart, or store the key again.',
    );
  }
}

function nameOf(sealed: Buffer): Buffer {
  return sealed.subarray(1, 1 + NAME_BYTES);
}
