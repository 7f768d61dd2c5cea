/**
 * Builds the page before a start when it is missing or older than its sources; otherwise does nothing, in a few milliseconds.
 */
import { existsSync, readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const built = path.join(root, 'dist/web/index.html');
const sources = ['src/web', 'src/contract', 'src/kernel', 'package-lock.json'];

/** Newest change below a file or folder, milliseconds since the epoch. */
function newestMs(file: string): number {
  const stat = statSync(file);
  if (!stat.isDirectory()) return stat.mtimeMs;
  return Math.max(stat.mtimeMs, ...readdirSync(file).map((name) => newestMs(path.join(file, name))));
}

const fresh = existsSync(built) && sources.every((source) => newestMs(path.join(root, source)) < statSync(built).mtimeMs);
if (!fresh) {
  console.error('Building the page (once, until its sources change) …');
  const { build } = await import('vite');
  await build({ root: path.join(root, 'src/web'), configFile: path.join(root, 'src/web/vite.config.ts'), logLevel: 'warn' });
}
