/**
 * The sign-in in a real browser: what no stand-in can prove, because the browser decides it: which cookies it keeps over a way across sites,
 * which Origin it sends under our referrer policy, what a page of another site can make it send.
 */
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import type { Browser, Page } from 'playwright-core';
import { Browsing } from '../support/browser.ts';
import { launchChromium, whyNoBrowser } from '../support/chromium.ts';
import { useDatabase } from '../support/database.ts';
import { freePort } from '../support/free-port.ts';
import { emptyLedger } from '../support/ledger.ts';
import { type SignInRig, useSignIn } from '../support/sign-in-rig.ts';
import { skipLoudly } from '../support/skip.ts';

/** A request of a script of this page; its status and its code. */
function ask(page: Page, [method, path]: readonly [string, string], body?: object): Promise<[number, string | undefined]> {
  return page.evaluate(
    async (given) => {
      const json = given.body ? { body: JSON.stringify(given.body), headers: { 'content-type': 'application/json' } } : {};
      const response = await fetch(given.path, { method: given.method, ...json });
      return [response.status, ((await response.json().catch(() => ({}))) as { code?: string }).code];
    },
    { method, path, body },
  );
}

describe('the sign-in in a browser', function () {
  this.timeout(120_000);
  const database = useDatabase();
  const openSignIn = useSignIn(database);
  let browser: Browser;
  let site: SignInRig;
  let origin: string;
  before(async function () {
    const reason = whyNoBrowser();
    if (reason !== null) skipLoudly(this, reason);
    browser = await launchChromium();
  });
  after(() => browser?.close());
  beforeEach(async () => {
    await emptyLedger(database.db);
    const webPort = await freePort();
    origin = `http://localhost:${webPort}`; // the issuer is 127.0.0.1: another site
    site = await openSignIn({ origin, webPort });
  });

  async function withPage(body: (page: Page) => Promise<void>): Promise<void> {
    const browsing = new Browsing(browser);
    try {
      await body(await (await browsing.context()).newPage());
    } finally {
      await browsing.close();
    }
  }

  it('crosses two sites, and the page can write with its cookie', () =>
    withPage(async (page) => {
      await site.invite('ada@example.com');
      await page.goto(`${origin}/auth/login?return=/openapi.json`);
      expect(page.url()).to.equal(`${origin}/openapi.json`);
      expect(await ask(page, ['GET', '/session'])).to.deep.equal([200, undefined]);
      const question = { requestId: 'r1', text: 'Why?' };
      expect(await ask(page, ['POST', `/workspaces/${site.rig.slug}/mentor/questions`], question)).to.deep.equal([202, undefined]);
      expect(await page.evaluate(() => document.cookie)).to.equal('');
      expect(await ask(page, ['POST', '/auth/logout'])).to.deep.equal([200, undefined]);
      expect(await ask(page, ['GET', '/session'])).to.deep.equal([401, 'SIGNED_OUT']);
    }));

  it('shows somebody without an invitation a page, whose button signs out', () =>
    withPage(async (page) => {
      await page.goto(`${origin}/auth/login`);
      expect(await page.getAttribute('html', 'data-reason')).to.equal('no-access');
      await page.getByRole('button', { name: 'Sign out' }).click();
      await page.waitForSelector('html[data-reason=signed-out]');
      expect(await ask(page, ['GET', '/session'])).to.deep.equal([401, 'SIGNED_OUT']);
    }));

  it('is ended by no page of another site', () =>
    withPage(async (page) => {
      await site.invite('ada@example.com');
      await page.goto(`${origin}/auth/login?return=/openapi.json`);
      const evil = http.createServer((_, response) => {
        response.setHeader('content-type', 'text/html');
        response.end(`<form method="post" action="${origin}/auth/logout"><button>Win a prize</button></form>`);
      });
      await new Promise<void>((resolve) => evil.listen(0, '127.0.0.1', resolve));
      try {
        await page.goto(`http://127.0.0.1:${(evil.address() as AddressInfo).port}/`);
        const [response] = await Promise.all([page.waitForNavigation(), page.getByRole('button').click()]);
        expect(response?.status()).to.equal(403);
        await page.goto(`${origin}/openapi.json`);
        expect(await ask(page, ['GET', '/session'])).to.deep.equal([200, undefined]);
      } finally {
        evil.closeAllConnections();
        evil.close();
      }
    }));
});
