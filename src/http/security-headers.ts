/**
 * Owns: headers that every answer of the web listener carries. The page loads nothing from elsewhere and runs no inline script or style.
 */
import type Koa from 'koa';

/** The policy of a page that these origins may put into a frame; none by default. */
export function contentPolicy(frameAncestors: readonly string[] = []): string {
  return [...DIRECTIVES, `frame-ancestors ${frameAncestors.length === 0 ? "'none'" : frameAncestors.join(' ')}`].join('; ');
}

const DIRECTIVES = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
];
const POLICY = contentPolicy();

export const securityHeaders: Koa.Middleware = async (ctx, next) => {
  ctx.set({
    'Content-Security-Policy': POLICY,
    'X-Content-Type-Options': 'nosniff',
    'Referrer-Policy': 'no-referrer',
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cross-Origin-Resource-Policy': 'same-origin',
    // Whoever answers with something that may be kept says so itself.
    'Cache-Control': 'no-store',
  });
  await next();
};
