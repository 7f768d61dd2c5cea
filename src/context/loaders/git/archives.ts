/**
 * Owns: finished archives on disk, so that the same commit is built once: least recently used goes first, and all of them when the server
 * needs the room. An archive that is being read stays readable after it went.
 */
import { mkdir, open, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { z } from 'zod';
import { uuidv7 } from '../../../kernel/ids.ts';

const factsSchema = z.object({ bytes: z.number(), sha256: z.string(), omittedFiles: z.number() });
export type ArchiveFacts = z.infer<typeof factsSchema>;

export interface Archive {
  readonly facts: ArchiveFacts;
  readonly body: Readable;
}

export class Archives {
  readonly #dir: string;
  readonly #maxBytes: number;

  constructor(dir: string, maxBytes: number) {
    this.#dir = dir;
    this.#maxBytes = maxBytes;
  }

  /** The archive of a key, opened; null when it is not there. */
  async find(key: string): Promise<Archive | null> {
    const facts = await this.#facts(key);
    const file = facts && (await open(this.#tar(key)).catch(() => null));
    if (!file) return null;
    const { size } = await file.stat();
    if (size !== facts.bytes) {
      await file.close();
      await this.#remove(key);
      return null;
    }
    await utimes(this.#tar(key), new Date(), new Date()).catch(() => {}); // another load made room; ours is open
    return { facts, body: file.createReadStream() };
  }

  /** Builds one in an empty work folder and keeps it. `build` writes the file; null: it could not. */
  async add(key: string, build: (workDir: string, archive: string) => Promise<ArchiveFacts | null>): Promise<Archive | null> {
    const workDir = path.join(this.#dir, `tmp-${uuidv7()}`);
    await mkdir(path.join(workDir, 'repository'), { recursive: true, mode: 0o700 });
    try {
      const archive = path.join(workDir, 'archive.tar');
      const facts = await build(path.join(workDir, 'repository'), archive);
      if (!facts) return null;
      await this.#makeRoom(facts.bytes);
      await writeFile(this.#json(key), JSON.stringify(facts));
      // Opened before it has its name: it is ours, whatever is removed to make room meanwhile.
      const file = await open(archive);
      await rename(archive, this.#tar(key));
      return { facts, body: file.createReadStream() };
    } finally {
      await rm(workDir, { recursive: true, force: true });
    }
  }

  /** Removes the archives whose key begins with `prefix`. */
  async forget(prefix: string): Promise<void> {
    const names = await readdir(this.#dir).catch(() => []);
    for (const name of names.filter((one) => one.startsWith(prefix))) await rm(path.join(this.#dir, name), { force: true });
  }

  /** Removes what an earlier server left half built. */
  async sweep(): Promise<void> {
    const names = await readdir(this.#dir).catch(() => []);
    for (const name of names.filter((one) => one.startsWith('tmp-')))
      await rm(path.join(this.#dir, name), { recursive: true, force: true });
  }

  async #makeRoom(bytes: number): Promise<void> {
    const names = (await readdir(this.#dir)).filter((name) => name.endsWith('.tar'));
    const kept = await Promise.all(
      names.map(async (name) => {
        const found = await stat(path.join(this.#dir, name)).catch(() => null);
        return { key: name.slice(0, -'.tar'.length), bytes: found?.size ?? 0, usedMs: found?.mtimeMs ?? 0 };
      }),
    );
    let total = kept.reduce((sum, one) => sum + one.bytes, bytes);
    for (const one of kept.sort((a, b) => a.usedMs - b.usedMs)) {
      if (total <= this.#maxBytes) return;
      await this.#remove(one.key);
      total -= one.bytes;
    }
  }

  async #facts(key: string): Promise<ArchiveFacts | null> {
    try {
      return factsSchema.parse(JSON.parse(await readFile(this.#json(key), 'utf8')));
    } catch {
      return null; // not there, or cut off by a crash: it is built again
    }
  }

  async #remove(key: string): Promise<void> {
    await Promise.all([rm(this.#tar(key), { force: true }), rm(this.#json(key), { force: true })]);
  }

  #tar(key: string): string {
    return path.join(this.#dir, `${key}.tar`);
  }

  #json(key: string): string {
    return path.join(this.#dir, `${key}.json`);
  }
}
