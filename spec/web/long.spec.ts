/**
 * A conversation of 10,000 entries: it opens with one page, grows upwards without a jump, and stays light. What it costs is printed and
 * written to spec/web/shots/figures.json; no test asserts a time.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { useBrowser } from '../support/browser.ts';
import { FakeWebServer } from '../support/fake-web-server.ts';
import { DESK } from '../support/page-looks.ts';

const QUESTIONS = 5_000;
const KEYS = 40;
const figures: Record<string, number> = {};

/** For each of `count` keys the time from the key to the painted frame, sorted, in milliseconds. Runs in the page. */
async function keyTimes(count: number): Promise<number[]> {
  const input = document.getElementById('composer-input') as HTMLTextAreaElement;
  const setValue = Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, 'value')?.set;
  const painted = () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
  const times: number[] = [];
  for (let n = 0; n < count; n++) {
    await painted();
    const start = performance.now();
    setValue?.call(input, `${input.value}x`);
    input.dispatchEvent(new Event('input', { bubbles: true }));
    // Forces style and layout, so that the frame's whole cost is in the figure.
    document.body.getBoundingClientRect();
    times.push(performance.now() - start);
  }
  return times.sort((a, b) => a - b);
}

/** Where a message stands once it has stood still for ten frames. In the middle of a frame it may not be back in its place yet. Runs in the page. */
async function restingTop(id: string): Promise<number> {
  const top = () => Math.round(document.querySelector(`[data-message-id="${id}"]`)?.getBoundingClientRect().top ?? 0);
  let [known, still] = [top(), 0];
  while (still < 10) {
    await new Promise(requestAnimationFrame);
    still = top() === known ? still + 1 : 0;
    known = top();
  }
  return known;
}

describe('a conversation of 10,000 entries', function () {
  this.timeout(240_000);
  const inBrowser = useBrowser();
  let server: FakeWebServer;
  let url: string;
  before(async () => {
    server = new FakeWebServer({ history: QUESTIONS });
    url = await server.listen();
  });
  after(async () => {
    await server.close();
    const folder = fileURLToPath(new URL('./shots', import.meta.url));
    mkdirSync(folder, { recursive: true });
    writeFileSync(`${folder}/figures.json`, `${JSON.stringify(figures, null, 2)}\n`);
    for (const [name, value] of Object.entries(figures)) process.stdout.write(`      ${name}: ${Math.round(value * 10) / 10}\n`);
  });
  const ready = (page: Page) => page.locator('main.scroller[aria-busy="false"]').waitFor();
  const measureKeys = async (page: Page, name: string) => {
    const times = await page.evaluate(keyTimes, KEYS);
    figures[`${name}, median ms per key`] = times[KEYS / 2] ?? 0;
    figures[`${name}, slowest ms per key`] = times.at(-1) ?? 0;
    await page.locator('#composer-input').fill('');
  };

  it(
    'opens with its newest page alone, at the end, and is ready on a slow machine',
    inBrowser(async (browsing) => {
      const context = await browsing.context({ viewport: DESK });
      const page = await context.newPage();
      const devtools = await context.newCDPSession(page);
      await devtools.send('Emulation.setCPUThrottlingRate', { rate: 4 });
      await browsing.goto(page, url);
      await ready(page);
      await page.locator('.message').last().waitFor();
      figures['ready after ms, CPU slowed 4 times'] = await page.evaluate(() => performance.now());
      await devtools.send('Emulation.setCPUThrottlingRate', { rate: 1 });
      expect(browsing.requests.filter((asked) => asked.includes('/entries'))).to.have.length(1);
      await page.getByText('Question 1 of the past').waitFor();
      expect(await page.getByRole('button', { name: 'Jump to latest' }).count()).to.equal(0);
      await measureKeys(page, 'typing beside 50 entries');
    }),
  );

  it(
    'goes to a message at its beginning at once, fills the gap for whoever reads on from there, and comes back to its end',
    inBrowser(async (browsing) => {
      const page = await browsing.open(url, { viewport: DESK });
      await ready(page);
      const pages = () => browsing.requests.filter((asked) => asked.includes('/entries?')).length;
      const before = pages();
      await page.keyboard.press('Control+k');
      await page.keyboard.type('question 4990 of');
      await page.getByText('1 message found').waitFor();
      await page.keyboard.press('Enter');
      const found = page.locator('.message.found', { hasText: 'Question 4990 of' });
      await found.waitFor();
      await page.waitForFunction(() => document.activeElement?.matches('.message.found'));
      expect(pages() - before, 'one page above it and one below').to.equal(2);
      // Somebody who reads on from there, and waits for what is not there yet.
      await page.evaluate(
        () =>
          new Promise<void>((resolve) => {
            const box = document.querySelector('.scroller');
            const down = () => {
              if (document.querySelector('.message')?.parentElement?.parentElement?.textContent?.includes('Question 4930 of'))
                return resolve();
              const gap = document.querySelector('.gap')?.getBoundingClientRect().top ?? Number.POSITIVE_INFINITY;
              if (gap > (box?.getBoundingClientRect().bottom ?? 0)) box?.scrollBy(0, 300);
              requestAnimationFrame(down);
            };
            down();
          }),
      );
      expect(pages() - before).to.be.within(3, 6);
      await page.getByRole('button', { name: 'Jump to latest' }).click();
      await page.getByText('Question 1 of the past').waitFor();
      await page.getByRole('button', { name: 'Load the messages in between' }).waitFor({ state: 'detached' });
      expect(await page.getByText('Question 4990 of').count()).to.equal(0);
    }),
  );

  it(
    'grows upwards to its beginning while somebody scrolls: nothing jumps, and only what is near is drawn',
    inBrowser(async (browsing) => {
      const page = await browsing.open(url, { viewport: DESK });
      await ready(page);
      const pages = () => browsing.requests.filter((asked) => asked.includes('before=')).length;
      // What a reader sees stays where it is when an older page comes above it. Scrolled and measured in one go: the page may come at once.
      const before = await page.evaluate(() => {
        const box = document.querySelector('.scroller');
        box?.scrollTo(0, 250);
        const edge = box?.getBoundingClientRect().top ?? 0;
        const seen = [...document.querySelectorAll('.message')].find((message) => message.getBoundingClientRect().top >= edge);
        return { id: seen?.getAttribute('data-message-id') ?? '', top: Math.round(seen?.getBoundingClientRect().top ?? 0) };
      });
      await page.waitForFunction(() => (document.querySelector('.scroller')?.scrollTop ?? 0) > 2_000);
      const after = await page.evaluate(restingTop, before.id);
      expect(Math.abs(after - before.top)).to.be.lessThan(3);
      expect(pages()).to.be.greaterThan(0);
      // Somebody who holds the Home key.
      await page.evaluate(
        () =>
          new Promise<void>((resolve) => {
            const box = document.querySelector('.scroller');
            const up = () => {
              if (document.querySelector('.older') === null) return resolve();
              box?.scrollTo(0, 0);
              requestAnimationFrame(up);
            };
            up();
          }),
      );
      await page.locator('.scroller').evaluate((box) => box.scrollTo(0, 0));
      await page.getByText(`Question ${QUESTIONS} of the past`).waitFor();
      const drawn = await page.locator('.message').count();
      figures['messages drawn of 10,000'] = drawn;
      expect(drawn).to.be.lessThan(300);
      await measureKeys(page, 'typing beside 10,000 entries');
      await page.getByRole('button', { name: 'Jump to latest' }).click();
      await page.getByText('Question 1 of the past').waitFor();
      await measureKeys(page, 'typing beside 10,000 entries, at the end');
    }),
  );
});
