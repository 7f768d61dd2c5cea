/**
 * Signing in at an issuer: who gets a session, who does not, and what a browser keeps. rule: R16
 */
import { expect } from 'chai';
import { sql } from '../../db/pool.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { newSecret } from '../../src/kernel/ids.ts';
import { silentLog } from '../../src/kernel/log.ts';
import { Issuer, SignIn } from '../../src/people/index.ts';
import { useDatabase } from '../support/database.ts';
import { CLIENT, type IssuerPerson, type Misbehaviour } from '../support/issuer.ts';
import { emptyLedger, run } from '../support/ledger.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { ORIGIN, type SignInRig, useSignIn } from '../support/sign-in-rig.ts';

describe('signing in', () => {
  const database = useDatabase();
  const openSignIn = useSignIn(database);
  let site: SignInRig;
  beforeEach(async () => {
    await emptyLedger(database.db);
    site = await openSignIn();
  });

  const count = async (table: 'web_session' | 'sign_in_attempt' | 'account') =>
    Number((await run(database.db, sql.unsafe`select count(*) as n from ${sql.identifier([table])}`))[0]?.['n']);

  it('brings an invited person to the page that they wanted, as the member that they are', async () => {
    await site.invite('ada@example.com', 'admin');
    const browser = site.browser();
    const arrived = await browser.open('/auth/login?return=%2Fopenapi.json%3Fa%3D1');
    expect([arrived.status, arrived.url]).to.deep.equal([200, `${ORIGIN}/openapi.json?a=1`]);
    const { body } = await browser.fetch('GET', '/session');
    expect(body.account.displayName).to.equal('Ada Lovelace');
    expect([body.workspace.slug, body.role]).to.deep.equal([site.rig.slug, 'admin']);
    expect((await browser.fetch('GET', '/auth/me')).body).to.deep.equal({
      account: body.account,
      workspaces: [{ slug: site.rig.slug, name: 'W', role: 'admin' }],
      signOutUrl: '/auth/logout',
    });
  });

  it('is the same account each time, also after its email has changed', async () => {
    await site.invite('ada@example.com');
    const first = (await (await site.signedIn()).fetch('GET', '/auth/me')).body.account;
    site.issuer.person = { sub: 'ada', email: 'countess@example.com', email_verified: true, name: 'Another Name' };
    expect((await (await site.signedIn()).fetch('GET', '/auth/me')).body.account).to.deep.equal(first);
  });

  it('tells a program without a session where to sign in', async () => {
    for (const path of ['/session', '/auth/me', `/workspaces/${site.rig.slug}/mentor/conversation`]) {
      const { status, body } = await site.browser().fetch('GET', path);
      expect([status, body.code, body.signInUrl], path).to.deep.equal([401, 'SIGNED_OUT', '/auth/login']);
    }
  });

  it('keeps a secret in a cookie that only this host and no script can read, and only its hash in the database', async () => {
    const browser = await site.signedIn();
    const [session, other] = ['__Host-heph_session', '__Host-heph_signin'].map((name) => browser.cookies.get(name));
    expect(session?.line).to.match(/^__Host-heph_session=[\w-]{43}; Path=\/; Max-Age=1209600; HttpOnly; SameSite=Lax; Secure$/);
    expect(other?.line).to.match(/^__Host-heph_signin=[\w-]{43}; Path=\/; Max-Age=1200; HttpOnly; SameSite=Lax; Secure$/);
    const rows = await run(database.db, sql.unsafe`select row_to_json(s)::text as row from web_session s`);
    expect(rows).to.have.length(1);
    expect(String(rows[0]?.['row'])).to.not.include(session?.value as string);
  });

  it('works on this machine without https, with cookies of that kind', async () => {
    const local = await openSignIn({ origin: 'http://localhost:1' });
    const browser = await local.signedIn();
    expect(browser.cookies.get('heph_session')?.line).to.match(/; HttpOnly; SameSite=Lax$/);
    expect((await browser.fetch('GET', '/auth/me')).status).to.equal(200);
  });

  it('shows somebody whom nobody has invited a page that says so, until somebody does', async () => {
    const browser = site.browser();
    const { status, url, text } = await browser.open('/auth/login?return=/');
    expect([status, url]).to.deep.equal([200, `${ORIGIN}/auth/no-access`]);
    expect(text)
      .to.match(/data-reason="no-access"/)
      .and.match(/Ask the operator/);
    expect((await browser.fetch('GET', '/session')).body.code).to.equal('FORBIDDEN');
    expect((await browser.fetch('GET', `/workspaces/${site.rig.slug}/mentor/conversation`)).body.code).to.equal('WORKSPACE_NOT_FOUND');
    await site.invite('ada@example.com');
    expect((await browser.fetch('GET', '/session')).status).to.equal(200);
  });

  for (const [what, person] of [
    ['that the issuer has not verified', { email_verified: false }],
    ['whose verification is a word', { email_verified: 'true' }],
    ['with a character that nobody sees', { email: 'ada@example.com\u200b', email_verified: true }],
    ['with a letter that only looks like one of the invitation', { email: 'ada@example.\u212Aom', email_verified: true }],
  ] as const) {
    it(`does not take an email ${what} for an invitation`, async () => {
      await site.invite(what.startsWith('with a letter') ? 'ada@example.kom' : 'ada@example.com');
      site.issuer.person = { sub: 'eve', email: 'ada@example.com', name: 'Eve', ...(person as Partial<IssuerPerson>) };
      expect((await site.browser().open('/auth/login')).url).to.equal(`${ORIGIN}/auth/no-access`);
    });
  }

  it('takes an email for the same in capital letters, and from userinfo where the issuer puts it', async () => {
    await site.invite('ADA@example.com');
    site.issuer.person = { sub: 'ada', email: 'Ada@Example.COM', email_verified: true };
    site.issuer.misbehaviour = { emailOnlyInUserinfo: true };
    const { body } = await (await site.signedIn()).fetch('GET', '/auth/me');
    expect(body.workspaces).to.have.length(1);
  });

  it('gives an invitation to the first who comes with its email, and to nobody after that', async () => {
    await site.invite('ada@example.com');
    await site.signedIn();
    site.issuer.person = { sub: 'second', email: 'ada@example.com', email_verified: true };
    expect((await site.browser().open('/auth/login')).url).to.equal(`${ORIGIN}/auth/no-access`);
  });

  it('makes one account of a person who signs in eight times at once', async () => {
    await site.invite('ada@example.com');
    const before = await count('account');
    const browsers = await Promise.all(Array.from({ length: 8 }, () => site.signedIn()));
    const accounts = await Promise.all(browsers.map(async (browser) => (await browser.fetch('GET', '/auth/me')).body.account.id));
    expect(new Set(accounts).size).to.equal(1);
    expect(await count('account')).to.equal(before);
  });

  for (const [what, misbehaviour, reason, status] of [
    ['says no', { refuses: 'access_denied' }, 'denied', 403],
    ['has a bad moment', { refuses: 'temporarily_unavailable' }, 'unreachable', 503],
    ['answers with an error of its own', { refuses: 'words <b>of the provider</b>' }, 'invalid', 502],
    ['sends the nonce of another sign-in', { claims: { nonce: 'another' } }, 'invalid', 502],
    ['sends no nonce', { claims: { nonce: undefined } }, 'invalid', 502],
    ['names another issuer', { claims: { iss: 'https://evil.example' } }, 'invalid', 502],
    ['sends a token for another client', { claims: { aud: 'another' } }, 'invalid', 502],
    ['sends a token for several, given to another', { claims: { aud: ['heph-of-the-spec', 'x'], azp: 'x' } }, 'invalid', 502],
    ['sends a token whose time is over', { claims: { exp: 1 } }, 'invalid', 502],
    ['sends a token without a signature', { signature: 'none' }, 'invalid', 502],
    ['names a subject that is too long', { claims: { sub: 'x'.repeat(256) } }, 'invalid', 502],
    ['names a subject that nobody can store', { claims: { sub: 'ada\u0000' } }, 'invalid', 502],
    ['signs with the public key as a secret', { signature: 'HS256' }, 'invalid', 502],
    ['signs with a key that is not its own', { signature: 'stranger' }, 'invalid', 502],
    ['takes no code', { tokenStatus: 400 }, 'invalid', 502],
    ['fails when the code is exchanged', { tokenStatus: 503 }, 'unreachable', 503],
  ] as const satisfies readonly (readonly [string, Misbehaviour, string, number])[]) {
    it(`gives no session when the issuer ${what}, and says it in our words`, async () => {
      await site.invite('ada@example.com');
      site.issuer.misbehaviour = misbehaviour;
      const browser = site.browser();
      const shown = await browser.open('/auth/login');
      expect([shown.status, shown.text.match(/data-reason="(.*?)"/)?.[1]]).to.deep.equal([status, reason]);
      expect(shown.text).to.not.match(/provider<|of_the_provider|of the provider/);
      expect(browser.cookies.has('__Host-heph_session')).to.equal(false);
      expect(await count('web_session')).to.equal(0);
    });
  }

  it('says that the issuer does not answer, asks it no more than once in a while, and works again when it does', async () => {
    const clock = new ManualClock();
    const issuer = new Issuer({
      ...{ issuer: new URL(site.issuer.url), clientId: CLIENT.id, clientSecret: null, clock, log: silentLog, timeoutMs: 200 },
    });
    site.issuer.misbehaviour = { silent: true };
    const crowd = await Promise.allSettled(Array.from({ length: 5 }, () => issuer.configuration()));
    for (const one of crowd) expect(one).to.have.nested.property('reason.code', 'SIGN_IN_UNAVAILABLE');
    site.issuer.misbehaviour = { broken: 500 };
    await issuer.configuration().catch(() => {});
    expect(site.issuer.seen).to.have.length(1);
    clock.advance(2_000);
    await issuer.configuration().catch(() => {});
    expect(site.issuer.seen).to.have.length(2);
    site.issuer.misbehaviour = {};
    clock.advance(2_000);
    await issuer.configuration();
    // What it knows it keeps, also when it would like to read it again.
    site.issuer.misbehaviour = { broken: 500 };
    clock.advance(3_600_001);
    expect((await issuer.configuration()).serverMetadata().issuer).to.equal(site.issuer.url);
    expect(site.issuer.seen).to.have.length(4);
  });

  it('says that the issuer does not answer when it falls silent, or is gone, in the middle of a sign-in', async () => {
    const settings = { issuer: new URL(site.issuer.url), clientId: CLIENT.id, clientSecret: CLIENT.secret, timeoutMs: 300 };
    const door = new SignIn({
      ...{
        db: database.db,
        log: silentLog,
        changes: site.rig.live.changes,
        scopes: 'openid',
        timeZone: 'UTC',
        sessionMaxMs: 1_000,
        sessionIdleMs: 1_000,
      },
      ...{ callbackUrl: new URL(`${ORIGIN}/auth/callback`), homeUrl: new URL(ORIGIN) },
      issuer: new Issuer({ ...settings, clock: systemClock, log: silentLog }),
    });
    const browser = newSecret();
    const back = async () => {
      const url = await door.begin({ browser, returnPath: '/' });
      const response = await fetch(url, { redirect: 'manual' });
      return { browser, query: new URL(response.headers.get('location') as string).search.slice(1), replaces: null };
    };
    const [silent, gone] = [await back(), await back()];
    site.issuer.misbehaviour = { silent: true };
    expect(await door.finish(silent)).to.deep.equal({ kind: 'refused', reason: 'unreachable' });
    await site.issuer.close();
    expect(await door.finish(gone)).to.deep.equal({ kind: 'refused', reason: 'unreachable' });
  });

  it('shows a page when the issuer does not answer', async () => {
    site.issuer.misbehaviour = { broken: 500 };
    const shown = await site.browser().open('/auth/login');
    expect([shown.status, shown.text.match(/data-reason="(.*?)"/)?.[1]]).to.deep.equal([503, 'unreachable']);
    expect(await count('sign_in_attempt')).to.equal(0);
  });

  for (const alg of ['ES256', 'EdDSA']) {
    it(`takes tokens that are signed with ${alg}`, async () => {
      await site.issuer.rotate(alg);
      expect((await (await site.signedIn()).fetch('GET', '/auth/me')).status).to.equal(200);
    });
  }

  for (const [asked, arrives] of [
    ['/openapi.json', '/openapi.json'],
    ['//evil.example', '/'],
    ['/\\evil.example', '/'],
    ['/..//evil.example', '/'],
    ['/%09/evil.example', '/%09/evil.example'],
    ['/\t/evil.example', '/'],
    ['https://evil.example/', '/'],
    ['https:evil.example', '/'],
    ['javascript:alert(1)', '/'],
    ['evil', '/'],
    ['', '/'],
    ['/auth/login', '/'],
    ['/auth/../auth/logout', '/'],
    [`/${'a'.repeat(2_000)}`, '/'],
  ] as const) {
    it(`never sends a browser to another site: ${JSON.stringify(asked.slice(0, 30))}`, async () => {
      await site.invite('ada@example.com');
      const arrived = await site.browser().open(`/auth/login?return=${encodeURIComponent(asked)}`);
      expect(arrived.url).to.equal(ORIGIN + arrives);
    });
  }
});
