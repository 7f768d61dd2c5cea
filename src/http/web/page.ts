/**
 * Owns: a built page and its files. The page names its assets by their content, so they never go stale; the page itself is never kept.
 */
import type Koa from 'koa';
import { RuntimeFault } from '../../kernel/faults.ts';
import { methodNotAllowed } from '../route.ts';
import { type StaticFile, StaticFiles } from '../static-files.ts';

/** Where a page is and what it shares the folder with. */
export interface PagePlace {
  /** URL path of the page. */
  readonly at: string;
  /** Its document in the folder. */
  readonly index: string;
  /** Files that are not served here. */
  readonly hidden?: RegExp;
}

/** The chat. The operators' page is in the same build, and is none of this listener's; the panel has paths of its own (embed.ts). */
const CHAT: PagePlace = { at: '/', index: '/index.html', hidden: /^\/(ops|embed)\// };
/** What Vite writes: a name with the hash of the content. */
const HASHED = /^\/assets\/[^/]+-[A-Za-z0-9_-]{8,}\.[a-z0-9]+$/;

export function servePage(folder: string, { at, index, hidden }: PagePlace = CHAT): Koa.Middleware {
  const files = new StaticFiles(folder);
  return async (ctx, next) => {
    const path = ctx.path === at ? index : ctx.path;
    const file = hidden?.test(ctx.path) ? null : await files.find(path);
    if (!file && path === index)
      throw new RuntimeFault('NOT_FOUND', 'The web page is not built on this server. Run "npm run build" first.');
    if (!file) return next();
    ctx.state['route'] = 'page';
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD') throw methodNotAllowed(ctx, 'GET, HEAD');
    await answer(ctx, { path, kept: path !== index }, file);
  };
}

async function answer(ctx: Koa.Context, { path, kept }: { path: string; kept: boolean }, file: StaticFile): Promise<void> {
  const encoding = file.encodings.find((offered) => ctx.acceptsEncodings(offered)) ?? 'identity';
  const { bytes, etag } = await file.encoded(encoding);
  ctx.vary('Accept-Encoding');
  if (kept) {
    ctx.set('Cache-Control', HASHED.test(path) ? 'public, max-age=31536000, immutable' : 'no-cache');
    ctx.set('ETag', etag);
  }
  ctx.status = 200;
  if (kept && ctx.fresh) {
    ctx.status = 304;
    return;
  }
  if (encoding !== 'identity') ctx.set('Content-Encoding', encoding);
  ctx.type = file.type;
  ctx.body = bytes;
}
