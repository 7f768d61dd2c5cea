/**
 * Owns: the panel that other sites put into their pages (spec/decisions/0032): the script that they include, and the page in its frame.
 * Only the origins of HEPH_EMBED_ORIGINS may show the frame: the browser enforces it, for all frames around it, by `frame-ancestors`. Everything
 * else of this listener stays out of every frame.
 */
import type Koa from 'koa';
import { answerPage, type SmallPage } from '../auth/pages.ts';
import { contentPolicy } from '../security-headers.ts';
import { servePage } from './page.ts';

export const PANEL_PATH = '/embed';
export const LOADER_PATH = '/embed.js';

/** For whoever opens the panel of an installation that has none: most likely its operator. */
const SWITCHED_OFF: SmallPage = {
  ...{ status: 404, reason: 'embed-off', title: 'The panel is switched off', links: [{ href: '/', label: 'Open the chat' }] },
  text:
    'No other site may show this chat in its pages. To allow some, set HEPH_EMBED_ORIGINS to their origins, separated by commas ' +
    '(for example https://wiki.example.com), and start the server again.',
};

/** Answers the two paths, and leaves every other to what comes next. */
export function serveEmbed(folder: string, origins: readonly string[]): Koa.Middleware {
  const policy = contentPolicy(origins);
  const files = servePage(folder, { at: PANEL_PATH, index: '/embed/index.html' });
  return async (ctx, next) => {
    if (ctx.path !== PANEL_PATH && ctx.path !== LOADER_PATH) return next();
    if (origins.length === 0) return answerPage(ctx, SWITCHED_OFF);
    if (ctx.path === PANEL_PATH) ctx.set('Content-Security-Policy', policy);
    // A page of another site may load these two. Neither holds anything of a person.
    ctx.set('Cross-Origin-Resource-Policy', 'cross-origin');
    await files(ctx, next);
  };
}
