/**
 * The page without a mouse, in another language, from right to left, and without motion.
 */
import { expect } from 'chai';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { tables } from '../../src/web/strings.ts';
import { type Browsing, useBrowser } from '../support/browser.ts';
import { FakeWebServer } from '../support/fake-web-server.ts';
import { DESK, looksRight } from '../support/page-looks.ts';

/** Every visible sentence of the page, and the words of its controls. Runs in the page. */
function visibleWords(): string[] {
  const words: string[] = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) words.push(walker.currentNode.textContent?.trim() ?? '');
  for (const element of document.querySelectorAll('[aria-label], [title], [placeholder]')) {
    for (const name of ['aria-label', 'title', 'placeholder']) words.push(element.getAttribute(name) ?? '');
  }
  return [document.title, ...words].filter(Boolean);
}

/** Every plain word of a table, and those of its functions of a name. */
function saysOf(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(saysOf);
}

describe('the page', function () {
  this.timeout(90_000);
  const inBrowser = useBrowser();
  let server: FakeWebServer;
  afterEach(() => server.close());

  async function open(browsing: Browsing, options: BrowserContextOptions = {}, history = 6): Promise<Page> {
    server = new FakeWebServer({ history });
    const page = await browsing.open(await server.listen(), { viewport: DESK, ...options });
    await page.locator('main.scroller[aria-busy="false"]').waitFor();
    return page;
  }
  const focused = (page: Page) => page.evaluate(() => document.activeElement?.id ?? '');
  const ask = async (page: Page, text: string) => {
    await page.locator('#composer-input').fill(text);
    await page.keyboard.press('Enter');
  };

  it(
    'is used with the keyboard alone: commands are found and run, dialogs give the focus back, and Escape closes before it stops',
    inBrowser(async (browsing) => {
      const page = await open(browsing, { permissions: ['clipboard-read', 'clipboard-write'] });
      await ask(page, 'Hold on #hold');
      await page.getByRole('button', { name: 'Stop', exact: true }).waitFor();
      await page.keyboard.press('Control+k');
      const query = page.getByRole('combobox');
      await query.waitFor();
      await page.keyboard.press('Escape');
      await query.waitFor({ state: 'detached' });
      expect(await focused(page)).to.equal('composer-input');
      expect(server.ledger.running, 'Escape has closed the commands and stopped nothing').to.not.equal(undefined);
      await page.keyboard.press('Control+k');
      await page.keyboard.type('answer stop');
      expect(await page.getByRole('option').allTextContents()).to.deep.equal(['Stop the answerEsc']);
      await page.keyboard.press('Enter');
      await page.getByRole('button', { name: 'Stop', exact: true }).waitFor({ state: 'detached' });
      await page.keyboard.press('Control+k');
      await page.keyboard.type('copy');
      await page.keyboard.press('Enter');
      await page.waitForFunction(async () => (await navigator.clipboard.readText()) !== '');
      await page.keyboard.press('Control+/');
      await page.getByRole('heading', { name: 'Keyboard shortcuts' }).waitFor();
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { name: 'Keyboard shortcuts' }).waitFor({ state: 'detached' });
    }),
  );

  it(
    'moves from question to question and back to the end with keys, and the arrows choose among the commands',
    inBrowser(async (browsing) => {
      const page = await open(browsing, {}, 30);
      const topQuestion = () =>
        page.evaluate(() => {
          const edge = document.querySelector('.scroller')?.getBoundingClientRect().top ?? 0;
          const first = [...document.querySelectorAll('.question')].find((question) => question.getBoundingClientRect().top >= edge - 1);
          return first?.querySelector('.bubble')?.textContent;
        });
      const start = await topQuestion();
      await page.keyboard.press('Alt+ArrowUp');
      const above = await topQuestion();
      expect(above).to.not.equal(start);
      await page.keyboard.press('Alt+ArrowUp');
      expect(await topQuestion()).to.not.equal(above);
      await page.keyboard.press('Alt+ArrowDown');
      expect(await topQuestion()).to.equal(above);
      for (let n = 0; n < 3; n++) await page.keyboard.press('Alt+ArrowUp');
      await page.getByRole('button', { name: 'Jump to latest' }).waitFor();
      await page.keyboard.press('Alt+End');
      await page.getByRole('button', { name: 'Jump to latest' }).waitFor({ state: 'detached' });
      await page.locator('.scroller').focus();
      await page.keyboard.press('Shift+Escape');
      expect(await focused(page)).to.equal('composer-input');
      await page.keyboard.press('Control+k');
      const chosen = () => page.locator('[role=option][aria-selected=true]').textContent();
      const first = await chosen();
      await page.keyboard.press('ArrowUp');
      expect(await chosen(), 'from the first to the last').to.not.equal(first);
      await page.keyboard.press('ArrowDown');
      expect(await chosen()).to.equal(first);
    }),
  );

  it(
    'speaks German to a German browser, all of it, and English when that was chosen, also after a reload',
    inBrowser(async (browsing) => {
      const page = await open(browsing, { locale: 'de-DE' });
      const english = new Set(saysOf(tables.en).filter((text) => !saysOf(tables.de).includes(text)));
      const leftovers = async () => (await page.evaluate(visibleWords)).filter((text) => english.has(text));
      expect(await page.evaluate(() => document.documentElement.lang)).to.equal('de');
      await page.getByText('Frag Hephaestus…').or(page.getByPlaceholder('Frag Hephaestus…')).first().waitFor();
      expect(await leftovers()).to.deep.equal([]);
      await ask(page, 'Wartet das? #wait');
      await page.getByText('Wartet, bis Hephaestus frei ist · Platz 3').waitFor();
      expect(await leftovers()).to.deep.equal([]);
      await page.keyboard.press('Control+k');
      await page.getByPlaceholder('Nachrichten suchen oder Befehl eingeben').waitFor();
      expect(await leftovers()).to.deep.equal([]);
      await looksRight(page, 'german-palette');
      await page.keyboard.press('Escape');
      await page.getByRole('button', { name: 'Menü', exact: true }).click();
      await looksRight(page, 'german');
      await page.getByRole('radio', { name: 'English' }).click();
      await page.getByRole('textbox', { name: 'Message to Hephaestus' }).waitFor();
      await page.reload();
      await page.getByRole('textbox', { name: 'Message to Hephaestus' }).waitFor();
      expect(await page.evaluate(() => document.documentElement.lang)).to.equal('en');
    }),
  );

  it(
    'gives each message its own direction, and no sign in one turns the words around it',
    inBrowser(async (browsing) => {
      const page = await open(browsing, {}, 0);
      await ask(page, 'مرحبا Heph، كيف الحال؟ #short');
      await page.locator('.answer .meta time').waitFor();
      await ask(page, '\u202Eevil.exe #short');
      await page.locator('.answer .meta time').nth(1).waitFor();
      const directions = await page
        .locator('.bubble')
        .evaluateAll((bubbles) => bubbles.map((bubble) => getComputedStyle(bubble).direction));
      expect(directions).to.deep.equal(['rtl', 'ltr']);
      const around = await page.locator('.question .meta').evaluateAll((rows) => rows.map((row) => getComputedStyle(row).direction));
      expect(around).to.deep.equal(['ltr', 'ltr']);
      const isolated = await page
        .locator('.bubble')
        .evaluateAll((bubbles) => bubbles.map((bubble) => getComputedStyle(bubble).unicodeBidi));
      expect(new Set(isolated)).to.deep.equal(new Set(['isolate']));
      await looksRight(page, 'directions');
    }),
  );

  it(
    'moves nothing for who asked for calm, while it connects, thinks and writes',
    inBrowser(async (browsing) => {
      const page = await open(browsing, { reducedMotion: 'reduce' });
      const moving = () => page.evaluate(() => document.getAnimations().length);
      await ask(page, 'Quietly, please #hold');
      await page.locator('.stage').waitFor();
      expect(await moving()).to.equal(0);
      await page.getByText('How a renewal').waitFor();
      expect(await moving()).to.equal(0);
      await page.emulateMedia({ reducedMotion: 'no-preference' });
      await page.waitForFunction(() => document.getAnimations().length > 0);
    }),
  );

  it(
    'is exact after its stream was torn inside of a character, again and again, while an answer came',
    inBrowser(async (browsing) => {
      browsing.expects(/net::ERR_INCOMPLETE_CHUNKED_ENCODING/);
      const page = await open(browsing, { permissions: ['clipboard-read', 'clipboard-write'] }, 2);
      await ask(page, 'Torn? ');
      for (let tears = 0; tears < 12; tears++) {
        const words = await page.locator('.answer').last().textContent();
        server.tearStreams();
        await page.waitForFunction(
          (known) => [...document.querySelectorAll('.answer')].at(-1)?.textContent !== known || document.querySelector('.stage') === null,
          words,
        );
      }
      const answer = page.locator('.answer').last();
      await answer.locator('.meta time').waitFor();
      await answer.getByRole('button', { name: 'Copy answer' }).click();
      const copied = await page.evaluate(() => navigator.clipboard.readText());
      expect(copied).to.equal(server.ledger.entries.at(-1)?.text);
      expect(await page.locator('.message').count()).to.equal(server.ledger.lines().length);
    }),
  );
});
