/**
 * What somebody who wants into another person's account may try with the sign-in: stolen and planted callbacks, forged requests, floods.
 * rule: R16
 */
import { expect } from 'chai';
import { sql } from '../../db/pool.ts';
import { newSecret } from '../../src/kernel/ids.ts';
import { secretHash } from '../../src/kernel/secret-hash.ts';
import { useDatabase } from '../support/database.ts';
import { emptyLedger, run } from '../support/ledger.ts';
import type { Shown, SignInBrowser } from '../support/sign-in-browser.ts';
import { ORIGIN, type SignInRig, useSignIn } from '../support/sign-in-rig.ts';

const EVE = { sub: 'eve', email: 'eve@example.com', email_verified: true, name: 'Eve' };
const ADA = { sub: 'ada', email: 'ada@example.com', email_verified: true, name: 'Ada Lovelace' };
const COOKIE = '__Host-heph_session';

describe('an attack on the sign-in', () => {
  const database = useDatabase();
  const openSignIn = useSignIn(database);
  let site: SignInRig;
  beforeEach(async () => {
    await emptyLedger(database.db);
    site = await openSignIn();
    await site.invite(ADA.email);
    await site.invite(EVE.email);
  });

  /** The address to which the issuer sends the browser back, not opened yet. */
  async function callbackOf(browser: SignInBrowser): Promise<string> {
    return (await browser.open('/auth/login?return=/openapi.json', /\/auth\/callback\?/)).url;
  }

  async function who(browser: SignInBrowser): Promise<string | undefined> {
    return (await browser.fetch('GET', '/auth/me')).body.account?.displayName;
  }

  function expectRefused(shown: Shown, browser: SignInBrowser): void {
    expect([shown.status, shown.text.match(/data-reason="(.*?)"/)?.[1]]).to.deep.equal([400, 'expired']);
    expect(browser.cookies.has(COOKIE)).to.equal(false);
  }

  it('with a stolen callback gets nothing in another browser, and the person still gets in', async () => {
    const [ada, thief, other] = [site.browser(), site.browser(), site.browser()];
    const stolen = await callbackOf(ada);
    expectRefused(await thief.open(stolen), thief);
    await other.open('/auth/login', /\/authorize/); // with a secret of its own
    expectRefused(await other.open(stolen), other);
    await ada.open(stolen);
    expect(await who(ada)).to.equal('Ada Lovelace');
  });

  it('with a callback that was used gets nothing, not even in the browser of the person', async () => {
    const ada = site.browser();
    const used = await callbackOf(ada);
    await ada.open(used);
    const copy = ada.copy();
    copy.cookies.delete(COOKIE);
    expectRefused(await copy.open(used), copy);
    expect(await who(ada)).to.equal('Ada Lovelace');
  });

  it('that plants its own callback signs nobody in to its account', async () => {
    const [ada, eve] = [await site.signedIn(), site.browser()];
    site.issuer.person = EVE;
    const planted = await callbackOf(eve);
    const shown = await ada.open(planted);
    expect(shown.status).to.equal(400);
    expect(await who(ada)).to.equal('Ada Lovelace');
  });

  for (const [what, change] of [
    ['another state', (url: URL) => url.searchParams.set('state', newSecret())],
    ['no state', (url: URL) => url.searchParams.delete('state')],
    ['two states', (url: URL) => url.searchParams.append('state', newSecret())],
    ['the code of another sign-in', (url: URL) => url.searchParams.set('code', 'guessed')],
    ['no code', (url: URL) => url.searchParams.delete('code')],
    [
      'nothing',
      (url: URL) => {
        url.search = '';
      },
    ],
  ] as const) {
    it(`with ${what} gets nothing`, async () => {
      const browser = site.browser();
      const url = new URL(await callbackOf(browser));
      change(url);
      const shown = await browser.open(url.href);
      expect(shown.status).to.be.oneOf([400, 502]);
      expect(browser.cookies.has(COOKIE)).to.equal(false);
    });
  }

  it('with the code of a person and the state of its own browser gets nothing: the code is bound to the verifier', async () => {
    const [ada, eve] = [site.browser(), site.browser()];
    const stolen = new URL(await callbackOf(ada));
    site.issuer.person = EVE;
    const own = new URL(await callbackOf(eve));
    own.searchParams.set('code', stolen.searchParams.get('code') as string);
    const shown = await eve.open(own.href);
    expect([shown.status, shown.text.match(/data-reason="(.*?)"/)?.[1]]).to.deep.equal([502, 'invalid']);
    expect(eve.cookies.has(COOKIE)).to.equal(false);
  });

  it('that plants a session cookie does not learn the session: each sign-in makes a new one and ends the old one', async () => {
    const browser = site.browser();
    const planted = newSecret();
    browser.cookies.set(COOKIE, { value: planted, line: '' });
    await browser.open('/auth/login');
    const first = browser.cookies.get(COOKIE)?.value as string;
    expect(first).to.not.equal(planted);
    const old = browser.copy();
    await browser.open('/auth/login');
    expect(browser.cookies.get(COOKIE)?.value).to.not.equal(first);
    expect((await old.fetch('GET', '/auth/me')).body.code).to.equal('SIGNED_OUT');
    expect(await who(browser)).to.equal('Ada Lovelace');
  });

  it('does not come from two tabs that sign in at the same time: both arrive', async () => {
    const browser = site.browser();
    const [one, two] = [await callbackOf(browser), await callbackOf(browser)];
    expect((await browser.open(two)).url).to.equal(`${ORIGIN}/openapi.json`);
    expect((await browser.open(one)).url).to.equal(`${ORIGIN}/openapi.json`);
    expect(await who(browser)).to.equal('Ada Lovelace');
    const rows = await run(database.db, sql.unsafe`select 1 as one from web_session`);
    expect(rows).to.have.length(1);
  });

  it('with a sign-in that took longer than ten minutes gets nothing', async () => {
    const browser = site.browser();
    const late = await callbackOf(browser);
    await run(database.db, sql.unsafe`update sign_in_attempt set ends_at = clock_timestamp() returning 1`);
    expectRefused(await browser.open(late), browser);
  });

  it('with a session of a copied database gets nothing: a hash is no secret', async () => {
    const ada = await site.signedIn();
    const [row] = await run(
      database.db,
      sql.unsafe`select encode(id_hash, 'hex') as hex, encode(id_hash, 'base64') as base64 from web_session`,
    );
    for (const value of [row?.['hex'], String(row?.['base64']).replaceAll('+', '-').replaceAll('/', '_').slice(0, 43)]) {
      const thief = site.browser();
      thief.cookies.set(COOKIE, { value: String(value), line: '' });
      expect((await thief.fetch('GET', '/auth/me')).body.code).to.equal('SIGNED_OUT');
    }
    expect(await who(ada)).to.equal('Ada Lovelace');
  });

  it('cannot begin or end a sign-in from an image or a frame of another site', async () => {
    const browser = site.browser();
    for (const path of ['/auth/login', '/auth/callback?state=x&code=y']) {
      const headers = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' };
      expect((await browser.fetch('GET', path, { headers })).body.code, path).to.equal('ORIGIN_REFUSED');
    }
  });

  it('that begins many sign-ins in one browser keeps ten of them, the newest', async () => {
    const browser = site.browser();
    const urls: string[] = [];
    for (let n = 0; n < 11; n++) urls.push(await callbackOf(browser));
    const [oldest, second] = urls;
    const late = browser.copy();
    expectRefused(await late.open(oldest as string), late);
    expect((await browser.open(second as string)).url).to.equal(`${ORIGIN}/openapi.json`);
  });

  it('that begins sign-ins in many browsers fills no table, and the newest still work', async () => {
    await run(
      database.db,
      sql.unsafe`insert into sign_in_attempt (state_hash, browser_hash, return_path, ends_at, created_at)
        select sha256(n::text::bytea), sha256(('b' || n)::bytea), '/', clock_timestamp() + interval '10 minutes', clock_timestamp() - n * interval '1 ms'
        from generate_series(1, 10050) n returning 1`,
    );
    const browser = site.browser();
    const url = await callbackOf(browser);
    const [row] = await run(database.db, sql.unsafe`select count(*) as n from sign_in_attempt`);
    expect(row?.['n']).to.equal(10_000);
    expect((await browser.open(url)).url).to.equal(`${ORIGIN}/openapi.json`);
  });

  it('of a person who signs in everywhere keeps fifty sessions, those that were used last', async () => {
    const oldest = await site.signedIn();
    const [row] = await run(
      database.db,
      sql.unsafe`update web_session set last_seen_at = last_seen_at - interval '1 h' returning account_id`,
    );
    await run(
      database.db,
      sql.unsafe`insert into web_session (id_hash, account_id, ends_at, last_moment_at)
        select sha256(n::text::bytea), ${String(row?.['account_id'])}::uuid, clock_timestamp() + interval '1 h', clock_timestamp() + interval '1 h'
        from generate_series(1, 48) n returning 1`,
    );
    const sessions = async () => Number((await run(database.db, sql.unsafe`select count(*) as n from web_session`))[0]?.['n']);
    await site.signedIn();
    expect([await sessions(), await who(oldest)]).to.deep.equal([50, 'Ada Lovelace']);
    await run(
      database.db,
      sql.unsafe`update web_session set last_seen_at = last_seen_at - interval '1 h'
      where id_hash = decode(${secretHash(oldest.cookies.get(COOKIE)?.value as string)}, 'hex') returning 1`,
    );
    await site.signedIn();
    expect([await sessions(), await who(oldest)]).to.deep.equal([50, undefined]);
  });
});
