/**
 * What a person sees and hears of an answer: what the assistant does meanwhile and nothing of how, the day it came, and its words to take along.
 */
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { type Browsing, useBrowser } from '../support/browser.ts';
import { ChatPage } from '../support/chat-page.ts';
import { scripted, useChatServer } from '../support/chat-server.ts';
import { FakeWebServer } from '../support/fake-web-server.ts';
import { hold } from '../support/model-server.ts';
import { DESK } from '../support/page-looks.ts';

/** Everything that these places have said from now on, each once in a row. Runs in the page. */
function listen(places: Readonly<Record<string, string>>): void {
  const heard = Object.fromEntries(Object.keys(places).map((name) => [name, [] as string[]]));
  const look = () => {
    for (const [name, selector] of Object.entries(places)) {
      const words = document.querySelector(selector)?.textContent?.trim() ?? '';
      if (words !== '' && heard[name]?.at(-1) !== words) heard[name]?.push(words);
    }
  };
  new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true });
  Object.assign(globalThis, { heard });
}
const heardIn = (page: Page): Promise<Record<'stages' | 'spoken', string[]>> =>
  page.evaluate(() => (globalThis as unknown as { heard: Record<'stages' | 'spoken', string[]> }).heard);

describe('an answer on the real server', function () {
  this.timeout(120_000);
  const inBrowser = useBrowser();
  const chat = useChatServer();

  it(
    'shows what the assistant does while a tool works and nothing of the tool, and a screen reader hears start, stage and end, no words',
    inBrowser(async (browsing) => {
      const pause = hold();
      const read = { name: 'read', args: { path: 'INDEX.md' } };
      chat.flow.model.use(
        scripted({
          'What is in the index?': [
            { steps: [{ tool: read }] },
            { steps: [{ hold: pause }, { text: 'The index lists what I can read.' }] },
          ],
        }),
      );
      const page = await ChatPage.open(browsing, chat.url, { viewport: DESK });
      await page.page.evaluate(listen, { stages: '.stage', spoken: '[aria-live=polite]' });
      await page.ask('What is in the index?');
      await pause.arrived;
      await page.page.waitForFunction(() => (globalThis as unknown as { heard: { stages: string[] } }).heard.stages.length > 0);
      pause.release();
      await page.shows(['question: What is in the index?', 'answer: The index lists what I can read.']);
      await page.page.getByRole('status').getByText('The answer is complete.').waitFor({ state: 'attached' });
      const { stages, spoken } = await heardIn(page.page);
      // How many of them a busy browser draws is its own affair.
      expect(['Thinking…', 'Looking at what there is to read…']).to.include.members([...new Set(stages)]);
      expect(spoken[0]).to.match(/^Hephaestus is answering\./);
      expect(spoken.at(-1)).to.equal('The answer is complete.');
      expect(spoken.join(' ')).to.not.include('The index lists');
      expect(await page.page.locator('.message').count(), 'no message of the tool').to.equal(2);
      await page.reload();
      await page.shows(['question: What is in the index?', 'answer: The index lists what I can read.']);
    }),
  );
});

describe('an answer on the page', function () {
  this.timeout(90_000);
  const inBrowser = useBrowser();
  let server: FakeWebServer;
  afterEach(() => server.close());

  async function open(
    browsing: Browsing,
    { timeZone = 'Europe/Berlin', history = 0, permissions = [] }: { timeZone?: string; history?: number; permissions?: string[] } = {},
  ): Promise<Page> {
    const account = { id: '0199a1b2-0000-7000-8000-0000000000aa', displayName: 'Ada', timeZone };
    server = new FakeWebServer({ history, session: { account } });
    const page = await browsing.open(await server.listen(), { viewport: DESK, permissions });
    await page.locator('main.scroller[aria-busy="false"]').waitFor();
    return page;
  }

  for (const timeZone of ['Pacific/Auckland', 'Pacific/Honolulu']) {
    it(
      `stands under the day on which it came in the time zone of the account, ${timeZone}, wherever the browser is`,
      inBrowser(async (browsing) => {
        const page = await open(browsing, { timeZone, history: 9 });
        const days = new Intl.DateTimeFormat('en-CA', { timeZone, dateStyle: 'short' });
        const wanted = server.ledger.entries.map(({ createdAt }) => days.format(new Date(createdAt)));
        // A failed turn shows its reason, which came when it ended; each message stands below the heading of its day.
        const shown = await page.evaluate(() => {
          let day = 0;
          return [...document.querySelectorAll('.day, .message.question, .message.answer')].flatMap((element) => {
            if (element.matches('.day')) day += 1;
            return element.matches('.day') ? [] : [day];
          });
        });
        expect(shown).to.deep.equal(wanted.map((day) => [...new Set(wanted)].indexOf(day) + 1));
        expect(await page.locator('.day').last().textContent()).to.match(/Today|Yesterday/);
      }),
    );
  }

  it(
    'says in one line what the assistant does, until words come, and again when it goes on to something else',
    inBrowser(async (browsing) => {
      const page = await open(browsing);
      const tell = (words: string, stage: string | null) => {
        server.ledger.write(words, stage);
        server.tell();
      };
      server.ledger.ask('a', 'What does it do?');
      server.ledger.claim();
      tell('', 'Reading the repository…');
      const line = page.locator('.message.answer .stage');
      await line.getByText('Reading the repository…').waitFor();
      expect(await page.locator('.message').count()).to.equal(2);
      tell('It reads ', 'Thinking…');
      await page.locator('.message.answer .markdown', { hasText: 'It reads' }).waitFor();
      tell('', 'Looking back through this conversation…');
      await line.getByText('Looking back through this conversation…').waitFor();
      server.ledger.end('DONE', ['It reads files.']);
      server.tell();
      await line.waitFor({ state: 'detached' });
      await page.locator('.message.answer .markdown', { hasText: 'It reads files.' }).waitFor();
    }),
  );

  it(
    'is copied as it was written, and so is a piece of code in it; no message can be edited',
    inBrowser(async (browsing) => {
      const page = await open(browsing, { permissions: ['clipboard-read', 'clipboard-write'] });
      await page.locator('#composer-input').fill('Everything, please');
      await page.keyboard.press('Enter');
      await page.locator('.message.answer .meta time').waitFor();
      const words = server.ledger.entries.at(-1)?.text ?? '';
      await page.getByRole('button', { name: 'Copy answer' }).click();
      await page.waitForFunction(async (wanted) => (await navigator.clipboard.readText()) === wanted, words);
      await page.getByRole('button', { name: 'Copy code' }).click();
      const [, code] = /```ts\n(.*?)```/s.exec(words) ?? [];
      await page.waitForFunction(async (wanted) => (await navigator.clipboard.readText()).trim() === wanted, code?.trim());
      expect(await page.getByRole('textbox').count(), 'only the composer').to.equal(1);
      expect(await page.locator('.message [contenteditable], .message input:not([type=checkbox]), .message textarea').count()).to.equal(0);
      expect(await page.locator('.message').getByRole('button', { name: /edit/i }).count()).to.equal(0);
    }),
  );
});
