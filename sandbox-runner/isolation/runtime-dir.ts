/**
 * Owns: where the folders of sandboxes are on this machine. A server that is root runs sandboxes as another user, who may not enter the data
 * directory; and the path of a socket may not be long. Then the folders are below the system's temporary folder, one for each data directory.
 */
import { createHash } from 'node:crypto';
import { chmodSync, chownSync, lstatSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { isRoot, SANDBOX_UID } from './launch.ts';

/** The kernel's limit is 108 with the final zero; a runner's folder and its socket take less than 40. */
const BASE_MAX_BYTES = 64;

/** Makes the folder and returns it. Throws when somebody else has made it. */
export function sandboxRuntimeDir(dataDir: string): string {
  const own = path.join(dataDir, 'sandboxes');
  const elsewhere = isRoot() || Buffer.byteLength(own) > BASE_MAX_BYTES;
  const name = createHash('sha256').update(own).digest('hex').slice(0, 12);
  const dir = elsewhere ? path.join(tmpdir(), `heph-${process.getuid?.() ?? 0}-${name}`) : own;
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const found = lstatSync(dir);
  const isOurs = found.isDirectory() && found.uid === (process.getuid?.() ?? found.uid) && (found.mode & 0o022) === 0;
  if (!isOurs) throw new Error(`${dir} does not belong to this user alone. Remove it, or set HEPH_DATA_DIR to another folder.`);
  // Its user may pass, and see no names.
  if (isRoot()) chmodSync(dir, 0o711);
  return dir;
}

/** Lets the user of the sandboxes in, and nobody else. */
export function giveToSandboxUser(dir: string): void {
  if (isRoot()) chownSync(dir, SANDBOX_UID, SANDBOX_UID);
}
