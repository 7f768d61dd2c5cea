/**
 * A browser for specs of the sign-in: keeps cookies the way browsers do (host, Secure, `__Host-`, Max-Age), follows redirects, and sends the
 * headers that scripts cannot forge. Its site stands behind a proxy that ends TLS: the address is https, the connection is http to a port.
 */
import http from 'node:http';

export interface Shown {
  readonly status: number;
  readonly url: string;
  readonly headers: http.IncomingHttpHeaders;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: specs look into answers of any shape
  readonly body: any;
}

interface Cookie {
  readonly value: string;
  readonly line: string;
}

export interface Site {
  /** What a person types, for example `https://heph.example`. */
  readonly origin: string;
  /** Where it listens on this machine. */
  readonly port: number;
}

const NAVIGATION = { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document', accept: 'text/html' };
const REDIRECTS_MAX = 10;

export class SignInBrowser {
  readonly #site: Site;
  readonly cookies = new Map<string, Cookie>();

  constructor(site: Site) {
    this.#site = site;
  }

  /** Cookies as the next request to the site carries them. */
  get cookieHeader(): string {
    return [...this.cookies].map(([name, { value }]) => `${name}=${value}`).join('; ');
  }

  /** Another browser with the same cookies. */
  copy(): SignInBrowser {
    const copy = new SignInBrowser(this.#site);
    for (const [name, cookie] of this.cookies) copy.cookies.set(name, cookie);
    return copy;
  }

  /** A person opens an address: links, bookmarks, and redirects to the end. `until`: stops before an address that matches. */
  async open(address: string, until?: RegExp): Promise<Shown> {
    let url = new URL(address, this.#site.origin);
    for (let hop = 0; hop < REDIRECTS_MAX; hop++) {
      if (until?.test(url.href)) return { status: 0, url: url.href, headers: {}, text: '', body: null };
      const shown = await this.#request(url, {
        method: 'GET',
        headers: { ...NAVIGATION, 'sec-fetch-site': hop > 0 ? 'cross-site' : 'none' },
      });
      if (shown.headers.location === undefined) return shown;
      url = new URL(shown.headers.location, url);
    }
    throw new Error(`redirected for ever, last to ${url.href}`);
  }

  /** A script of the site's own page sends a request. */
  fetch(method: string, path: string, init: { body?: unknown; headers?: Record<string, string> } = {}): Promise<Shown> {
    const write = method !== 'GET' && method !== 'HEAD';
    const json = init.body === undefined ? {} : { 'content-type': 'application/json' };
    const own = {
      'sec-fetch-site': 'same-origin',
      'sec-fetch-mode': 'cors',
      accept: 'application/json',
      ...(write ? { origin: this.#site.origin } : {}),
    };
    const body = init.body === undefined ? undefined : JSON.stringify(init.body);
    const given = { ...own, ...json, ...init.headers };
    // An empty one is not sent: as by a program, or an old browser.
    const headers = Object.fromEntries(Object.entries(given).filter(([name, value]) => value !== '' || name === 'host'));
    return this.#request(new URL(path, this.#site.origin), { method, headers, body });
  }

  #request(url: URL, init: { method: string; headers: Record<string, string>; body?: string | undefined }): Promise<Shown> {
    const own = url.origin === this.#site.origin;
    const cookie = own && this.cookies.size > 0 ? { cookie: this.cookieHeader } : {};
    const at = own ? { host: '127.0.0.1', port: this.#site.port } : { host: url.hostname, port: url.port };
    const headers = { host: url.host, ...cookie, ...init.headers };
    return new Promise((resolve, reject) => {
      const options = { ...at, method: init.method, path: url.pathname + url.search, headers, agent: false };
      const request = http.request(options, (response) => {
        let text = '';
        response.on('data', (chunk) => {
          text += chunk;
        });
        response.on('end', () => {
          if (own) for (const line of response.headers['set-cookie'] ?? []) this.#keep(line);
          const json = /json/.test(response.headers['content-type'] ?? '');
          resolve({
            status: response.statusCode ?? 0,
            url: url.href,
            headers: response.headers,
            text,
            body: json ? JSON.parse(text) : null,
          });
        });
      });
      request.on('error', reject);
      request.end(init.body);
    });
  }

  /** Throws where a browser would drop the cookie: a spec should hear of that. */
  #keep(line: string): void {
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
    const secure = /; Secure/.test(line);
    if (name.startsWith('__Host-') && (!secure || !/; Path=\/(;|$)/.test(line) || /; Domain/i.test(line)))
      throw new Error(`dropped: ${line}`);
    if (secure && !this.#site.origin.startsWith('https:')) throw new Error(`dropped without https: ${line}`);
    if (/Max-Age=0(;|$)/.test(line)) this.cookies.delete(name);
    else this.cookies.set(name, { value, line });
  }
}
