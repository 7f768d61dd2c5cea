/**
 * Owns: filling Node's compile cache for isolated runners. It holds code that every runner runs, so no runner with a conversation may write
 * it: one that will never get a conversation fills it, once for each version of the program, and the others only read.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { launch, type Programs } from './launch.ts';
import { INSIDE } from './layers.ts';
import { giveToSandboxUser } from './runtime-dir.ts';

const FILL_MAX_MS = 60_000;
const FILL_WORK_BYTES = 8 * 1024 * 1024;
const PROJECT = path.join(import.meta.dirname, '../..');

/** A folder for this version, readable by the sandboxes' user. */
export function compileCacheDir(runtimeDir: string): string {
  const version = createHash('sha256')
    .update(readFileSync(path.join(PROJECT, 'package.json')))
    .update(process.version)
    .digest('hex');
  const dir = path.join(runtimeDir, `cache-${version.slice(0, 12)}`);
  mkdirSync(dir, { recursive: true, mode: 0o755 });
  giveToSandboxUser(dir);
  return dir;
}

/** Fills the cache if it was not filled before. Never rejects: without it runners start more slowly and nothing else. */
export async function fillCompileCache(dir: string, programs: Programs): Promise<void> {
  const mark = `${dir}.filled`;
  if (existsSync(mark)) return;
  const name = `cache-${process.pid}`;
  const command = [`${INSIDE.node}/node`, `${INSIDE.project}/sandbox-runner/driver.ts`, '--compile-cache', INSIDE.cache];
  const { child } = launch(
    { programs, name, cache: { dir, writable: true }, gatewayDir: null, workBytes: FILL_WORK_BYTES, limits: null },
    command,
  );
  const timer = setTimeout(() => child.kill('SIGKILL'), FILL_MAX_MS);
  child.stdin?.end(); // it warms up, finds that nobody wants it, and goes
  child.stdout?.resume();
  child.stderr?.resume();
  const code = await new Promise<number | null>((resolve) => {
    child.once('close', resolve);
    child.once('error', () => resolve(null));
  });
  clearTimeout(timer);
  if (code === 0) writeFileSync(mark, '');
}
