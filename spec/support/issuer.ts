/**
 * An OpenID Connect issuer for specs: discovery, authorize, token (PKCE, client secret, each code once), userinfo, keys. Whoever comes to
 * `authorize` is the person of the moment. It can be made to misbehave; a well-behaved one checks what a real one would.
 */
import { createHash, randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT, UnsecuredJWT } from 'jose';

export const CLIENT = { id: 'heph-of-the-spec', secret: 'client secret of the spec: & % ü' };

export interface IssuerPerson {
  readonly sub: string;
  readonly email?: string;
  readonly email_verified?: boolean | string;
  readonly name?: string;
}

/** What it does wrong. Claims and the header go into the next ID tokens as they are. */
export interface Misbehaviour {
  readonly claims?: Readonly<Record<string, unknown>>;
  /** `none`: no signature. `HS256`: signed with the public key as the secret. `stranger`: with a key that is not its own. */
  readonly signature?: 'none' | 'HS256' | 'stranger';
  /** `authorize` sends the browser back with this error. */
  readonly refuses?: string;
  readonly tokenStatus?: number;
  /** Takes requests and never answers. */
  readonly silent?: boolean;
  /** Answers every request with this status. */
  readonly broken?: number;
  readonly emailOnlyInUserinfo?: boolean;
}

interface Code {
  readonly person: IssuerPerson;
  readonly nonce: string;
  readonly challenge: string;
  readonly redirectUri: string;
}

type SigningKey = Awaited<ReturnType<typeof makeKey>>;

async function makeKey(alg: string) {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  const kid = randomUUID();
  return { alg, kid, privateKey, jwk: { ...(await exportJWK(publicKey)), alg, kid, use: 'sig' } };
}

const s256 = (verifier: string) => createHash('sha256').update(verifier).digest('base64url');

export class SpecIssuer {
  person: IssuerPerson = { sub: 'ada', email: 'ada@example.com', email_verified: true, name: 'Ada Lovelace' };
  misbehaviour: Misbehaviour = {};
  /** Paths of the requests so far. */
  readonly seen: string[] = [];
  #keys: SigningKey[];
  #server: http.Server;
  readonly #codes = new Map<string, Code>();
  readonly #tokens = new Map<string, IssuerPerson>();
  readonly #events = new EventEmitter();

