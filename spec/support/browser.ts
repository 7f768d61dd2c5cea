/**
 * Owns: pages of specs in one Chromium per file: contexts, what no page may do, pictures of pages.
 * Does not own: the browser's program (chromium.ts), or what the chat looks like (chat-page.ts).
 * A test fails when a page of it logs an error (violations of the content security policy are errors), throws, opens a dialog, or asks
 * anybody but its own server for anything, unless the test says before that it expects that.
 */
import { execFile } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import { launchChromium, whyNoBrowser } from './chromium.ts';
import { skipLoudly } from './skip.ts';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));
const SHOTS = path.join(root, 'spec/web/shots');
/** For one wait; below the time of a test, so that the wait is what fails and says what it waited for. */
const WAIT_LIMIT_MS = 20_000;
const TROUBLES_MAX = 50;

/** Pages of one test. */
export class Browsing {
  readonly troubles: string[] = [];
  /** URLs that pages asked for, in order. */
  readonly requests: string[] = [];
  readonly #browser: Browser;
  readonly #origins = new Set<string>();
  readonly #expected: RegExp[] = [];
  readonly #contexts: BrowserContext[] = [];

  constructor(browser: Browser) {
    this.#browser = browser;
  }

  /** A browser of its own, as another device would be: storage and channels are not shared. */
  async context(options: BrowserContextOptions = {}): Promise<BrowserContext> {
    const context = await this.#browser.newContext({ locale: 'en-GB', timezoneId: 'Europe/Berlin', ...options });
    context.setDefaultTimeout(WAIT_LIMIT_MS);
    context.on('console', (message) => {
      if (message.type() === 'error') this.#trouble(`console: ${message.text()} (${message.location().url})`);
    });
    context.on('weberror', (error) => this.#trouble(`page error: ${error.error().message}`));
    context.on('dialog', (dialog) => {
      this.#trouble(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    context.on('request', (request) => this.#onRequest(request.url()));
    this.#contexts.push(context);
    return context;
  }

  /** A page at this URL, in a context of its own when none is given. */
  async open(url: string, { context, ...options }: BrowserContextOptions & { context?: BrowserContext } = {}): Promise<Page> {
    const page = await (context ?? (await this.context(options))).newPage();
    await this.goto(page, url);
    return page;
  }

  /** A page that was prepared goes to this URL. */
  async goto(page: Page, url: string): Promise<void> {
    this.#origins.add(new URL(url).origin);
    await page.goto(url);
  }

  /** From now on such a trouble is none. Say it before it can happen. */
  expects(trouble: RegExp): void {
    this.#expected.push(trouble);
  }

  #onRequest(url: string): void {
    this.requests.push(url);
    if (/^(data|blob):/.test(url) || this.#origins.has(new URL(url).origin)) return;
    this.#trouble(`request to another place: ${url}`);
  }

  #trouble(trouble: string): void {
    if (this.#expected.some((pattern) => pattern.test(trouble)) || this.troubles.length >= TROUBLES_MAX) return;
    this.troubles.push(trouble);
  }

  async close(): Promise<void> {
    await Promise.all(this.#contexts.map((context) => context.close()));
  }

  /** Pictures of all open pages of a test that failed. */
  async shootAll(name: string): Promise<void> {
    const pages = this.#contexts.flatMap((context) => context.pages());
    await Promise.all(pages.map((page, index) => shoot(page, `broken-${name}-${index}`).catch(() => undefined)));
  }
}

/** Writes spec/web/shots/<name>.png for people to look at; no test compares it. */
export async function shoot(page: Page, name: string): Promise<void> {
  mkdirSync(SHOTS, { recursive: true });
  await page.screenshot({ path: path.join(SHOTS, `${name}.png`), animations: 'disabled', caret: 'initial' });
}

type InBrowser = (body: (browsing: Browsing) => Promise<void>) => (this: Mocha.Context) => Promise<void>;

/**
 * Registers mocha hooks for the surrounding `describe`: the page is built when its sources changed, and a browser is started.
 * What it returns makes a test out of a body: `it('…', inBrowser(async (browsing) => { … }))`.
 */
export function useBrowser(): InBrowser {
  let browser: Browser | undefined;
  before('starts a browser', async function () {
    this.timeout(180_000);
    const reason = whyNoBrowser();
    if (reason !== null) skipLoudly(this, reason);
    await run(process.execPath, ['tools/build-page.ts'], { cwd: root });
    browser = await launchChromium();
  });
  after('ends the browser', async () => {
    await browser?.close();
  });
  return (body) =>
    async function () {
      if (browser === undefined) throw new Error('the browser is there only inside of tests');
      const browsing = new Browsing(browser);
      try {
        await body(browsing);
        if (browsing.troubles.length > 0) throw new Error('the page did what no page may do');
      } catch (error) {
        if (error instanceof Error && browsing.troubles.length > 0) error.message += `\nIn the page:\n${browsing.troubles.join('\n')}`;
        await browsing.shootAll((this.test?.title ?? '').replaceAll(/[^a-z0-9]+/gi, '-').slice(0, 80));
        throw error;
      } finally {
        await browsing.close();
      }
    };
}
