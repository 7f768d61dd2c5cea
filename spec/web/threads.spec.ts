/**
 * Threads: beginning one at a message, talking in it, coming and going, and finding the words again.
 * On the stand-in server, which can be brought into each state at once; the last one walks the whole way on the real server.
 */
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import type { Entry } from '../../src/contract/web.ts';
import { type Browsing, useBrowser } from '../support/browser.ts';
import { ChatPage } from '../support/chat-page.ts';
import { scripted, useChatServer } from '../support/chat-server.ts';
import { type FakeOptions, FakeWebServer } from '../support/fake-web-server.ts';
import { answer, hold } from '../support/model-server.ts';
import { DESK, looksRight } from '../support/page-looks.ts';

const ready = (page: Page) => page.locator('main.scroller[aria-busy="false"]').waitFor();
const head = (page: Page) => page.getByRole('region', { name: 'About this message' });
const openList = (page: Page) => page.getByRole('button', { name: /^Threads/ }).click();
const ask = async (page: Page, text: string) => {
  await page.locator('#composer-input').fill(text);
  await page.keyboard.press('Enter');
};

describe('a thread', function () {
  this.timeout(120_000);
  const inBrowser = useBrowser();

  describe('on the page', () => {
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

    it(
      'begins at any message with the keyboard alone, quotes it, has its own composer and draft, and leads back to it',
      inBrowser(async (browsing) => {
        const page = await open(browsing, { history: 4 });
        await page.locator('#composer-input').fill('A thought for later');
        const parent = page.locator('.message.answer').first();
        await parent.getByRole('button', { name: 'Reply in a thread' }).focus();
        await page.keyboard.press('Enter');
        await head(page).getByText('Answer 4. A lease ends').waitFor();
        await ready(page);
        expect(new URL(page.url()).search).to.match(/^\?thread=[0-9a-f-]{36}$/);
        expect(await page.locator('.message').count()).to.equal(0);
        expect(await page.locator('#composer-input').inputValue(), 'the draft of the conversation').to.equal('');
        await looksRight(page, 'thread-empty');
        await page.getByRole('button', { name: 'Menu', exact: true }).click();
        const download = await page.getByRole('link', { name: 'Download as Markdown' }).getAttribute('href');
        expect(download).to.include(`conversationId=${new URL(page.url()).searchParams.get('thread')}`);
        await page.keyboard.press('Escape');
        await page.locator('#composer-input').fill('Half a reply');
        await page.goBack();
        await page.locator('.message.found', { hasText: 'Answer 4. A lease ends' }).waitFor();
        expect(await page.locator('#composer-input').inputValue()).to.equal('A thought for later');
        await page.goForward();
        await head(page).waitFor();
        expect(await page.locator('#composer-input').inputValue()).to.equal('Half a reply');
        await ask(page, 'Why does it end? #hold');
        await page.getByText('the loop ends the turn').waitFor();
        await ask(page, 'And then?');
        await page.getByText('Queued · next').waitFor();
        await looksRight(page, 'thread-answering');
        await head(page).getByRole('link', { name: 'Back to the conversation' }).press('Enter');
        await page.locator('.message.found').waitFor();
        expect(await page.evaluate(() => document.activeElement?.textContent)).to.include('Answer 4. A lease ends');
        expect(await page.getByText('Why does it end?').count(), 'in the main conversation').to.equal(0);
        expect(await page.getByRole('button', { name: 'Stop', exact: true }).count()).to.equal(0);
        await looksRight(page, 'thread-back');
        await parent.getByRole('link', { name: 'Thread' }).click();
        await page.getByText('Queued · next').waitFor();
        await page.getByRole('button', { name: 'Stop', exact: true }).click();
        await page.locator('.chip', { hasText: 'Stopped' }).waitFor();
      }),
    );

    it(
      'is there again after a reload, and opens in another tab',
      inBrowser(async (browsing) => {
        const page = await open(browsing, { history: 2 });
        await page.locator('.message.question').first().getByRole('button', { name: 'Reply in a thread' }).click();
        await ask(page, 'Is it kept? #short');
        await page.locator('.message.answer .meta time').waitFor();
        await page.reload();
        await page.locator('.message.answer .meta time').waitFor();
        await head(page).getByText('Question 2 of the past').waitFor();
        const other = await browsing.open(page.url());
        await other.locator('.message', { hasText: 'Is it kept?' }).waitFor();
        browsing.expects(/ERR_INCOMPLETE_CHUNKED_ENCODING/);
        server.dropStreams();
        await ask(page, 'And over a lost connection? #short');
        await other.locator('.message.answer .meta time').nth(1).waitFor();
      }),
    );

    it(
      'with a new answer has a dot, in the list, at its message and on the button, until somebody reads it',
      inBrowser(async (browsing) => {
        const page = await open(browsing, { history: 3, unread: 0 }, (fake) => {
          const thread = fake.beginThread(fake.ledger.entries[1] as Entry);
          thread.ledger.ask('t1', 'Does a dot come? #short');
        });
        const thread = server.thread(0);
        expect(await page.getByRole('button', { name: 'Threads', exact: true }).count()).to.equal(1);
        thread.work();
        await page.getByRole('button', { name: 'Threads, 1 with a new answer' }).waitFor();
        await page.locator('.message').getByRole('img', { name: 'New answer' }).waitFor();
        expect(await page.title()).to.match(/^\(1\) Hephaestus/);
        await openList(page);
        await looksRight(page, 'threads-list');
        await page.getByRole('link', { name: /Answer 3/ }).click();
        await page.locator('.message.answer .meta time').waitFor();
        await page.getByRole('button', { name: 'Threads', exact: true }).waitFor();
        await page.reload();
        await page.getByRole('button', { name: 'Threads', exact: true }).waitFor();
      }),
    );

    it(
      'about a message that is far back quotes it all, also when it is opened by its address, and nothing of it once it is deleted',
      inBrowser(async (browsing) => {
        const page = await open(browsing, { history: 80 }, (fake) => {
          const entry = fake.ledger.entries[0] as Entry;
          entry.text = `${'A question with many words. '.repeat(6)}And its end.`;
          fake.beginThread(entry);
        });
        await browsing.goto(page, `${url}/?thread=${server.thread(0).ledger.conversationId}`);
        await head(page).getByText('And its end.').waitFor();
        await looksRight(page, 'thread-far-back');
        server.ledger.erase(server.ledger.entries[0] as Entry);
        server.tell();
        await head(page).getByText('This message was deleted.').waitFor();
        expect(await page.getByText('And its end.').count()).to.equal(0);
      }),
    );

    it(
      'speaks German to a German browser',
      inBrowser(async (browsing) => {
        server = new FakeWebServer({ history: 2 });
        const thread = server.beginThread(server.ledger.entries[0] as Entry);
        thread.ledger.ask('t1', 'Und warum?');
        const page = await browsing.open(await server.listen(), { viewport: DESK, locale: 'de-DE' });
        await ready(page);
        await page.getByRole('link', { name: 'Thread' }).click();
        await page.getByText('Zurück zur Unterhaltung').waitFor();
        await page.locator('.message', { hasText: 'Und warum?' }).waitFor();
        await looksRight(page, 'thread-german');
        await page.keyboard.press('Control+Shift+f');
        await page.keyboard.type('warum');
        await page.getByText('1 Nachricht gefunden').waitFor();
        await page.getByRole('option').filter({ hasText: 'in einem Thread' }).waitFor();
        await looksRight(page, 'search-german');
      }),
    );

    it(
      'begun on another device comes into the list by itself',
      inBrowser(async (browsing) => {
        const page = await open(browsing, { history: 2 });
        const thread = server.beginThread(server.ledger.entries[0] as Entry);
        thread.ledger.ask('t1', 'From the phone #hold');
        thread.work();
        await openList(page);
        await page.getByRole('link', { name: /Question 2 of the past/ }).waitFor();
        await page.getByText('Answering', { exact: true }).waitFor();
      }),
    );

    it(
      'is one of the ten newest in the list, and the others are behind a press',
      inBrowser(async (browsing) => {
        const page = await open(browsing, { history: 12 }, (fake) => {
          const entries = fake.ledger.entries.filter(({ kind }) => kind === 'question');
          for (const entry of entries) fake.beginThread(entry);
        });
        await openList(page);
        const rows = page.locator('.thread-row');
        expect(await rows.count()).to.equal(10);
        await page.getByRole('button', { name: 'Show all 12' }).click();
        expect(await rows.count()).to.equal(12);
        await looksRight(page, 'threads-list-all');
        await page.keyboard.press('Escape');
        await page.keyboard.press('Control+k');
        await page.keyboard.type('thread question 7');
        await page.keyboard.press('Enter');
        await head(page).getByText('Question 7 of the past').waitFor();
      }),
    );

    it(
      'that is not there says so, takes no message and leads back; one that cannot be read now is tried again',
      inBrowser(async (browsing) => {
        browsing.expects(/Failed to load resource/);
        const page = await open(browsing, { history: 1 });
        await browsing.goto(page, `${url}/?thread=0199a1b2-0000-7000-8000-000000000001`);
        await page.getByText('There is no such thread, or it is not yours.').waitFor();
        expect(await page.locator('#composer-input').count()).to.equal(0);
        await looksRight(page, 'thread-gone');
        await page.getByRole('link', { name: 'Back to the conversation' }).click();
        await page.locator('.message.question').waitFor();
        const thread = server.beginThread(server.ledger.entries[0] as Entry);
        thread.ledger.ask('t1', 'Am I here?');
        let failing = true;
        await page.route('**/entries**', (route) =>
          failing && route.request().url().includes(thread.ledger.conversationId) ? route.abort() : route.fallback(),
        );
        server.dropStreams();
        await page.locator('.message.question').getByRole('link', { name: 'Thread' }).click();
        await page.getByText('This thread could not be loaded.').waitFor();
        await looksRight(page, 'thread-failed');
        failing = false;
        await page.getByRole('button', { name: 'Try again' }).click();
        await page.locator('.message', { hasText: 'Am I here?' }).waitFor();
      }),
    );
  });

  describe('on the real server', () => {
    const chat = useChatServer();

    it(
      'is begun, answered beside the conversation, and found again by its words from the main conversation',
      inBrowser(async (browsing) => {
        const pause = hold();
        chat.flow.model.use(
          scripted({
            'What is an anvil?': { steps: [{ text: 'An anvil is a block of iron.' }] },
            'How heavy is it?': { steps: [{ text: 'It weighs about ' }, { hold: pause }, { text: 'a hundred kilograms.' }] },
          }),
        );
        const page = await ChatPage.open(browsing, chat.url, { viewport: DESK });
        await page.ask('What is an anvil?');
        const parent = await page.answerTo('What is an anvil?');
        await parent.getByRole('button', { name: 'Reply in a thread' }).click();
        await head(page.page).getByText('An anvil is a block of iron.').waitFor();
        await ask(page.page, 'How heavy is it?');
        await page.page.getByText('It weighs about').waitFor();
        const other = await ChatPage.open(browsing, chat.url);
        await other.shows(['question: What is an anvil?', 'answer: An anvil is a block of iron.']);
        await page.look('away');
        pause.release();
        await page.shows(['question: How heavy is it?', 'answer: It weighs about a hundred kilograms.']);
        await other.page.getByRole('button', { name: 'Threads, 1 with a new answer' }).waitFor();
        // Read on one device, it is read on the other, and stays so.
        await page.look('here');
        await other.page.getByRole('button', { name: 'Threads', exact: true }).waitFor();
        await other.reload();
        await other.page.getByRole('button', { name: 'Threads', exact: true }).waitFor();
        chat.flow.model.use(answer());
        await other.page.getByRole('button', { name: 'Search', exact: true }).click();
        await other.page.keyboard.type('hundred kilograms');
        const hit = other.page.getByRole('option');
        await hit.filter({ hasText: 'in a thread' }).waitFor();
        expect(await hit.locator('mark').allTextContents()).to.include('hundred');
        await other.shoot('search-real');
        await other.page.keyboard.press('Enter');
        await other.page.locator('.message.found', { hasText: 'a hundred kilograms' }).waitFor();
        await other.reload();
        await other.shows(['question: How heavy is it?', 'answer: It weighs about a hundred kilograms.']);
      }),
    );
  });
});
