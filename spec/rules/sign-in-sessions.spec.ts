/**
 * What a session lets see, and how it ends: sign-out, idleness, age, removal. A stream ends with what it was opened by. rule: R16
 */
import { expect } from 'chai';
import { sweepSignIns } from '../../db/people/sessions.ts';
import { sql } from '../../db/pool.ts';
import { silentLog } from '../../src/kernel/log.ts';
import { SignInSweeper } from '../../src/people/index.ts';
import { useDatabase } from '../support/database.ts';
import { emptyLedger, run } from '../support/ledger.ts';
import { ManualClock } from '../support/manual-clock.ts';
import type { SignInBrowser } from '../support/sign-in-browser.ts';
import { ORIGIN, type SignInRig, type SignInRigOptions, useSignIn } from '../support/sign-in-rig.ts';
import { SseClient, StreamRefused } from '../support/sse-client.ts';

const HOST = 'heph.example';
const DAY_MS = 86_400_000;

describe('a session', () => {
  const database = useDatabase();
  const openSignIn = useSignIn(database);
  beforeEach(() => emptyLedger(database.db));

  async function open(options: SignInRigOptions = {}): Promise<SignInRig> {
    const site = await openSignIn({ pingMs: 50, ...options });
    await site.invite('ada@example.com');
    return site;
  }

  const stream = (site: SignInRig, browser: SignInBrowser): Promise<SseClient> =>
    site.rig.events({ headers: { host: HOST, cookie: browser.cookieHeader } });
  const code = async (browser: SignInBrowser) => (await browser.fetch('GET', '/auth/me')).body.code;
  const age = (change: string) =>
    run(
      database.db,
      sql.unsafe`update web_session set ends_at = least(ends_at - ${change}::interval, last_moment_at), last_seen_at = last_seen_at - ${change}::interval,
      last_moment_at = last_moment_at - ${change}::interval returning 1`,
    );

  it('that is signed out closes its streams with the next ping, and no other', async () => {
    const site = await open();
    const [here, there] = [await site.signedIn(), await site.signedIn()];
    const streams = [await stream(site, here), await stream(site, there)] as const;
    for (const one of streams) await one.next('snapshot');
    const { status, body } = await here.fetch('POST', '/auth/logout');
    expect(status).to.equal(200);
    const url = new URL(body.issuerSignOutUrl);
    expect(url.origin + url.pathname).to.equal(`${site.issuer.url}/logout`);
    expect(url.searchParams.get('post_logout_redirect_uri')).to.equal(`${ORIGIN}/`);
    await streams[0].ended;
    expect(await code(here)).to.equal('SIGNED_OUT');
    expect([...here.cookies.keys()]).to.deep.equal([]);
    const pings = streams[1].comments.length;
    await streams[1].until(() => streams[1].comments.length > pings);
    expect(await code(there)).to.equal(undefined);
    await streams[1].close();
  });

  it('that is signed out gets not one event more, also before the next ping', async () => {
    const site = await open({ pingMs: 3_600_000 });
    const [here, there] = [await site.signedIn(), await site.signedIn()];
    const gone = await stream(site, here);
    await gone.next('snapshot');
    await here.fetch('POST', '/auth/logout');
    const asked = await there.fetch('POST', `/workspaces/${site.rig.slug}/mentor/questions`, {
      body: { requestId: 'r1', text: 'Secret?' },
    });
    expect(asked.status).to.equal(202);
    await gone.ended;
    expect(gone.received.map(({ event }) => event)).to.deep.equal(['snapshot']);
  });

  it('that is signed out on one server closes its streams on the other', async () => {
    const site = await open();
    const other = await openSignIn({ pingMs: 50, person: site.rig.person, env: { HEPH_OIDC_ISSUER: site.issuer.url } });
    const browser = await site.signedIn();
    const far = await stream(other, browser);
    await far.next('snapshot');
    await browser.fetch('POST', '/auth/logout');
    await far.ended;
  });

  it('can be signed out twice, and from a page without a script', async () => {
    const site = await open();
    const browser = await site.signedIn();
    const copy = browser.copy();
    for (let n = 0; n < 2; n++) expect((await browser.fetch('POST', '/auth/logout')).status).to.equal(200);
    const shown = await copy.fetch('POST', '/auth/logout', { headers: { accept: 'text/html' } });
    expect([shown.status, shown.text.match(/data-reason="(.*?)"/)?.[1]]).to.deep.equal([200, 'signed-out']);
    expect(shown.text).to.include(`href="${site.issuer.url}/logout?`);
  });

  it('can be signed out while the issuer is away', async () => {
    const site = await open();
    const browser = await site.signedIn();
    site.issuer.misbehaviour = { broken: 500 };
    expect((await browser.fetch('POST', '/auth/logout')).status).to.equal(200);
    expect(await code(browser)).to.equal('SIGNED_OUT');
  });

  it('ends a day after its last use, and its streams with it', async () => {
    const site = await open();
    const browser = await site.signedIn();
    await age('23 h 59 min');
    expect(await code(browser)).to.equal(undefined); // which is a use
    await age('23 h 59 min');
    const live = await stream(site, browser);
    await live.next('snapshot');
    await age('24 h 1 min');
    await live.ended;
    expect(await code(browser)).to.equal('SIGNED_OUT');
  });

  it('ends 14 days after the sign-in, however much it is used', async () => {
    const site = await open();
    const browser = await site.signedIn();
    for (let day = 1; day < 14; day++) {
      await age('23 h 59 min');
      expect(await code(browser), `day ${day}`).to.equal(undefined);
    }
    await age('23 h');
    expect(await code(browser)).to.equal(undefined);
    await age('2 h');
    expect(await code(browser)).to.equal('SIGNED_OUT');
  });

  it('lasts as long as the settings say', async () => {
    const site = await open({ env: { HEPH_SESSION_MAX: '30d', HEPH_SESSION_IDLE: '25d' } });
    const browser = await site.signedIn();
    expect(browser.cookies.get('__Host-heph_session')?.line).to.include('Max-Age=2592000;');
    const [row] = await run(
      database.db,
      sql.unsafe`select extract(epoch from ends_at - created_at) * 1000 as idle, extract(epoch from last_moment_at - created_at) * 1000 as max from web_session`,
    );
    expect(Number(row?.['idle']) / DAY_MS).to.be.closeTo(25, 0.01);
    expect(Number(row?.['max']) / DAY_MS).to.be.closeTo(30, 0.01);
  });

  it('is written once a minute and not with each request', async () => {
    const site = await open();
    const browser = await site.signedIn();
    const seen = async () => (await run(database.db, sql.unsafe`select xmin::text as x from web_session`))[0]?.['x'];
    const before = await seen();
    for (let n = 0; n < 3; n++) await browser.fetch('GET', '/auth/me');
    expect(await seen()).to.equal(before);
    await age('61 s');
    const aged = await seen();
    await browser.fetch('GET', '/auth/me');
    expect(await seen()).to.not.equal(aged);
  });

  it('is taken away when it has ended, in bounded batches, and no other', async () => {
    const site = await open();
    for (let n = 0; n < 3; n++) await site.signedIn();
    await age('25 h');
    const browser = await site.signedIn();
    await browser.open('/auth/login', /authorize/);
    await run(database.db, sql.unsafe`update sign_in_attempt set ends_at = clock_timestamp() returning 1`);
    expect([await sweepSignIns(database.db, 2), await sweepSignIns(database.db, 2), await sweepSignIns(database.db, 2)]).to.deep.equal([
      3, 1, 0,
    ]);
    expect(await code(browser)).to.equal(undefined);
  });

  it('that has ended is taken away by itself, now and then', async () => {
    const site = await open();
    await site.signedIn();
    await age('25 h');
    const clock = new ManualClock();
    const sweeper = new SignInSweeper({ db: database.db, clock, log: silentLog });
    sweeper.start();
    clock.advance(600_000);
    await sweeper.stop();
    expect(await run(database.db, sql.unsafe`select 1 from web_session`)).to.deep.equal([]);
    expect(clock.timers).to.equal(0);
  });

  it('of a member who is removed sees the workspace no more: 404, and its streams close', async () => {
    const site = await open();
    const browser = await site.signedIn();
    const live = await stream(site, browser);
    await live.next('snapshot');
    await site.people.admin.changeMember({ workspace: site.rig.slug, member: 'ada@example.com', role: null });
    await live.ended;
    const { status, body } = await browser.fetch('GET', `/workspaces/${site.rig.slug}/mentor/conversation`);
    expect([status, body.code]).to.deep.equal([404, 'WORKSPACE_NOT_FOUND']);
    expect((await browser.fetch('GET', '/auth/me')).body.workspaces).to.deep.equal([]);
  });

  it('shows each of two accounts its own conversation only, and each workspace to its members only', async () => {
    const site = await open();
    const ada = await site.signedIn();
    site.issuer.person = { sub: 'bob', email: 'bob@example.com', email_verified: true, name: 'Bob' };
    await site.invite('bob@example.com');
    await site.people.admin.addWorkspace({ slug: 'second', name: 'Second' });
    await site.people.admin.addMember({ email: 'bob@example.com', workspace: 'second', role: 'operator' });
    const bob = await site.signedIn();
    const at = (slug: string) => `/workspaces/${slug}/mentor/conversation`;
    await ada.fetch('POST', `/workspaces/${site.rig.slug}/mentor/questions`, { body: { requestId: 'r', text: 'Mine?' } });
    expect((await ada.fetch('GET', at(site.rig.slug))).status).to.equal(200);
    expect((await bob.fetch('GET', at(site.rig.slug))).body.code).to.equal('CONVERSATION_NOT_FOUND');
    expect((await ada.fetch('GET', at('second'))).body.code).to.equal('WORKSPACE_NOT_FOUND');
    expect((await ada.fetch('GET', '/session?workspace=second')).body.code).to.equal('WORKSPACE_NOT_FOUND');
    expect((await bob.fetch('GET', '/session?workspace=second')).body).to.deep.include({ role: 'operator' });
    expect((await bob.fetch('GET', '/session')).body).to.deep.include({ role: 'member' });
    for (const bad of ['second&workspace=x', '%00', '']) {
      expect((await bob.fetch('GET', `/session?workspace=${bad}`)).body.code, bad).to.equal('WORKSPACE_NOT_FOUND');
    }
  });

  it('may open as many streams as the settings say, in all workspaces together; the next is refused with a reason', async () => {
    const site = await open({ streamsPerAccountMax: 2 });
    await site.people.admin.addWorkspace({ slug: 'second', name: 'Second' });
    await site.people.admin.addMember({ email: 'ada@example.com', workspace: 'second', role: 'member' });
    const browser = await site.signedIn();
    const first = await stream(site, browser);
    const second = await browser.fetch('HEAD', '/workspaces/second/mentor/events');
    expect(second.status).to.equal(200);
    const events = (slug: string) =>
      SseClient.connect(`http://127.0.0.1:${site.rig.webPort}/workspaces/${slug}/mentor/events`, {
        headers: { host: HOST, cookie: browser.cookieHeader },
      });
    const other = await events('second');
    const refused = await events('second').catch((error: unknown) => error);
    expect(refused).to.be.instanceOf(StreamRefused);
    expect((refused as StreamRefused).status).to.equal(429);
    expect((refused as StreamRefused).problem.detail).to.match(/2 event streams open, which is the limit/);
    await other.close();
    await first.close();
  });

  it('by a token ends with the token: its stream closes with the next ping', async () => {
    const clock = new ManualClock(Date.now());
    const site = await open({ clock, pingMs: 15_000 });
    await site.signedIn();
    const token = await site.issuer.token({ exp: Math.floor(Date.now() / 1_000) + 60 });
    const live = await site.rig.events({ headers: { host: HOST, authorization: `Bearer ${token}` } });
    await live.next('snapshot');
    clock.advance(60_000); // the clocks may differ by ten seconds
    await live.until(() => live.comments.length > 0);
    clock.advance(15_000);
    await live.ended;
  });
});
