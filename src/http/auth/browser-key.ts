/**
 * Owns: who is at the keyboard, where a request from this machine does not prove it: commands of the assistant run as the user of this server
 * and reach its ports (spec/decisions/0039). A link that works once, printed on the terminal, opens a session in one browser; operators'
 * programs show a key.
 * Everything is kept in memory only: a command can read each file, and the database, of the user that it runs as. Nothing is in the
 * environment or in an argument, which it can read as well.
 */
import { createHash } from 'node:crypto';
import type Koa from 'koa';
import { RuntimeFault } from '../../kernel/faults.ts';
import { newSecret } from '../../kernel/ids.ts';
import { Cookies } from './cookies.ts';
import { answerPage, type SmallPage } from './pages.ts';

/** Browsers that are signed in at the same time; the oldest is signed out. */
const SESSIONS_MAX = 20;
const SESSION_MAX_MS = 14 * 24 * 3_600_000;
/** The parameter of the link. */
const PARAMETER = 'key';

const CLOSED: SmallPage = {
  ...{ status: 401, reason: 'signed-out', title: 'Open the link from the terminal', links: [] },
  text: 'Commands of the assistant run as your user here, so this page asks who you are. Heph printed a link when it started: open that. It works once; start Heph again for another.',
};

export class BrowserKey {
  /** For `heph …` commands; the same until the server stops. */
  readonly operatorKey = newSecret();
  readonly #cookies = new Cookies(false);
  /** Hashes of sessions' secrets, oldest first. */
  readonly #sessions = new Set<string>();
  readonly #used: () => void;
  #link = newSecret();

  /** `used`: the link was opened, and `path` is another one now. */
  constructor(used: () => void = () => undefined) {
    this.#used = used;
  }

  /** Where a browser signs in, once. */
  get path(): string {
    return `/?${PARAMETER}=${this.#link}`;
  }

  /** Throws SIGNED_OUT unless the browser has signed in. */
  require(ctx: Koa.Context): void {
    if (this.#hasSession(ctx)) return;
    throw new RuntimeFault(
      'SIGNED_OUT',
      'Commands run as your user here, so a sign-in is needed. Open the link that Heph printed when it started.',
    );
  }

  /** What operators' programs show instead. */
  isOperatorKey(token: string): boolean {
    return hash(token) === hash(this.operatorKey);
  }

  /** The same for operators. */
  requireOperator(ctx: Koa.Context): void {
    if (this.#hasSession(ctx)) return;
    throw new RuntimeFault(
      'SIGNED_OUT',
      'Commands run as your user here, so an operator shows the key that Heph printed on its terminal: set HEPH_OPS_TOKEN to it.',
    );
  }

  /** Answers what signs a browser in, and the page of one that is not. True: it is answered. */
  greet(ctx: Koa.Context): boolean {
    if (ctx.path !== '/' || ctx.method !== 'GET') return false;
    const key = ctx.query[PARAMETER];
    if (typeof key === 'string' && hash(key) === hash(this.#link)) {
      this.#open(ctx);
      return true;
    }
    if (this.#hasSession(ctx)) return false;
    answerPage(ctx, CLOSED);
    return true;
  }

  #open(ctx: Koa.Context): void {
    this.#link = newSecret();
    const secret = newSecret();
    this.#sessions.add(hash(secret));
    for (const oldest of this.#sessions) if (this.#sessions.size > SESSIONS_MAX) this.#sessions.delete(oldest);
    this.#cookies.write(ctx, 'session', { secret, maxAgeMs: SESSION_MAX_MS });
    ctx.status = 303;
    ctx.set('Location', '/');
    ctx.set('Cache-Control', 'no-store');
    ctx.set('Referrer-Policy', 'no-referrer');
    this.#used();
  }

  #hasSession(ctx: Koa.Context): boolean {
    const secret = this.#cookies.read(ctx, 'session');
    return secret !== null && this.#sessions.has(hash(secret));
  }
}

/** Compared instead of the secrets: how long that takes says nothing about them. */
function hash(secret: string): string {
  return createHash('sha256').update(secret).digest('base64url');
}
