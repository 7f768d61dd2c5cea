/**
 * Every state has a design: each one in both themes, wide and narrow, through axe-core, with pictures for people.
 * The states come from the stand-in server, which can be brought into each of them at once; that the real one brings the page there is
 * proved by the other specs of this folder.
 */
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { failureTexts } from '../../actors/failure-texts.ts';
import type { Turn } from '../../src/contract/web.ts';
import { type Browsing, shoot, useBrowser } from '../support/browser.ts';
import { type FakeOptions, FakeWebServer } from '../support/fake-web-server.ts';
import { DESK, looksRight } from '../support/page-looks.ts';

const { refusals, ...failures } = failureTexts('Hephaestus');
const FAILURES = [...Object.values(failures), ...Object.entries(refusals).map(([code, text]) => ({ code, text }))];

describe('a state of the page', function () {
  this.timeout(120_000);
  const inBrowser = useBrowser();
  let server: FakeWebServer;
  afterEach(() => server.close());

  /** The page of a stand-in server that is prepared by then. */
  async function open(browsing: Browsing, options: FakeOptions, prepare: (fake: FakeWebServer) => void = () => undefined): Promise<Page> {
    server = new FakeWebServer(options);
    prepare(server);
    return browsing.open(await server.listen(), { viewport: DESK });
  }
  const ready = (page: Page) => page.locator('main.scroller[aria-busy="false"]').waitFor();
  const ask = async (page: Page, text: string) => {
    await page.locator('#composer-input').fill(text);
    await page.keyboard.press('Enter');
  };

  it(
    'while the conversation loads is a sketch of it',
    inBrowser(async (browsing) => {
      const gate = Promise.withResolvers<void>();
      const page = await open(browsing, { history: 3 }, (fake) => {
        fake.pagesAfter = gate.promise;
      });
      await page.locator('.skeleton').waitFor();
      await looksRight(page, 'loading');
      gate.resolve();
      await ready(page);
      expect(await page.locator('.skeleton').count()).to.equal(0);
    }),
  );

  it(
    'with the first question is that question alone, until its answer begins',
    inBrowser(async (browsing) => {
      const page = await open(browsing, {});
      await ready(page);
      const sent = Promise.withResolvers<void>();
      await page.route('**/questions', async (route) => {
        await sent.promise;
        await route.continue();
      });
      await ask(page, 'Where do I begin? #hold');
      await page.getByText('Sending…').waitFor();
      expect(await page.locator('.message').count()).to.equal(1);
      expect(await page.getByRole('heading', { name: 'Ask Hephaestus' }).count(), 'the empty page').to.equal(0);
      await looksRight(page, 'first-question');
      sent.resolve();
      await page.locator('.message.answer').waitFor();
    }),
  );

  it(
    'with an answer that was stopped keeps its words, and says so',
    inBrowser(async (browsing) => {
      const page = await open(browsing, {}, ({ ledger }) => {
        for (const [question, words] of [
          ['What was cut off?', 'It was going to'],
          ['And before a word?', null],
        ] as const) {
          const { turn } = ledger.ask(question, question);
          ledger.claim();
          ledger.stop(ledger.turns.find(({ id }) => id === turn.id) as Turn);
          ledger.endStopped(words);
        }
      });
      await ready(page);
      await page.locator('.message.answer .chip', { hasText: 'Stopped' }).waitFor();
      await page.getByText('Stopped before an answer').waitFor();
      await looksRight(page, 'stopped');
    }),
  );

  it(
    'with a question that waits for a free slot says at which place',
    inBrowser(async (browsing) => {
      const page = await open(browsing, { history: 1 });
      await ready(page);
      await ask(page, 'Is anybody free? #wait');
      await page.getByText('Waiting for a free Hephaestus · place 3').waitFor();
      await looksRight(page, 'waiting');
      await page.getByRole('button', { name: 'Remove' }).click();
      await page.getByText('Removed from the queue').waitFor();
      await looksRight(page, 'removed');
    }),
  );

  it(
    'with a turn that failed tells each cause in the server’s words, and offers to try again where that can help',
    inBrowser(async (browsing) => {
      const page = await open(browsing, {}, ({ ledger }) => {
        for (const failure of FAILURES) {
          ledger.ask(failure.code, `What about ${failure.code.toLowerCase().replaceAll('_', ' ')}?`);
          ledger.claim();
          ledger.end('FAILED', [], failure);
        }
      });
      await ready(page);
      expect(await page.locator('.failure-box p').allTextContents()).to.deep.equal(FAILURES.map(({ text }) => text));
      expect(await page.getByRole('button', { name: 'Try again' }).count()).to.equal(FAILURES.length - 1);
      await looksRight(page, 'failures-end');
      await page.locator('.scroller').evaluate((box) => box.scrollTo(0, 0));
      await looksRight(page, 'failures');
      // One picture of them all.
      const heightPx = await page.locator('.scroller').evaluate((box) => box.scrollHeight);
      await page.setViewportSize({ width: DESK.width, height: heightPx + 300 });
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        await shoot(page, `failures-all-${colorScheme}`);
      }
    }),
  );

  it(
    'with messages that were deleted, came from Slack, or were stopped',
    inBrowser(async (browsing) => {
      const page = await open(browsing, { history: 4 }, ({ ledger }) => {
        const [first, second, third] = ledger.entries;
        if (first !== undefined) first.surface = 'slack';
        if (second !== undefined) ledger.erase(second);
        if (third !== undefined) ledger.erase(third);
      });
      await ready(page);
      await page.getByText('from Slack').waitFor();
      expect(await page.getByText('This message was deleted.').count()).to.equal(2);
      await page.locator('.scroller').evaluate((box) => box.scrollTo(0, 0));
      await looksRight(page, 'erased');
    }),
  );

  for (const [status, words, name] of [
    [401, 'You are signed out. Sign in to go on; what you have written is kept.', 'signed-out'],
    [403, 'You no longer have access to this workspace.', 'no-access'],
  ] as const) {
    it(
      `when the account is refused with ${status} in the middle can be read and not written, and keeps the draft`,
      inBrowser(async (browsing) => {
        browsing.expects(/Failed to load resource/);
        const page = await open(browsing, { history: 3 });
        await ready(page);
        await page.locator('#composer-input').fill('Half a thought');
        server.refuseWith = status;
        server.dropStreams();
        await page.getByText(words).waitFor();
        await page.getByText('You can still read and copy what is here.').waitFor();
        expect(await page.getByRole('textbox').count()).to.equal(0);
        expect(await page.getByRole('button', { name: 'Try again' }).count()).to.equal(0);
        await looksRight(page, name);
        server.refuseWith = null;
        await page.reload();
        await ready(page);
        expect(await page.locator('#composer-input').inputValue()).to.equal('Half a thought');
      }),
    );

    it(
      `when the account is refused with ${status} from the start says so`,
      inBrowser(async (browsing) => {
        browsing.expects(/Failed to load resource/);
        const page = await open(browsing, {}, (fake) => {
          fake.refuseWith = status;
        });
        await page.getByText(status === 401 ? 'You are signed out.' : 'This account belongs to no workspace.').waitFor();
        await looksRight(page, `${name}-start`);
      }),
    );
  }

  it(
    'while the server is away at the start says that the page keeps trying',
    inBrowser(async (browsing) => {
      browsing.expects(/Failed to load resource/);
      server = new FakeWebServer({ history: 1 });
      const url = await server.listen();
      const context = await browsing.context({ viewport: DESK });
      await context.route('**/session', (route) => route.abort());
      const page = await browsing.open(url, { context });
      await page.getByText('The server does not answer yet.').waitFor();
      await looksRight(page, 'unreachable');
      await context.unroute('**/session');
      await ready(page);
    }),
  );

  it(
    'with the menu, the commands, a search among them that finds nothing, and the shortcuts over it',
    inBrowser(async (browsing) => {
      const page = await open(browsing, { history: 3 });
      await ready(page);
      await page.getByRole('button', { name: 'Menu', exact: true }).click();
      await page.getByRole('radio', { name: 'Dark' }).waitFor();
      await looksRight(page, 'menu');
      await page.keyboard.press('Escape');
      await page.keyboard.press('Control+k');
      await page.getByRole('combobox').waitFor();
      await looksRight(page, 'palette');
      await page.getByRole('combobox').fill('xyz');
      await page.getByText('There is no such command, and no message says that.').waitFor();
      await looksRight(page, 'palette-none');
      await page.keyboard.press('Escape');
      await page.keyboard.press('Control+/');
      await page.getByRole('heading', { name: 'Keyboard shortcuts' }).waitFor();
      await looksRight(page, 'shortcuts');
    }),
  );

  it(
    'with new answers marks them, and counts them in the title',
    inBrowser(async (browsing) => {
      const page = await open(browsing, { history: 12, unread: 5 });
      await ready(page);
      await page.getByText('New', { exact: true }).waitFor();
      expect(await page.title()).to.match(/^\(4\) |^\(5\) /);
      await looksRight(page, 'unread');
    }),
  );
});
