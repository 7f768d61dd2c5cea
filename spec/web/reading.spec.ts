/**
 * Reading: what is new, on one device and on several; being told when an answer is there; drafts; taking the conversation along.
 */
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { useBrowser } from '../support/browser.ts';
import { ChatPage } from '../support/chat-page.ts';
import { scripted, useChatServer } from '../support/chat-server.ts';
import { hold } from '../support/model-server.ts';

/** Takes the place of the system's notifications, which a browser without a screen does not have. Runs in the page. */
function plantNotifications(): void {
  const told: string[] = [];
  class Planted {
    static permission = 'default';
    static asked = 0;
    static readonly told = told;
    static async requestPermission(): Promise<string> {
      Planted.asked += 1;
      Planted.permission = 'granted';
      return 'granted';
    }
    onclick = null;
    constructor(title: string, options: { body: string }) {
      told.push(`${title}: ${options.body}`);
    }
    close(): void {}
  }
  Object.assign(globalThis, { Notification: Planted });
}

describe('a person who reads', function () {
  this.timeout(90_000);
  const inBrowser = useBrowser();
  const chat = useChatServer();
  const askAndWait = async (text: string) => chat.person.waitForTurn((await chat.person.ask(text)).turn.id);

  const newestAnswerAt = async () => {
    const { id } = await chat.person.conversation();
    return (await chat.person.entries(id)).findLast(({ kind }) => kind === 'answer')?.createdAt;
  };

  it(
    'finds a mark above the answer that came while they were away, and has read it on every device when they have seen it',
    inBrowser(async (browsing) => {
      const [here, there] = [await ChatPage.open(browsing, chat.url), await ChatPage.open(browsing, chat.url)];
      await askAndWait('Before all that?');
      await here.shows(['question: Before all that?', 'answer: You asked: Before all that?']);
      await Promise.all([here.look('away'), there.look('away')]);
      await askAndWait('Is it new?');
      for (const page of [here, there]) {
        await page.shows(['question: Is it new?', 'answer: You asked: Is it new?']);
        await page.hasTitle(/^\(1\) Hephaestus/);
      }
      const mark = here.page.locator('.unread-mark + .message');
      expect(await mark.textContent()).to.include('You asked: Is it new?');
      const newest = await newestAnswerAt();
      expect((await chat.person.conversation()).lastReadAt, 'nobody has looked').to.not.equal(newest);
      await here.look('here');
      await here.hasTitle(/^Hephaestus/);
      await there.hasTitle(/^Hephaestus/);
      expect((await chat.person.conversation()).lastReadAt).to.equal(newest);
      expect(await mark.count(), 'the mark stays while they read').to.equal(1);
      await here.shoot('unread-read');
      await there.look('here');
      await here.reload();
      expect(await here.page.locator('.unread-mark').count()).to.equal(0);
      expect(await here.page.title()).to.match(/^Hephaestus/);
    }),
  );

  it(
    'opens the page at the first new answer, and has read all when they come to the end',
    inBrowser(async (browsing) => {
      for (let n = 0; n < 12; n++) await askAndWait(`Missed ${n}?`);
      const before = await chat.person.conversation();
      const page = await ChatPage.open(browsing, chat.url, { viewport: { width: 800, height: 600 } });
      await page.page.locator('.unread-mark').waitFor();
      const mark = await page.page.locator('.unread-mark').boundingBox();
      expect(mark?.y, 'at the upper edge').to.be.lessThan(200);
      await page.hasTitle(/^\(12\)/);
      await page.page.getByRole('button', { name: '12 new answers' }).click();
      await page.hasTitle(/^Hephaestus/);
      const { lastReadAt } = await chat.person.conversation();
      expect(lastReadAt)
        .to.equal(await newestAnswerAt())
        .and.not.equal(before.lastReadAt);
    }),
  );

  it(
    'is told by the system that an answer is ready when they asked for that and look elsewhere, without its words',
    inBrowser(async (browsing) => {
      const context = await browsing.context();
      await context.addInitScript(plantNotifications);
      const pauses = [hold(), hold()] as const;
      chat.flow.model.use(
        scripted({
          'Seen?': { steps: [{ hold: pauses[0] }, { text: 'Secret one.' }] },
          'Unseen?': { steps: [{ hold: pauses[1] }, { text: 'Secret two.' }] },
        }),
      );
      const page = await ChatPage.open(browsing, chat.url, { context });
      const planted = () =>
        page.page.evaluate(() => {
          const { asked, told } = Notification as unknown as { asked: number; told: string[] };
          return { asked, told };
        });
      expect(await planted(), 'nobody is asked on arrival').to.deep.equal({ asked: 0, told: [] });
      await page.menu.click();
      await page.page.getByRole('checkbox', { name: 'Notify me when an answer is ready' }).check();
      await page.page.keyboard.press('Escape');
      expect((await planted()).asked).to.equal(1);
      await page.ask('Seen?');
      pauses[0].release();
      await page.shows(['question: Seen?', 'answer: Secret one.']);
      await page.ask('Unseen?');
      await page.look('away');
      pauses[1].release();
      await page.page.waitForFunction(() => (Notification as unknown as { told: string[] }).told.length > 0);
      expect((await planted()).told).to.deep.equal(['Hephaestus: Your answer is ready.']);
    }),
  );

  it(
    'finds what they had not sent yet after a reload, and not any more once it was sent',
    inBrowser(async (browsing) => {
      const page = await ChatPage.open(browsing, chat.url);
      await page.composer.fill('Two lines\nof a thought?');
      await page.reload();
      expect(await page.composer.inputValue()).to.equal('Two lines\nof a thought?');
      await page.composer.press('Enter');
      await page.shows(['question: Two lines\nof a thought?', 'answer: You asked: Two lines\nof a thought?']);
      await page.reload();
      expect(await page.composer.inputValue()).to.equal('');
    }),
  );

  it(
    'takes the conversation along from the menu and from the commands',
    inBrowser(async (browsing) => {
      await askAndWait('Will I keep it?');
      const { page, menu } = await ChatPage.open(browsing, chat.url);
      const [markdown] = await Promise.all([
        page.waitForEvent('download'),
        menu.click().then(() => page.getByRole('link', { name: 'Download as Markdown' }).click()),
      ]);
      expect(markdown.suggestedFilename()).to.match(/^heph-home-\d{4}-\d\d-\d\d\.md$/);
      expect(readFileSync(await markdown.path(), 'utf8')).to.include('> Will I keep it?\n');
      await page.keyboard.press('Escape');
      const [json] = await Promise.all([
        page.waitForEvent('download'),
        page.keyboard
          .press('Control+k')
          .then(() => page.keyboard.type('json'))
          .then(() => page.keyboard.press('Enter')),
      ]);
      const { entries } = JSON.parse(readFileSync(await json.path(), 'utf8')) as { entries: { text: string }[] };
      expect(entries.at(-2)?.text).to.equal('Will I keep it?');
    }),
  );
});
