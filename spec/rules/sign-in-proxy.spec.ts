/**
 * Behind a reverse proxy: the one name and the one origin of HEPH_PUBLIC_URL are answered, whatever else a request says about itself.
 */
import { expect } from 'chai';
import { useDatabase } from '../support/database.ts';
import { emptyLedger } from '../support/ledger.ts';
import type { SignInBrowser } from '../support/sign-in-browser.ts';
import { ORIGIN, type SignInRig, useSignIn } from '../support/sign-in-rig.ts';

describe('behind a proxy', () => {
  const database = useDatabase();
  const openSignIn = useSignIn(database);
  let site: SignInRig;
  let browser: SignInBrowser;
  beforeEach(async () => {
    await emptyLedger(database.db);
    site = await openSignIn();
    await site.invite('ada@example.com');
    browser = await site.signedIn();
  });

  const read = (headers: Record<string, string>) => browser.fetch('GET', '/session', { headers });
  let asked = 0;
  const write = (headers: Record<string, string>) =>
    browser.fetch('POST', `/workspaces/${site.rig.slug}/mentor/questions`, { headers, body: { requestId: `r${++asked}`, text: 'Why?' } });

  for (const host of ['heph.example', 'HEPH.example', 'heph.example:443']) {
    it(`answers to the name ${host}`, async () => {
      expect((await read({ host })).status).to.equal(200);
    });
  }

  for (const host of [
    'evil.example',
    'heph.example.evil.example',
    'xheph.example',
    'heph.example:8080',
    'u@heph.example',
    'localhost',
    '127.0.0.1',
    '',
  ]) {
    it(`refuses the name "${host}", for the page and the sign-in too, also when a forwarded header says otherwise`, async () => {
      const forwarded = { 'x-forwarded-host': 'heph.example', 'x-forwarded-proto': 'https', forwarded: 'host=heph.example' };
      for (const path of ['/session', '/', '/auth/login', '/auth/no-access', `/workspaces/${site.rig.slug}/mentor/conversation`]) {
        const { status, body } = await browser.fetch('GET', path, { headers: { host, ...forwarded } });
        expect([status, body.code], path).to.deep.equal([403, 'FORBIDDEN']);
        expect(body.detail).to.include(ORIGIN);
      }
    });
  }

  it('takes a write of its own page', async () => {
    expect((await write({})).status).to.equal(202);
  });

  for (const [what, headers] of [
    ['another site', { origin: 'https://evil.example' }],
    ['a neighbour in the same domain', { origin: 'https://other.heph.example', 'sec-fetch-site': 'same-site' }],
    ['the same name without https', { origin: 'http://heph.example' }],
    ['another port', { origin: 'https://heph.example:8443' }],
    ['a page without an origin', { origin: 'null' }],
    ['nobody says who, with a cookie', { origin: '' }],
    ['a name that only begins like ours', { origin: 'https://heph.example.evil.example' }],
  ] as const) {
    it(`refuses a write and a sign-out from ${what}`, async () => {
      expect((await write(headers)).body.code).to.equal('ORIGIN_REFUSED');
      const out = await browser.fetch('POST', '/auth/logout', { headers });
      expect([out.status, out.body.code]).to.deep.equal([403, 'ORIGIN_REFUSED']);
      expect((await read({})).status).to.equal(200);
    });
  }

  for (const [what, headers] of [
    ['an image of another site', { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' }],
    ['a script of a neighbour', { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'cors', origin: 'https://other.heph.example' }],
    ['a frame of another site', { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' }],
    ['an old browser that names another origin', { 'sec-fetch-site': '', 'sec-fetch-mode': '', origin: 'https://evil.example' }],
  ] as const) {
    it(`refuses a read by ${what}, so that nobody else uses up the streams of a person`, async () => {
      expect((await read(headers)).body.code).to.equal('ORIGIN_REFUSED');
      const events = await browser.fetch('GET', `/workspaces/${site.rig.slug}/mentor/events`, { headers });
      expect(events.body.code).to.equal('ORIGIN_REFUSED');
    });
  }

  it('answers a link that a person follows, and a program', async () => {
    const followed = await read({ 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' });
    expect(followed.status).to.equal(200);
    expect((await read({ 'sec-fetch-site': '', 'sec-fetch-mode': '' })).status).to.equal(200);
  });

  it('sends the browser back to the public name, never to the one of the server', async () => {
    const { url } = await browser.open('/auth/login', /\/authorize/);
    expect(new URL(url).searchParams.get('redirect_uri')).to.equal(`${ORIGIN}/auth/callback`);
    expect(new URL(url).searchParams.get('code_challenge_method')).to.equal('S256');
  });
});
