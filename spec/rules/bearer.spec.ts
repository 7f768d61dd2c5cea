/**
 * Bearer tokens of native clients: which are taken, which are not, and what they may do without a browser. rule: R16
 */
import { expect } from 'chai';
import { systemClock } from '../../src/kernel/clock.ts';
import { silentLog } from '../../src/kernel/log.ts';
import { BearerTokens, Issuer } from '../../src/people/index.ts';
import { useDatabase } from '../support/database.ts';
import { CLIENT } from '../support/issuer.ts';
import { emptyLedger } from '../support/ledger.ts';
import { type SignInRig, type SignInRigOptions, useSignIn } from '../support/sign-in-rig.ts';

const now = () => Math.floor(Date.now() / 1_000);

describe('a Bearer token', () => {
  const database = useDatabase();
  const openSignIn = useSignIn(database);
  let site: SignInRig;

  async function open(options: SignInRigOptions = {}): Promise<void> {
    site = await openSignIn(options);
    await site.invite('ada@example.com');
    await site.signedIn();
  }
  beforeEach(async () => {
    await emptyLedger(database.db);
    await open();
  });

  const send = (token: string, method = 'GET', headers: Record<string, string> = {}) =>
    site.browser().fetch(method, method === 'GET' ? '/auth/me' : `/workspaces/${site.rig.slug}/mentor/questions`, {
      headers: { authorization: `Bearer ${token}`, ...headers },
      ...(method === 'GET' ? {} : { body: { requestId: token.slice(-100), text: 'Why?' } }),
    });

  it('of the issuer is its person, who signed in once', async () => {
    const { status, body } = await send(await site.issuer.token());
    expect([status, body.account?.displayName]).to.deep.equal([200, 'Ada Lovelace']);
  });

  it('writes without an Origin, and with any: no browser sends it by itself', async () => {
    for (const origin of [undefined, 'https://evil.example', 'null']) {
      const token = await site.issuer.token({ jti: String(origin) });
      const answer = await send(token, 'POST', origin === undefined ? { origin: '' } : { origin, 'sec-fetch-site': 'cross-site' });
      expect(answer.status, String(origin)).to.equal(202);
    }
  });

  it('counts more than a cookie that comes with it', async () => {
    const browser = await site.signedIn();
    const bad = await browser.fetch('GET', '/auth/me', { headers: { authorization: 'Bearer x.y.z' } });
    expect(bad.body.code).to.equal('UNAUTHENTICATED');
    const other = await browser.fetch('GET', '/auth/me', { headers: { authorization: 'Basic eDp5' } });
    expect(other.status).to.equal(200);
  });

  for (const [what, claims, signature] of [
    ['of another issuer', { iss: 'https://evil.example' }],
    ['for another audience', { aud: 'another' }],
    ['for no audience', { aud: undefined }],
    ['whose time is over', { exp: now() - 11 }],
    ['without an end', { exp: undefined }],
    ['that begins later', { nbf: now() + 3_600 }],
    ['without a subject', { sub: undefined }],
    ['whose subject nobody can store', { sub: 'ada\u0000' }],
    ['without a signature', {}, 'none'],
    ['signed with the public key as a secret', {}, 'HS256'],
    ["signed with a key that is not the issuer's", {}, 'stranger'],
  ] as const) {
    it(`${what} is refused with 401`, async () => {
      const { status, body, headers } = await send(await site.issuer.token(claims as never, signature));
      expect([status, body.code, headers['www-authenticate']]).to.deep.equal([401, 'UNAUTHENTICATED', 'Bearer error="invalid_token"']);
    });
  }

  for (const [what, claims] of [
    ['ended a moment ago, by another clock', { exp: now() - 2 }],
    ['is for several audiences, ours among them', { aud: ['another', 'heph'] }],
  ] as const) {
    it(`that ${what} is taken`, async () => {
      const fresh = what.startsWith('ended') ? { exp: now() - 2 } : claims;
      expect((await send(await site.issuer.token(fresh as never))).status).to.equal(200);
    });
  }

  it('that was changed on the way is refused', async () => {
    const [head, payload = '', signature] = (await site.issuer.token()).split('.');
    const claims = { ...JSON.parse(Buffer.from(payload, 'base64url').toString()), sub: 'eve' };
    const forged = `${head}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.${signature}`;
    for (const token of [forged, `${head}.${payload}.`, `${head}.${payload}`, 'x', '.', '..']) {
      expect((await send(token)).body.code, token.slice(-20)).to.equal('UNAUTHENTICATED');
    }
  });

  it('of a stranger is refused with 403 and makes no account', async () => {
    const { status, body } = await send(await site.issuer.token({ sub: 'stranger', email: 'ada@example.com', email_verified: true }));
    expect([status, body.code]).to.deep.equal([403, 'FORBIDDEN']);
    expect(body.detail).to.match(/Sign in once in a browser/);
  });

  it('that is an ID token of the sign-in is refused: it has another audience', async () => {
    expect((await send(await site.issuer.token({ aud: CLIENT.id }))).body.code).to.equal('UNAUTHENTICATED');
  });

  it('is refused where the installation takes none', async () => {
    await open({ env: { HEPH_JWT_AUDIENCE: '' } });
    const { status, body } = await send(await site.issuer.token());
    expect([status, body.code]).to.deep.equal([401, 'UNAUTHENTICATED']);
  });

  it('with an algorithm that is not on the list is refused, whatever its key', async () => {
    await open({ env: { HEPH_JWT_ALGORITHMS: 'ES256' } });
    expect((await send(await site.issuer.token())).body.code).to.equal('UNAUTHENTICATED');
    const fresh = site.issuer;
    await fresh.rotate('ES256');
    await openAgain();
    expect((await send(await fresh.token())).status).to.equal(200);
  });

  /** Another server of the same installation, which has read no keys yet. */
  async function openAgain(): Promise<void> {
    const { issuer } = site;
    const again = await openSignIn({ env: { HEPH_OIDC_ISSUER: issuer.url, HEPH_JWT_ALGORITHMS: 'ES256' } });
    site = { ...again, issuer };
  }

  describe('when keys change or cannot be read', () => {
    const bearer = (keysCooldownMs: number, jwksUrl: URL | null = null) => {
      const options = { issuer: new URL(site.issuer.url), clientId: CLIENT.id, clientSecret: null, clock: systemClock, log: silentLog };
      return new BearerTokens({
        ...{ db: database.db, issuer: options.issuer, audience: 'heph', algorithms: ['RS256'], jwksUrl, keysCooldownMs, timeoutMs: 200 },
        metadata: new Issuer({ ...options, timeoutMs: 200 }),
      });
    };
    const codeOf = (given: Promise<unknown>) =>
      given.then(
        () => 'taken',
        (error: { code: string }) => error.code,
      );

    it('is taken with the new key, and refused with the old one', async () => {
      const tokens = bearer(0);
      const old = await site.issuer.token();
      expect(await codeOf(tokens.verify(old))).to.equal('taken');
      await site.issuer.rotate();
      expect(await codeOf(tokens.verify(await site.issuer.token()))).to.equal('taken');
      expect(await codeOf(tokens.verify(old))).to.equal('UNAUTHENTICATED');
    });

    it('with an unknown key makes us ask the issuer once in a while only', async () => {
      const tokens = bearer(60_000);
      await tokens.verify(await site.issuer.token());
      const asked = () => site.issuer.seen.filter((path) => path === '/jwks').length;
      const before = asked();
      await site.issuer.rotate();
      for (let n = 0; n < 5; n++) expect(await codeOf(tokens.verify(await site.issuer.token()))).to.equal('UNAUTHENTICATED');
      expect(asked()).to.equal(before);
    });

    for (const [what, misbehaviour] of [
      ['answers with an error', { broken: 500 }],
      ['does not answer', { silent: true }],
    ] as const) {
      it(`is not called invalid when the issuer ${what}: 503, try again`, async () => {
        for (const jwksUrl of [null, new URL('/jwks', site.issuer.url)]) {
          const tokens = bearer(0, jwksUrl);
          const token = await site.issuer.token();
          site.issuer.misbehaviour = misbehaviour;
          expect(await codeOf(tokens.verify(token))).to.equal('SIGN_IN_UNAVAILABLE');
          site.issuer.misbehaviour = {};
        }
      });
    }

    it('is not called invalid when nobody is there', async () => {
      const tokens = bearer(0, new URL('http://127.0.0.1:1/jwks'));
      expect(await codeOf(tokens.verify(await site.issuer.token()))).to.equal('SIGN_IN_UNAVAILABLE');
    });
  });
});
