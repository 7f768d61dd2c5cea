/**
 * What a person does with messages: find one, vote on an answer, delete a question, follow a card.
 * On the stand-in server, which can be brought into each state at once; the last one votes and deletes on the real one.
 */
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import type { Entry } from '../../src/contract/web.ts';
import { type Browsing, useBrowser } from '../support/browser.ts';
import { ChatPage } from '../support/chat-page.ts';
import { useChatServer } from '../support/chat-server.ts';
import { type FakeOptions, FakeWebServer } from '../support/fake-web-server.ts';
import { DESK, looksRight } from '../support/page-looks.ts';

const ready = (page: Page) => page.locator('main.scroller[aria-busy="false"]').waitFor();

describe('a message', function () {
  this.timeout(120_000);
  const inBrowser = useBrowser();
  let server: FakeWebServer;
  let url: string;
  afterEach(() => server.close());

  async function open(browsing: Browsing, options: FakeOptions, prepare: (fake: FakeWebServer) => void = () => undefined): Promise<Page> {
    server = new FakeWebServer(options);
    prepare(server);
    url = await server.listen();
    const page = await browsing.open(url, { viewport: DESK });
    await ready(page);
    return page;
  }

  /** Nothing of the message is outside of what the person sees. */
  const isInSight = (page: Page) =>
    page.locator('.message.found').evaluate((message) => {
      const [box, around] = [message.getBoundingClientRect(), message.closest('.scroller')?.getBoundingClientRect()];
      return around !== undefined && box.top >= around.top && box.bottom <= around.bottom && document.activeElement === message;
    });

  describe('that is searched', () => {
    it(
      'is found by its words far back, is loaded, brought into sight, focused and marked',
      inBrowser(async (browsing) => {
        const page = await open(browsing, { history: 300 });
        await page.keyboard.press('Control+k');
        await page.keyboard.type('question 290 of');
        const hit = page.getByRole('option', { selected: true });
        await hit.locator('mark', { hasText: 'Question 290 of' }).waitFor();
        await page.getByText('1 message found').waitFor();
        await looksRight(page, 'search');
        await page.keyboard.press('Enter');
        await page.locator('.message.found', { hasText: 'Question 290 of' }).waitFor();
        await page.waitForFunction(() => document.activeElement?.matches('.message.found'));
        expect(await isInSight(page)).to.equal(true);
        await looksRight(page, 'search-found');
        await page.locator('#composer-input').click();
        await page.locator('.message.found').waitFor({ state: 'detached' });
      }),
    );

    it(
      'is told to be in a thread, and opens it there; a click does the same as Enter',
      inBrowser(async (browsing) => {
        const page = await open(browsing, { history: 2 }, (fake) => {
          const { ledger } = fake.beginThread(fake.ledger.entries[1] as Entry);
          ledger.ask('t1', 'Only a thread says zirconium.');
        });
        await page.getByRole('button', { name: 'Search', exact: true }).click();
        await page.keyboard.type('zirconium');
        await page.getByRole('option').filter({ hasText: 'in a thread' }).click();
        await page.locator('.message.found', { hasText: 'zirconium' }).waitFor();
        expect(new URL(page.url()).searchParams.get('thread')).to.equal(server.thread(0).ledger.conversationId);
        await page.goBack();
        await page.locator('.message', { hasText: 'Question 1 of the past' }).waitFor();
        expect(await page.locator('.message.found').count()).to.equal(0);
      }),
    );

    it(
      'may be one of many: the arrows go through them, and the newest words win',
      inBrowser(async (browsing) => {
        const page = await open(browsing, { history: 60 });
        await page.keyboard.press('Control+Shift+f');
        await page.keyboard.type('of the past');
        await page.getByText('20 messages found. There are more.').waitFor();
        await page.keyboard.press('ArrowDown');
        await page.keyboard.press('ArrowDown');
        await page.getByRole('option', { selected: true }).filter({ hasText: 'Question 3' }).waitFor();
        await looksRight(page, 'search-many');
        await page.getByRole('combobox').fill('nobody ever said this');
        await page.getByText('No message says that.').waitFor();
        expect(await page.getByRole('option').count()).to.equal(0);
        await looksRight(page, 'search-none');
      }),
    );

    it(
      'cannot be found while the server is away, and the page says why',
      inBrowser(async (browsing) => {
        browsing.expects(/Failed to load resource/);
        const page = await open(browsing, { history: 1 });
        await page.route('**/search?**', (route) => route.abort());
        await page.keyboard.press('Control+Shift+f');
        await page.keyboard.type('question');
        await page.getByText('The server could not be reached.').waitFor();
      }),
    );
  });

  it(
    'that is an answer is voted on, on every tab, and a vote that is refused is taken back',
    inBrowser(async (browsing) => {
      browsing.expects(/Failed to load resource/);
      const page = await open(browsing, { history: 1 });
      const other = await browsing.open(url);
      await ready(other);
      const button = (where: Page, name: string, pressed: boolean) => where.getByRole('button', { name, pressed });
      await button(page, 'Good answer', false).focus();
      await page.keyboard.press('Enter');
      await Promise.all([page, other].map((tab) => button(tab, 'Good answer', true).waitFor()));
      await button(other, 'Bad answer', false).click();
      await Promise.all([page, other].map((tab) => button(tab, 'Bad answer', true).waitFor()));
      await Promise.all([page, other].map((tab) => button(tab, 'Good answer', false).waitFor()));
      await looksRight(page, 'voted');
      server.refuseWish = true;
      await button(page, 'Good answer', false).click();
      await page.getByText('Hephaestus is busy right now.').waitFor();
      await button(page, 'Bad answer', true).waitFor();
      await button(page, 'Bad answer', true).click();
      await Promise.all([page, other].map((tab) => button(tab, 'Bad answer', false).waitFor()));
    }),
  );

  it(
    'of their own is deleted after one more question in its place, and is an empty place on every tab',
    inBrowser(async (browsing) => {
      browsing.expects(/Failed to load resource/);
      const page = await open(browsing, { history: 2 });
      const other = await browsing.open(url);
      await ready(other);
      const question = page.locator('.message.question').first();
      const start = question.getByRole('button', { name: 'Delete this message' });
      await start.focus();
      await page.keyboard.press('Enter');
      await question.getByText('Delete this message for good?').waitFor();
      await looksRight(page, 'delete-sure');
      expect(await page.evaluate(() => document.activeElement?.textContent)).to.equal('Keep');
      await page.keyboard.press('Escape');
      await start.waitFor();
      expect(await start.evaluate((button) => document.activeElement === button)).to.equal(true);
      server.refuseWish = true;
      await start.click();
      await question.getByRole('button', { name: 'Delete', exact: true }).click();
      await page.getByText('Hephaestus is busy right now.').waitFor();
      expect(await question.textContent()).to.include('Question 2 of the past');
      await start.click();
      await page.keyboard.press('Shift+Tab');
      await page.keyboard.press('Enter');
      for (const tab of [page, other])
        await tab.locator('.message.question .bubble.gone', { hasText: 'This message was deleted.' }).waitFor();
      expect(await page.getByText('Question 2 of the past').count()).to.equal(0);
      expect(await question.getByRole('button').count()).to.equal(0);
      expect(await question.evaluate((message) => document.activeElement === message)).to.equal(true);
      await looksRight(page, 'deleted');
    }),
  );

  it(
    'with cards shows their title and words, and a link that tells nobody where it was followed; a link that is no web page is text',
    inBrowser(async (browsing) => {
      const page = await open(browsing, { history: 1 }, (fake) => {
        const entry = fake.ledger.entries[1];
        entry?.parts.push(
          { type: 'card', kind: 'link_issue', id: '7', title: 'Cold iron', url: 'https://forge.example/issues/7', text: 'Heat it first.' },
          { type: 'card', kind: 'link_page', id: '8', title: 'Not a page', url: 'javascript:alert(1)', text: '' },
          { type: 'card', kind: 'show_feedback', id: '9', title: '<b>Feedback</b>', url: null, text: 'Line one\nline two' },
        );
      });
      const cards = page.locator('.card');
      expect(await cards.locator('.card-title').allTextContents()).to.deep.equal(['Cold iron', 'Not a page', '<b>Feedback</b>']);
      expect(await cards.locator('p').allTextContents()).to.deep.equal(['Heat it first.', 'Line one\nline two']);
      const links = cards.getByRole('link');
      expect(await links.count()).to.equal(1);
      const said = await links.evaluate((link) => [link.getAttribute('href'), link.getAttribute('rel'), link.getAttribute('target')]);
      expect(said).to.deep.equal(['https://forge.example/issues/7', 'noopener noreferrer', '_blank']);
      expect(await page.locator('meta[name=referrer]').getAttribute('content')).to.equal('no-referrer');
      await looksRight(page, 'cards');
    }),
  );
});

describe('a message on the real server', function () {
  this.timeout(120_000);
  const inBrowser = useBrowser();
  const chat = useChatServer();

  it(
    'is voted on and deleted, on this device and on another, and both are still so after a reload',
    inBrowser(async (browsing) => {
      const [here, there] = [await ChatPage.open(browsing, chat.url), await ChatPage.open(browsing, chat.url)];
      await here.ask('Say it back?');
      const answer = await here.answerTo('Say it back?');
      await answer.getByRole('button', { name: 'Good answer' }).click();
      await there.page.getByRole('button', { name: 'Good answer', pressed: true }).waitFor();
      await here.actionOf('Say it back?', 'Delete this message').click();
      await here.actionOf('Say it back?', 'Delete').click();
      for (const device of [here, there]) await device.page.locator('.bubble.gone').waitFor();
      await there.reload();
      await there.page.locator('.bubble.gone').waitFor();
      expect(await there.page.locator('.question', { hasText: 'Say it back?' }).count()).to.equal(0);
    }),
  );
});
