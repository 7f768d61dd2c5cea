/**
 * Owns: finding setpriv, which makes the kernel kill a child when its parent dies (Linux, util-linux).
 */
import { spawnSync } from 'node:child_process';

const PROBE_MAX_MS = 2_000;
const PLACES = ['/usr/bin/setpriv', '/bin/setpriv', '/usr/local/bin/setpriv'];

/** Its path, found by running it; null where it is missing or does not know the option. */
export function findSetpriv(): string | null {
  if (process.platform !== 'linux') return null;
  const works = (path: string): boolean =>
    spawnSync(path, ['--pdeathsig=KILL', 'true'], { env: {}, stdio: 'ignore', timeout: PROBE_MAX_MS }).status === 0;
  return PLACES.find(works) ?? null;
}
