/**
 * The person's account on the page: signed out, without a workspace, the menu, and the choice whether an AI model works for them.
 * On the stand-in server; the last one signs in and out on the real one, with an issuer on another site.
 */
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import type { Entry } from '../../src/contract/web.ts';
import { type Browsing, useBrowser } from '../support/browser.ts';
import { useDatabase } from '../support/database.ts';
import { type FakeOptions, FakeWebServer } from '../support/fake-web-server.ts';
import { freePort } from '../support/free-port.ts';
import { DESK, looksRight } from '../support/page-looks.ts';
import { useSignIn } from '../support/sign-in-rig.ts';

const ready = (page: Page) => page.locator('main.scroller[aria-busy="false"]').waitFor();
const openMenu = (page: Page) => page.getByRole('button', { name: 'Menu', exact: true }).click();
const THREAD = '?thread=0199a1b2-0000-7000-8000-000000000001';
const HOME = { slug: 'home', name: 'Home', role: 'member' as const };
const FORGE = { slug: 'forge', name: 'The other forge', role: 'admin' as const };

describe('a person’s account', function () {
  this.timeout(120_000);
  const inBrowser = useBrowser();
  let server: FakeWebServer | null = null;
  afterEach(async () => {
    await server?.close();
    server = null;
  });

  async function open(browsing: Browsing, options: FakeOptions & { refuseWith?: 401 | 403; at?: string }): Promise<Page> {
    server = new FakeWebServer(options);
    server.refuseWith = options.refuseWith ?? null;
    return browsing.open((await server.listen()) + (options.at ?? ''), { viewport: DESK });
  }

  it(
    'that is signed out leads to the sign-in, and from there back to the thread that was asked for',
    inBrowser(async (browsing) => {
      browsing.expects(/Failed to load resource/);
      const page = await open(browsing, { refuseWith: 401, at: `/${THREAD}` });
      await page.getByText('You are signed out.').waitFor();
      const href = await page.getByRole('link', { name: 'Sign in' }).getAttribute('href');
      expect(new URL(href ?? '', 'https://own.example').searchParams.get('return')).to.equal(`/${THREAD}`);
      expect(href).to.match(/^\/auth\/login\?/);
      await looksRight(page, 'start-signed-out');
    }),
  );

  it(
    'that is signed out in the middle signs in and is back at the same message of the same thread, with its draft',
    inBrowser(async (browsing) => {
      browsing.expects(/Failed to load resource/);
      server = new FakeWebServer({ history: 30 });
      const fake = server;
      const { ledger } = fake.beginThread(fake.ledger.entries[1] as Entry);
      for (let n = 1; n <= 30; n++) {
        ledger.ask(`t${n}`, `Question ${n} of the thread?`);
        ledger.claim();
        ledger.end('DONE', [`Answer ${n}.`]);
      }
      const context = await browsing.context({ viewport: DESK });
      // The sign-in is another site; what matters here is that the browser leaves and comes back.
      await context.route('**/auth/login?**', (route) => {
        fake.refuseWith = null;
        const back = new URL(route.request().url()).searchParams.get('return') ?? '';
        return route.fulfill({ status: 303, headers: { location: back } });
      });
      const at = `${await fake.listen()}/?thread=${ledger.conversationId}`;
      const page = await browsing.open(at, { context });
      await ready(page);
      await page.locator('#composer-input').fill('Half a thought');
      await page.locator('.message', { hasText: 'Question 7 of the thread?' }).evaluate((message) => message.scrollIntoView());
      fake.refuseWith = 401;
      fake.dropStreams();
      const link = page.getByRole('link', { name: 'Sign in' });
      await link.waitFor();
      await looksRight(page, 'signed-out-thread');
      await page.setViewportSize(DESK);
      await page.locator('.message', { hasText: 'Question 7 of the thread?' }).evaluate((message) => message.scrollIntoView());
      await link.click();
      await page.locator('.message.found', { hasText: '7' }).waitFor();
      expect(page.url()).to.equal(at);
      expect(await page.locator('#composer-input').inputValue()).to.equal('Half a thought');
      await page.reload();
      await ready(page);
      expect(await page.locator('.message.found').count(), 'remembered once').to.equal(0);
    }),
  );

  it(
    'that signs in again in another tab goes on in this one',
    inBrowser(async (browsing) => {
      browsing.expects(/Failed to load resource/);
      const page = await open(browsing, { history: 2 });
      await ready(page);
      (server as FakeWebServer).refuseWith = 401;
      server?.dropStreams();
      await page.getByRole('link', { name: 'Sign in' }).waitFor();
      (server as FakeWebServer).refuseWith = null;
      await page.evaluate(() => dispatchEvent(new Event('focus')));
      await page.getByText('You are signed out.').waitFor({ state: 'detached' });
      await page.locator('#composer-input').waitFor();
    }),
  );

  it(
    'that asks for a workspace which it has not leads to its own',
    inBrowser(async (browsing) => {
      browsing.expects(/Failed to load resource/);
      server = new FakeWebServer({ history: 1 });
      const context = await browsing.context({ viewport: DESK });
      const detail = 'There is no such workspace, or you are no member of it.';
      const problem = { type: 'urn:x', title: 'x', status: 404, code: 'WORKSPACE_NOT_FOUND', detail, retry: 'never' };
      await context.route('**/session?workspace=elsewhere', (route) => route.fulfill({ status: 404, json: problem }));
      const page = await browsing.open(`${await server.listen()}/?workspace=elsewhere`, { context });
      await page.getByText(detail).waitFor();
      await page.getByRole('link', { name: 'Go to your own workspace' }).click();
      await ready(page);
    }),
  );

  it(
    'without a workspace leads to the page that explains it, where people sign in at all',
    inBrowser(async (browsing) => {
      browsing.expects(/Failed to load resource/);
      const page = await open(browsing, { refuseWith: 403, me: { signOutUrl: '/auth/logout' } });
      await page.getByText('This account belongs to no workspace.').waitFor();
      expect(await page.getByRole('link', { name: 'What you can do' }).getAttribute('href')).to.equal('/auth/no-access');
      await looksRight(page, 'start-no-workspace');
    }),
  );

  it(
    'is in the menu with its name and its workspaces, and signs out, after which this browser keeps none of its words',
    inBrowser(async (browsing) => {
      browsing.expects(/Failed to load resource/);
      const page = await open(browsing, { history: 1, me: { workspaces: [HOME, FORGE], signOutUrl: '/auth/logout' } });
      await ready(page);
      await page.locator('#composer-input').fill('A secret draft');
      await openMenu(page);
      const account = page.getByRole('region', { name: 'Your account' });
      await account.getByText('Ada').waitFor();
      expect(await account.getByRole('link', { name: 'The other forge' }).getAttribute('href')).to.equal('/?workspace=forge');
      expect(await account.getByRole('link', { name: 'Home' }).getAttribute('aria-current')).to.equal('page');
      await account.getByRole('button', { name: 'Sign out' }).scrollIntoViewIfNeeded();
      await looksRight(page, 'menu-account');
      expect(await page.evaluate(() => JSON.stringify(localStorage))).to.include('A secret draft');
      await account.getByRole('button', { name: 'Sign out' }).click();
      await page.getByText('You are signed out.').waitFor();
      expect(await page.evaluate(() => JSON.stringify([localStorage, sessionStorage]))).to.not.include('A secret draft');
    }),
  );

  it(
    'with one workspace and no sign-in has neither a switcher nor a way to sign out',
    inBrowser(async (browsing) => {
      const page = await open(browsing, { history: 1 });
      await ready(page);
      await openMenu(page);
      const account = page.getByRole('region', { name: 'Your account' });
      await account.getByText('Ada').waitFor();
      expect(await account.getByRole('link').count()).to.equal(0);
      expect(await account.getByRole('button').count()).to.equal(0);
    }),
  );

  it(
    'chooses in the menu whether an AI model works for it, is told what that means, and sees when the choice was not kept',
    inBrowser(async (browsing) => {
      browsing.expects(/Failed to load resource/);
      const page = await open(browsing, { history: 1 });
      await ready(page);
      await openMenu(page);
      const choice = page.getByRole('checkbox', { name: 'Let an AI model work for me' });
      expect(await choice.isChecked()).to.equal(true);
      expect(await choice.evaluate((box) => document.getElementById(box.getAttribute('aria-describedby') ?? '')?.textContent)).to.include(
        'your questions get no answer',
      );
      const saved = page.waitForResponse((response) => response.url().endsWith('/ai-choice') && response.request().method() === 'PUT');
      await choice.focus();
      await page.keyboard.press('Space');
      expect((await saved).request().postDataJSON()).to.deep.equal({ allowed: false });
      expect(await choice.isChecked()).to.equal(false);
      await page.route('**/ai-choice', (route) => route.abort());
      await choice.click();
      await page.getByText('The server could not be reached.').waitFor();
      expect(await choice.isChecked()).to.equal(false);
    }),
  );
});