  private constructor(server: http.Server, keys: SigningKey[]) {
    this.#server = server;
    this.#keys = keys;
    server.on('request', (request, response) => void this.#handle(request, response));
  }

  static async start(): Promise<SpecIssuer> {
    const server = http.createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new SpecIssuer(server, [await makeKey('RS256')]);
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Signs with a new key from now on, and forgets the old one. */
  async rotate(alg = 'RS256'): Promise<void> {
    this.#keys = [await makeKey(alg)];
  }

  /** Resolves with the next request to this path. */
  async asked(path: string): Promise<void> {
    await once(this.#events, path);
  }

  async close(): Promise<void> {
    if (!this.#server.listening) return;
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** An access token for a native client, as this issuer signs them; `claims` go over what is right. */
  token(claims: JWTPayload = {}, signature?: Misbehaviour['signature']): Promise<string> {
    const now = Math.floor(Date.now() / 1_000);
    return this.#sign({ iss: this.url, aud: 'heph', sub: this.person.sub, iat: now, exp: now + 300, ...claims }, signature);
  }

  async #sign(claims: JWTPayload, signature: Misbehaviour['signature']): Promise<string> {
    const key = signature === 'stranger' ? { ...(await makeKey('RS256')), kid: this.#keys[0]?.kid } : (this.#keys[0] as SigningKey);
    if (signature === 'none') return new UnsecuredJWT(claims).encode();
    if (signature === 'HS256') {
      const publicKey = new TextEncoder().encode(JSON.stringify(this.#keys[0]?.jwk));
      return new SignJWT(claims).setProtectedHeader({ alg: 'HS256', kid: key.kid as string }).sign(publicKey);
    }
    return new SignJWT(claims).setProtectedHeader({ alg: key.alg, kid: key.kid as string }).sign(key.privateKey);
  }

  async #handle(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', this.url);
    this.seen.push(url.pathname);
    this.#events.emit(url.pathname);
    if (this.misbehaviour.silent) return;
    const answer = (status: number, body: unknown) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    };
    if (this.misbehaviour.broken) return answer(this.misbehaviour.broken, { error: 'words of the provider' });
    switch (url.pathname) {
      case '/.well-known/openid-configuration':
        return answer(200, this.#metadata());
      case '/jwks':
        return answer(200, { keys: this.#keys.map(({ jwk }) => jwk) });
      case '/authorize':
        response.writeHead(302, { location: this.#authorize(url.searchParams) }).end();
        return;
      case '/token':
        return answer(...(await this.#exchange(request)));
      case '/userinfo': {
        const person = this.#tokens.get((request.headers.authorization ?? '').replace(/^Bearer /, ''));
        return person ? answer(200, person) : answer(401, {});
      }
      default:
        return answer(404, {});
    }
  }

  #metadata() {
    return {
      issuer: this.url,
      ...{ authorization_endpoint: `${this.url}/authorize`, token_endpoint: `${this.url}/token`, jwks_uri: `${this.url}/jwks` },
      ...{ userinfo_endpoint: `${this.url}/userinfo`, end_session_endpoint: `${this.url}/logout` },
      ...{ response_types_supported: ['code'], subject_types_supported: ['public'] },
      // An issuer may offer anything; what is taken is not its choice.
      id_token_signing_alg_values_supported: ['RS256', 'ES256', 'EdDSA', 'HS256', 'none'],
      code_challenge_methods_supported: ['S256'],
    };
  }

  /** The address that the browser is sent back to. */
  #authorize(query: URLSearchParams): string {
    const get = (name: string) => query.get(name) ?? '';
    const back = new URL(get('redirect_uri'));
    back.searchParams.set('state', get('state'));
    const { refuses } = this.misbehaviour;
    if (refuses) {
      back.searchParams.set('error', refuses);
      back.searchParams.set('error_description', 'words of the provider');
      return back.href;
    }
    const right = get('client_id') === CLIENT.id && get('code_challenge_method') === 'S256' && get('scope').includes('openid');
    if (!right) throw new Error(`not a request that this issuer takes: ${query}`);
    const code = randomUUID();
    const { person } = this;
    this.#codes.set(code, { person, nonce: get('nonce'), challenge: get('code_challenge'), redirectUri: get('redirect_uri') });
    back.searchParams.set('code', code);
    return back.href;
  }

  async #exchange(request: http.IncomingMessage): Promise<[number, unknown]> {
    const form = new URLSearchParams(await text(request));
    if (this.misbehaviour.tokenStatus) return [this.misbehaviour.tokenStatus, { error: 'words_of_the_provider' }];
    if (!isClient(request.headers.authorization)) return [401, { error: 'invalid_client' }];
    const known = this.#codes.get(form.get('code') ?? '');
    this.#codes.delete(form.get('code') ?? '');
    const right = known?.redirectUri === form.get('redirect_uri') && known?.challenge === s256(form.get('code_verifier') ?? '');
    if (!known || !right) return [400, { error: 'invalid_grant' }];
    const accessToken = randomUUID();
    this.#tokens.set(accessToken, known.person);
    const { claims, signature, emailOnlyInUserinfo } = this.misbehaviour;
    const now = Math.floor(Date.now() / 1_000);
    const told = emailOnlyInUserinfo ? { sub: known.person.sub } : known.person;
    const payload = { iss: this.url, aud: CLIENT.id, iat: now, exp: now + 300, nonce: known.nonce, ...told, ...claims };
    return [200, { access_token: accessToken, token_type: 'Bearer', id_token: await this.#sign(payload as JWTPayload, signature) }];
  }
}

/** RFC 6749, section 2.3.1: both parts are form-encoded before they are put together; how much of them is, differs. */
function isClient(authorization = ''): boolean {
  const [id = '', secret = ''] = Buffer.from(authorization.replace(/^Basic /, ''), 'base64')
    .toString()
    .split(':');
  const decoded = (part: string) => new URLSearchParams(`part=${part}`).get('part');
  return decoded(id) === CLIENT.id && decoded(secret) === CLIENT.secret;
}
