/**
 * Owns: `HEPH_AUTH=local`: every request from this machine, to a name of this machine, is the one local account.
 * - The peer must be a loopback address: nobody else reaches the account, whatever the bind address is.
 * - The Host must be a loopback name: a page whose name was pointed at 127.0.0.1 (DNS rebinding) is not this machine.
 * - Where commands run as the user of this server, a browser or an operator proves more than that (browser-key.ts).
 * - A write must not come from another site's page: its Origin, when there is one, is loopback with the port of Host. Programs send none.
 */
import type Koa from 'koa';
import { RuntimeFault } from '../../kernel/faults.ts';
import type { AccountId } from '../../kernel/ids.ts';
import type { Authenticator } from './authenticator.ts';
import type { BrowserKey } from './browser-key.ts';

const IPV4_LOOPBACK = /^127(?:\.(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)){3}$/;
const READS = new Set(['GET', 'HEAD', 'OPTIONS']);

/** True for an address of the loopback interface, as the socket names it. */
export function isLoopbackAddress(address: string | undefined): boolean {
  if (address === undefined) return false;
  const ipv4 = address.toLowerCase().startsWith('::ffff:') ? address.slice('::ffff:'.length) : address;
  return address === '::1' || IPV4_LOOPBACK.test(ipv4);
}

/** The port of `localhost[:port]`, `127.x.x.x[:port]` or `[::1][:port]`; null for any other host. Without a port: `defaultPort`. */
export function loopbackPort(host: string, defaultPort: number): number | null {
  const [, name = '', digits] = /^(\[[^\]]*\]|[^:]*)(?::(\d{1,5}))?$/.exec(host.toLowerCase()) ?? [];
  const loopback = name === 'localhost' || name === '[::1]' || IPV4_LOOPBACK.test(name);
  if (!loopback) return null;
  const port = digits === undefined ? defaultPort : Number(digits);
  return port <= 65_535 ? port : null;
}

/** Throws FORBIDDEN unless the peer and the Host are loopback. */
export function requireLoopback(ctx: Koa.Context): void {
  if (!isLoopbackAddress(ctx.req.socket.remoteAddress)) {
    throw new RuntimeFault('FORBIDDEN', 'This server answers only on the machine that it runs on. Open it there, or configure sign-in.');
  }
  if (loopbackPort(ctx.req.headers.host ?? '', 80) === null) {
    throw new RuntimeFault('FORBIDDEN', 'This server answers only to the names of its own machine. Open it as http://localhost.');
  }
}

/** True for a request from this machine to a name of it. */
export function isLocal(ctx: Koa.Context): boolean {
  return isLoopbackAddress(ctx.req.socket.remoteAddress) && loopbackPort(ctx.req.headers.host ?? '', 80) !== null;
}

/** The guard of the operations listener where nothing says who an operator is: this machine, and no page of another site. */
export const requireLocalAdmin = {
  admit(ctx: Koa.Context): void {
    requireLoopback(ctx);
    requireOwnPage(ctx);
  },
  who(ctx: Koa.Context): { readonly name: string; readonly role: 'admin' } {
    requireLocalAdmin.admit(ctx);
    return { name: 'local', role: 'admin' };
  },
};

function requireOwnPage(ctx: Koa.Context): void {
  const { host, origin } = ctx.req.headers;
  const site = ctx.get('sec-fetch-site');
  const write = !READS.has(ctx.method);
  const followed = ctx.get('sec-fetch-mode') === 'navigate' && ctx.get('sec-fetch-dest') === 'document';
  const foreign = site === 'cross-site' && (write || !followed);
  if (foreign || (write && origin !== undefined && originPort(origin) !== loopbackPort(host ?? '', 80))) {
    throw new RuntimeFault('ORIGIN_REFUSED', 'Another site sent this request, so it was refused. Use the page of this server.');
  }
}

/** The port of a loopback origin; undefined for any other. */
function originPort(origin: string): number | null | undefined {
  const [, scheme, host = ''] = /^(https?):\/\/([^/]+)$/.exec(origin.toLowerCase()) ?? [];
  if (scheme === undefined) return undefined;
  return loopbackPort(host, scheme === 'https' ? 443 : 80) ?? undefined;
}

/** Everybody on this machine is `accountId`; with a `key`, only a browser that has signed in with it. */
export function localAuthenticator(accountId: AccountId, key: BrowserKey | null = null): Authenticator {
  return {
    admit: requireLoopback,
    greet: (ctx) => key?.greet(ctx) ?? false,
    async authenticate(ctx) {
      requireLoopback(ctx);
      requireOwnPage(ctx);
      key?.require(ctx);
      return { accountId, proof: { sessionId: null, untilMs: null } };
    },
  };
}
