/**
 * What the page looks like in each of its states: in light and dark, wide and narrow, for axe-core, and for those who open spec/web/shots.
 */
import { expect } from 'chai';
import { useBrowser } from '../support/browser.ts';
import { ChatPage } from '../support/chat-page.ts';
import { scripted, useChatServer } from '../support/chat-server.ts';
import { hold } from '../support/model-server.ts';
import { sticksOut } from '../support/page-checks.ts';
import { DESK, looksRight, PHONE } from '../support/page-looks.ts';

const RICH = `## What I found

The file \`report.md\` names **three** causes and *one* cure, see [the manual](https://manual.example/cure).

1. Cold iron
2. A slow hammer
   - worn handle
- [x] heated
- [ ] quenched

> Strike while it is hot.

\`\`\`ts
// How often the hammer falls.
export function strikes(minutes: number): string {
  return \`\${minutes * 30} strikes\`;
}
\`\`\`

| Metal | Melts at |
|---|---|
| Iron | 1538 °C |
| Tin | 232 °C |

The energy is $E = mc^2$.`;

describe('what the page looks like', function () {
  this.timeout(60_000);
  const inBrowser = useBrowser();

  describe('with a provider', () => {
    const chat = useChatServer();

    it(
      'when it is empty: it says what to do, and has no label of the demo',
      inBrowser(async (browsing) => {
        const page = await ChatPage.open(browsing, chat.url, { viewport: DESK });
        await page.page.getByRole('heading', { name: 'Ask Hephaestus' }).waitFor();
        expect(await page.notices.getByText('Demo model').count()).to.equal(0);
        await looksRight(page.page, 'empty');
      }),
    );

    it(
      'while it answers, with a question that waits, and when the answer is there',
      inBrowser(async (browsing) => {
        const pause = hold();
        chat.flow.model.use(
          scripted({ 'What did you find?': { steps: [{ text: RICH.slice(0, 160) }, { hold: pause }, { text: RICH.slice(160) }] } }),
        );
        const page = await ChatPage.open(browsing, chat.url, { viewport: DESK });
        await page.ask('What did you find?');
        await page.page.getByText('A slow hammer').waitFor();
        await looksRight(page.page, 'answering');
        await page.ask('And what does it cost?');
        await page.question('And what does it cost?').getByText('Queued · next').waitFor();
        await looksRight(page.page, 'queued');
        pause.release();
        const answer = await page.answerTo('What did you find?');
        await answer.locator('.hljs-keyword').first().waitFor();
        await answer.locator('math').waitFor();
        await page.answerTo('And what does it cost?');
        await page.stop.waitFor({ state: 'detached' });
        await looksRight(page.page, 'answered');
      }),
    );

    it(
      'when a turn failed, and when one was stopped',
      inBrowser(async (browsing) => {
        const pause = hold();
        chat.flow.model.use(
          scripted({
            'Stop here?': { steps: [{ text: 'It begins with' }, { hold: pause }] },
            'Will it fail?': { status: 400, body: { error: { type: 'invalid_request_error', message: 'no' } } },
          }),
        );
        const page = await ChatPage.open(browsing, chat.url, { viewport: DESK });
        await page.ask('Stop here?');
        await page.shows(['question: Stop here?', 'answering: It begins with']);
        await page.stop.click();
        await page.shows(['question: Stop here?', 'stopped: It begins with']);
        await page.ask('Will it fail?');
        await page.page.getByRole('button', { name: 'Try again' }).waitFor();
        await looksRight(page.page, 'failed');
      }),
    );

    it(
      'when the network is away and a question could not be sent',
      inBrowser(async (browsing) => {
        browsing.expects(/Failed to load resource: net::ERR_INTERNET_DISCONNECTED/);
        const context = await browsing.context({ viewport: DESK });
        const page = await ChatPage.open(browsing, chat.url, { context });
        await context.setOffline(true);
        await page.ask('Is anybody there?');
        await page.question('Is anybody there?').getByText('Not sent').waitFor();
        await page.notices.getByText('You are offline.').waitFor();
        await looksRight(page.page, 'offline');
      }),
    );

    it(
      'in the colours that the person chose, also after a reload',
      inBrowser(async (browsing) => {
        const page = await ChatPage.open(browsing, chat.url, { colorScheme: 'light' });
        const colours = () => page.page.evaluate(() => getComputedStyle(document.body).backgroundColor);
        const light = await colours();
        await page.page.emulateMedia({ colorScheme: 'dark' });
        const dark = await colours();
        expect(dark, 'as the system').to.not.equal(light);
        const choose = async (choice: string) => {
          await page.menu.click();
          await page.page.getByRole('radio', { name: choice, exact: true }).check();
          await page.page.keyboard.press('Escape');
        };
        await choose('Light');
        expect(await colours()).to.equal(light);
        await page.page.emulateMedia({ colorScheme: 'light' });
        await choose('Dark');
        expect(await colours()).to.equal(dark);
        await page.reload();
        expect(await colours()).to.equal(dark);
      }),
    );
  });

  describe('without a provider', () => {
    const chat = useChatServer({ env: { HEPH_LLM_API: '', HEPH_LLM_BASE_URL: '', HEPH_LLM_API_KEY: '', HEPH_LLM_MODEL: '' } });

    it(
      'it is labelled as a demo, and a suggested question gets an answer of the demo model',
      inBrowser(async (browsing) => {
        const page = await ChatPage.open(browsing, chat.url, { viewport: DESK });
        await page.notices.getByText('Demo model: No AI provider is configured.').waitFor();
        await page.page.getByRole('button', { name: 'What files can you see?' }).click();
        await page.answerTo('What files can you see?');
        expect((await page.transcript(null))[1]).to.match(/^answer: .*INDEX\.md/s);
        await page.shoot('demo');
        await page.reload();
        await page.notices.getByText('Demo model').waitFor();
        await page.page.setViewportSize(PHONE);
        expect(await sticksOut(page.page)).to.deep.equal([]);
        await page.shoot('demo-360');
      }),
    );
  });
});