describe('a person’s account on the real server', function () {
  this.timeout(120_000);
  const database = useDatabase();
  const openSignIn = useSignIn(database);
  const inBrowser = useBrowser();

  it(
    'signs in from the page, comes back to where it was, and signs out again',
    inBrowser(async (browsing) => {
      browsing.expects(/Failed to load resource/);
      browsing.expects(/request to another place/);
      const webPort = await freePort();
      const origin = `http://localhost:${webPort}`; // the issuer is 127.0.0.1: another site
      const pageFolder = fileURLToPath(new URL('../../dist/web', import.meta.url));
      const site = await openSignIn({ origin, webPort, pageFolder });
      await site.invite('ada@example.com');
      const page = await browsing.open(`${origin}/?workspace=${site.rig.slug}`, { viewport: DESK });
      await page.getByRole('link', { name: 'Sign in' }).click();
      await ready(page);
      expect(page.url()).to.equal(`${origin}/?workspace=${site.rig.slug}`);
      await openMenu(page);
      const left = page.waitForResponse((response) => response.url() === `${origin}/auth/logout`);
      await page.getByRole('button', { name: 'Sign out' }).click();
      expect((await left).status()).to.equal(200);
      await page.waitForURL((url) => url.search !== `?workspace=${site.rig.slug}`);
      await page.goto(`${origin}/`);
      await page.getByText('You are signed out.').waitFor();
    }),
  );
});
