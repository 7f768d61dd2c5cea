/**
 * Owns: `HEPH_EMBED_ORIGINS`: which other sites may show the panel in their pages (spec/decisions/0032).
 */
import { isLoopbackHost } from './auth.ts';
import type { Reader } from './reader.ts';

/** They all stand in one header. */
const ORIGINS_MAX = 50;
const ALLOWED =
  'origins separated by commas, each https:// with a host and nothing after it (http:// only for this machine), for example https://wiki.example.com';

/** Each origin once, as a browser writes it; empty when no other site may. */
export function readEmbedOrigins(read: Reader): readonly string[] {
  const name = 'HEPH_EMBED_ORIGINS';
  const parts = (read.raw(name) ?? '').split(/[\s,]+/).filter((part) => part !== '');
  const origins = parts.map((part) => {
    const origin = originOf(part);
    if (origin === null) read.bad(name, part, ALLOWED);
    return origin ?? '';
  });
  if (origins.length > ORIGINS_MAX) read.bad(name, `${origins.length} origins`, `at most ${ORIGINS_MAX}`);
  return [...new Set(origins)];
}

/** null: no origin that may be named in a policy. A wildcard is none: it would let in who takes over any one of the hosts. */
function originOf(text: string): string | null {
  if (!URL.canParse(text) || /[*;'"]/.test(text)) return null;
  const url = new URL(text);
  const secure = url.protocol === 'https:' || (url.protocol === 'http:' && isLoopbackHost(url.hostname));
  return secure && url.href === `${url.origin}/` ? url.origin : null;
}
