/**
 * Owns: the one name of an installation that people reach over a network (HEPH_PUBLIC_URL), and what a browser may send to it.
 * - The Host is that name and no other, also behind a reverse proxy, which passes it on: a page whose name was pointed here is not this site.
 *   No X-Forwarded header is read, so nothing depends on who may set one.
 * - A write carries the Origin of the site: browsers send it with each write. A cookie proves a browser, never who made it send the request.
 * - A read is refused when the browser says that another site's page makes it, unless a person follows a link.
 */
import type Koa from 'koa';
import { RuntimeFault } from '../../kernel/faults.ts';

const READS = new Set(['GET', 'HEAD', 'OPTIONS']);
const OWN_FETCHES = new Set(['', 'same-origin', 'none']);

export class PublicSite {
  readonly origin: string;
  readonly #host: string;
  readonly #defaultPort: string;
  /** https: cookies can be kept to it by the browser. */
  readonly secure: boolean;

  readonly #setting: string;

  /** `setting`: the variable that names it. */
  constructor(publicUrl: URL, setting = 'HEPH_PUBLIC_URL') {
    this.#setting = setting;
    this.origin = publicUrl.origin;
    this.#host = publicUrl.host;
    this.secure = publicUrl.protocol === 'https:';
    this.#defaultPort = this.secure ? ':443' : ':80';
  }

  /** True for a request to this name. */
  isHost(ctx: Koa.Context): boolean {
    const host = (ctx.req.headers.host ?? '').toLowerCase();
    const plain = host.endsWith(this.#defaultPort) ? host.slice(0, -this.#defaultPort.length) : host;
    return plain === this.#host;
  }

  /** Throws FORBIDDEN for another name. */
  requireHost(ctx: Koa.Context): void {
    if (this.isHost(ctx)) return;
    throw new RuntimeFault('FORBIDDEN', `This server answers only to the name of ${this.#setting}. Open it as ${this.origin}.`);
  }

  /** Throws ORIGIN_REFUSED. */
  requireOwnPage(ctx: Koa.Context): void {
    const { origin } = ctx.req.headers;
    const own = READS.has(ctx.method) ? this.#isOwnRead(ctx, origin) : origin === this.origin;
    if (!own) throw new RuntimeFault('ORIGIN_REFUSED', 'Another site sent this request, so it was refused. Use the page of this server.');
  }

  #isOwnRead(ctx: Koa.Context, origin: string | undefined): boolean {
    if (origin !== undefined && origin !== this.origin) return false;
    return OWN_FETCHES.has(ctx.get('sec-fetch-site')) || isNavigation(ctx);
  }

  /** For pages that begin or end a sign-in: a person goes there. Throws ORIGIN_REFUSED for an image, a frame or a script. */
  requireNavigation(ctx: Koa.Context): void {
    if (ctx.get('sec-fetch-mode') === '' || isNavigation(ctx)) return;
    throw new RuntimeFault('ORIGIN_REFUSED', 'This page is for a person to open. Follow the link instead of loading it.');
  }
}

function isNavigation(ctx: Koa.Context): boolean {
  return ctx.get('sec-fetch-mode') === 'navigate' && ctx.get('sec-fetch-dest') === 'document';
}
