/**
 * Asking in the page: what a person sees while a question waits, is answered, is stopped or fails.
 */
import { expect } from 'chai';
import { useBrowser } from '../support/browser.ts';
import { ChatPage } from '../support/chat-page.ts';
import { scripted, useChatServer } from '../support/chat-server.ts';
import { hold, type Seen } from '../support/model-server.ts';

const REFUSED = { status: 400, body: { error: { type: 'invalid_request_error', message: 'words of the provider' } } };

describe('a person who asks in the page', function () {
  this.timeout(60_000);
  const inBrowser = useBrowser();
  const chat = useChatServer();

  /** Texts of the stored entries from this question on. */
  async function storedFrom(question: string): Promise<string[]> {
    const { id } = await chat.person.conversation();
    const lines = (await chat.person.entries(id)).map(({ kind, text }) => `${kind}: ${text}`);
    return lines.slice(lines.indexOf(`question: ${question}`));
  }

  /** The newest request to the provider for this question. */
  function callFor(question: string): Seen {
    const call = chat.flow.model.seen.findLast((seen) => seen.question === question);
    if (call === undefined) throw new Error(`the provider was never asked: ${question}`);
    return call;
  }

  it(
    'reads an answer while it is written, and the stored one is the same after a reload',
    inBrowser(async (browsing) => {
      const pause = hold();
      chat.flow.model.use(
        scripted({ 'Is iron hot?': { steps: [{ text: 'Iron is hot. ' }, { hold: pause }, { text: 'Steel is cold.' }] } }),
      );
      const page = await ChatPage.open(browsing, chat.url);
      await page.ask('Is iron hot?');
      await page.shows(['question: Is iron hot?', 'answering: Iron is hot.']);
      expect(await page.composer.inputValue(), 'the composer is free for the next question').to.equal('');
      expect(await page.page.title()).to.match(/^\(answering\) /);
      await page.stop.waitFor();
      pause.release();
      const whole = ['question: Is iron hot?', 'answer: Iron is hot. Steel is cold.'] as const;
      await page.shows(whole);
      await page.stop.waitFor({ state: 'detached' });
      await page.page.getByRole('status').getByText('The answer is complete.').waitFor({ state: 'attached' });
      expect(await storedFrom('Is iron hot?')).to.deep.equal(whole);
      await page.reload();
      await page.shows(whole);
      expect(await page.count('Is iron hot?')).to.equal(1);
    }),
  );

  it(
    'does not see a line jump to a heading while the list below it is half written',
    inBrowser(async (browsing) => {
      const pause = hold();
      chat.flow.model.use(
        scripted({ 'A list?': { steps: [{ text: 'Two points\n-' }, { hold: pause }, { text: ' the first\n- the second' }] } }),
      );
      const page = await ChatPage.open(browsing, chat.url);
      await page.ask('A list?');
      const answer = page.page.locator('.message').last();
      await answer.getByText('Two points').waitFor();
      expect(await answer.getByRole('heading').count()).to.equal(0);
      pause.release();
      expect(await (await page.answerTo('A list?')).getByRole('listitem').allTextContents()).to.deep.equal(['the first', 'the second']);
    }),
  );

  it(
    'asks follow-ups that wait visibly, takes one back, and the other starts by itself',
    inBrowser(async (browsing) => {
      const pause = hold();
      chat.flow.model.use(scripted({ 'The first?': { steps: [{ text: 'One moment.' }, { hold: pause }, { text: ' Done.' }] } }));
      const page = await ChatPage.open(browsing, chat.url);
      await page.ask('The first?');
      await pause.arrived;
      await page.ask('The second?');
      await page.ask('The third?');
      await page.shows([
        'question: The first?',
        'answering: One moment.',
        'question: The second? [Queued · next]',
        'question: The third? [Queued · place 2]',
      ]);
      await page.actionOf('The third?', 'Remove').click();
      await page.shows([
        'question: The first?',
        'answering: One moment.',
        'question: The second? [Queued · next]',
        'question: The third? [Removed from the queue]',
      ]);
      pause.release();
      const end = [
        'question: The first?',
        'answer: One moment. Done.',
        'question: The second?',
        'answer: You asked: The second?',
        'question: The third? [Removed from the queue]',
      ] as const;
      await page.shows(end);
      await page.reload();
      await page.shows(end);
      expect(chat.flow.model.seen.filter(({ question }) => question === 'The third?')).to.have.length(0);
    }),
  );

  for (const [how, question] of [
    ['the Stop button', 'Stop by button?'],
    ['Escape', 'Stop by key?'],
  ] as const) {
    it(
      `stops with ${how}: what was written stays, the provider’s call is closed, and a follow-up still runs`,
      inBrowser(async (browsing) => {
        const pause = hold();
        chat.flow.model.use(scripted({ [question]: { steps: [{ text: 'Once upon a' }, { hold: pause }, { text: ' time' }] } }));
        const page = await ChatPage.open(browsing, chat.url);
        await page.ask(question);
        await page.shows([`question: ${question}`, 'answering: Once upon a']);
        const followUp = `After ${how}?`;
        await page.ask(followUp);
        await page.shows([`question: ${question}`, 'answering: Once upon a', `question: ${followUp} [Queued · next]`]);
        if (how === 'Escape') await page.page.keyboard.press('Escape');
        else await page.stop.click();
        await callFor(question).aborted;
        const end = [`question: ${question}`, 'stopped: Once upon a', `question: ${followUp}`, `answer: You asked: ${followUp}`] as const;
        await page.shows(end);
        await page.reload();
        await page.shows(end);
      }),
    );
  }

  it(
    'reads why there is no answer, and tries again with one press',
    inBrowser(async (browsing) => {
      chat.flow.model.use(scripted({ 'Will it fail?': [REFUSED, { steps: [{ text: 'Not this time.' }] }] }));
      const page = await ChatPage.open(browsing, chat.url);
      await page.ask('Will it fail?');
      const failed = ['question: Will it fail?', 'failure: Hephaestus could not finish this reply. Try again.'] as const;
      await page.shows(failed);
      await page.reload();
      await page.shows(failed);
      await page.page.getByRole('button', { name: 'Try again' }).last().click();
      await page.shows([...failed, 'question: Will it fail?', 'answer: Not this time.']);
    }),
  );

  it(
    'asks and stops with the keyboard alone',
    inBrowser(async (browsing) => {
      const pause = hold();
      chat.flow.model.use(scripted({ 'Only keys?': { steps: [{ text: 'Click, clack' }, { hold: pause }] } }));
      const page = await ChatPage.open(browsing, chat.url);
      const { keyboard } = page.page;
      const focused = () =>
        page.page.evaluate(() => document.activeElement?.getAttribute('aria-label') ?? document.activeElement?.textContent);
      // The page opens in the composer; from there Tab leaves the page, and its first stop is the skip link.
      for (let tabs = 0; tabs < 3 && (await focused()) !== 'Skip to the message box'; tabs++) await keyboard.press('Tab');
      expect(await focused()).to.equal('Skip to the message box');
      await keyboard.press('Enter');
      expect(await focused()).to.equal('Message to Hephaestus');
      await keyboard.type('Only keys?');
      await keyboard.press('Enter');
      await page.shows(['question: Only keys?', 'answering: Click, clack']);
      await keyboard.press('Tab');
      expect(await focused()).to.equal('Stop');
      await keyboard.press('Enter');
      await page.shows(['question: Only keys?', 'stopped: Click, clack']);
    }),
  );

  it(
    'cannot send nothing, and Shift+Enter only starts a line',
    inBrowser(async (browsing) => {
      const page = await ChatPage.open(browsing, chat.url);
      for (const nothing of ['', '   ', '\n\n \t', '\u200b\u2060', '\u3000']) {
        await page.composer.fill(nothing);
        expect(await page.send.isDisabled(), JSON.stringify(nothing)).to.equal(true);
        await page.composer.press('Enter');
      }
      await page.composer.fill('Two');
      await page.composer.press('Shift+Enter');
      await page.page.keyboard.type('lines?');
      expect(await page.composer.inputValue()).to.equal('Two\nlines?');
      await page.send.click();
      await page.shows(['question: Two\nlines?', 'answer: You asked: Two\nlines?']);
      expect(browsing.requests.filter((url) => url.endsWith('/questions'))).to.have.length(1);
    }),
  );

  it(
    'is told that 32,001 characters are too many, and sends 32,000',
    inBrowser(async (browsing) => {
      const page = await ChatPage.open(browsing, chat.url);
      const longest = '𝔞'.repeat(32_000);
      await page.composer.fill(`${longest}b`);
      await page.page
        .getByRole('alert')
        .filter({ hasText: /\b1 character too long/ })
        .waitFor();
      expect(await page.send.isDisabled()).to.equal(true);
      await page.composer.press('Enter');
      expect(browsing.requests.filter((url) => url.endsWith('/questions'))).to.have.length(0);
      await page.composer.fill(longest);
      await page.page.getByText('0 characters left').waitFor();
      await page.composer.press('Enter');
      await page.shows([`question: ${longest}`, `answer: You asked: ${longest}`]);
    }),
  );
});
