/**
 * Owns: what proves that a process is isolated, as the kernel tells it to the process itself. Pure.
 */

/** Prints what `parseFacts` reads. */
export const FACTS_COMMAND = ['/bin/cat', '/proc/self/status', '/proc/net/dev'];

export interface Facts {
  /** A system call filter is on, no privilege can be gained, and none is held. */
  readonly confined: boolean;
  /** There is no network interface but the loopback one of its own. */
  readonly offline: boolean;
}

/** Reads the text of /proc/self/status followed by that of /proc/net/dev. */
export function parseFacts(text: string): Facts {
  const field = (name: string) => new RegExp(`^${name}:\\s+(\\S+)`, 'm').exec(text)?.[1];
  const devices = text.slice(text.indexOf('Inter-|'));
  const interfaces = [...devices.matchAll(/^\s*([^\s|:]+):/gm)].map(([, name]) => name);
  return {
    confined:
      field('Seccomp') === '2' && field('NoNewPrivs') === '1' && /^0+$/.test(field('CapEff') ?? '') && /^0+$/.test(field('CapBnd') ?? ''),
    offline: interfaces.length === 1 && interfaces[0] === 'lo',
  };
}
