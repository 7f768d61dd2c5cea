/**
 * The page over time: reloads, servers and sandboxes that are killed, several pages and devices, a network that comes and goes.
 * Whatever happens, each message is there once.
 */
import { expect } from 'chai';
import { z } from 'zod';
import { sql } from '../../db/pool.ts';
import { useBrowser } from '../support/browser.ts';
import { ChatPage } from '../support/chat-page.ts';
import { scripted, useChatServer } from '../support/chat-server.ts';
import { Flow, runnerPids } from '../support/flow.ts';
import { hold } from '../support/model-server.ts';
import { newDataDir } from '../support/server-process.ts';

/** What a browser says about a server that is not there. */
const GONE = /Failed to load resource: net::ERR_/;

function streamsIn(requests: readonly string[]): number {
  return requests.filter((url) => url.endsWith('/events')).length;
}

describe('the page over time', function () {
  this.timeout(90_000);
  const inBrowser = useBrowser();
  const chat = useChatServer();

  it(
    'is reloaded in the middle of an answer: each message is there once, and the answer goes on',
    inBrowser(async (browsing) => {
      const pause = hold();
      chat.flow.model.use(scripted({ 'Reloaded?': { steps: [{ text: 'Half of ' }, { hold: pause }, { text: 'a thought.' }] } }));
      const page = await ChatPage.open(browsing, chat.url);
      await page.ask('Before it?');
      await page.shows(['question: Before it?', 'answer: You asked: Before it?']);
      await page.ask('Reloaded?');
      const half = ['question: Before it?', 'answer: You asked: Before it?', 'question: Reloaded?', 'answering: Half of'] as const;
      await page.shows(half);
      await page.reload();
      await page.shows(half);
      pause.release();
      await page.shows([...half.slice(0, 3), 'answer: Half of a thought.']);
    }),
  );

  it(
    'shows that a sandbox died, drops the half answer, and shows the second attempt alone',
    inBrowser(async (browsing) => {
      const [first, second] = [hold(), hold()];
      chat.flow.model.use(
        scripted({
          'Odroid?': [{ steps: [{ text: 'Odroid N2+' }, { hold: first }] }, { steps: [{ hold: second }, { text: 'The whole answer.' }] }],
        }),
      );
      const page = await ChatPage.open(browsing, chat.url);
      await page.ask('Odroid?');
      await page.shows(['question: Odroid?', 'answering: Odroid N2+']);
      for (const pid of runnerPids(chat.server.pid)) process.kill(pid, 'SIGKILL');
      await second.arrived;
      await page.shows(['question: Odroid?', 'answering: ']);
      second.release();
      first.release();
      const end = ['question: Odroid?', 'answer: The whole answer.'] as const;
      await page.shows(end);
      await page.reload();
      await page.shows(end);
    }),
  );

  it(
    'moves together with the other pages of the account: two share one stream, a third is on another device',
    inBrowser(async (browsing) => {
      const pauses = [hold(), hold()] as const;
      chat.flow.model.use(
        scripted({
          'All of you?': { steps: [{ text: 'We are ' }, { hold: pauses[0] }, { text: 'three.' }] },
          'And now?': { steps: [{ text: 'Now we are ' }, { hold: pauses[1] }, { text: 'two.' }] },
        }),
      );
      const context = await browsing.context();
      const first = await ChatPage.open(browsing, chat.url, { context });
      const second = await ChatPage.open(browsing, chat.url, { context });
      const before = browsing.requests.length;
      const third = await ChatPage.open(browsing, chat.url);
      expect(streamsIn(browsing.requests.slice(before)), 'the other device has a stream of its own').to.equal(1);
      const pages = [first, second, third];
      await second.ask('All of you?');
      for (const page of pages) await page.shows(['question: All of you?', 'answering: We are']);
      pauses[0].release();
      for (const page of pages) await page.shows(['question: All of you?', 'answer: We are three.']);
      await first.page.close();
      await third.ask('And now?');
      const half = ['question: All of you?', 'answer: We are three.', 'question: And now?', 'answering: Now we are'] as const;
      for (const page of [second, third]) await page.shows(half);
      await second.stop.click();
      for (const page of [second, third]) await page.shows([...half.slice(0, 3), 'stopped: Now we are']);
    }),
  );

  it(
    'shares one stream among all pages of a browser, so that the seventh page still works',
    inBrowser(async (browsing) => {
      const context = await browsing.context();
      const pages: ChatPage[] = [];
      for (let n = 0; n < 7; n++) pages.push(await ChatPage.open(browsing, chat.url, { context }));
      await pages[6]?.ask('Seven pages?');
      for (const page of pages) await page.shows(['question: Seven pages?', 'answer: You asked: Seven pages?']);
    }),
  );

  it(
    'keeps a question that was asked offline, and sends it once when the person says so',
    inBrowser(async (browsing) => {
      browsing.expects(GONE);
      const context = await browsing.context();
      const page = await ChatPage.open(browsing, chat.url, { context });
      await context.setOffline(true);
      await page.notices.getByText('You are offline.').waitFor();
      await page.ask('Anybody there?');
      await page.question('Anybody there?').getByText('Not sent').waitFor();
      await context.setOffline(false);
      await page.notices.getByText('You are offline.').waitFor({ state: 'detached' });
      await page.actionOf('Anybody there?', 'Send again').click();
      const end = ['question: Anybody there?', 'answer: You asked: Anybody there?'] as const;
      await page.shows(end);
      await page.reload();
      await page.shows(end);
    }),
  );

  describe('servers that come and go', () => {
    let flow: Flow | undefined;
    afterEach(async () => {
      await flow?.close();
      flow = undefined;
    });

    it(
      'says that it reconnects, and goes on by itself when the server is back: nothing is lost, nothing is doubled',
      inBrowser(async (browsing) => {
        browsing.expects(GONE);
        flow = await Flow.open({ env: { HEPH_SANDBOX_WARM: '1' } });
        const pause = hold();
        flow.model.use(scripted({ 'Killed?': [{ steps: [{ text: 'I was ' }, { hold: pause }] }, { steps: [{ text: 'I am back.' }] }] }));
        const dataDir = newDataDir();
        const server = await flow.server({ dataDir });
        const page = await ChatPage.open(browsing, server.url('/'));
        await page.ask('Early?');
        await page.shows(['question: Early?', 'answer: You asked: Early?']);
        await page.ask('Killed?');
        await page.ask('Later?');
        await page.shows([
          'question: Early?',
          'answer: You asked: Early?',
          'question: Killed?',
          'answering: I was',
          'question: Later? [Queued · next]',
        ]);
        await server.kill();
        await page.notices.getByText('Reconnecting…').waitFor();
        await page.shoot('reconnecting');
        await flow.server({ dataDir, env: { HEPH_PORT: String(server.port) } });
        await page.notices.getByText('Reconnecting…').waitFor({ state: 'detached' });
        const end = [
          'question: Early?',
          'answer: You asked: Early?',
          'question: Killed?',
          'answer: I am back.',
          'question: Later?',
          'answer: You asked: Later?',
        ] as const;
        await page.shows(end);
        pause.release();
        await page.reload();
        await page.shows(end);
        expect(await page.transcript(null)).to.deep.equal(end);
      }),
    );

    it(
      'hears what another server did, also after its database connection was cut',
      inBrowser(async (browsing) => {
        flow = await Flow.open({ env: { HEPH_SANDBOX_WARM: '1' } });
        const [here, there] = [await flow.server(), await flow.server()];
        const page = await ChatPage.open(browsing, here.url('/'));
        const elsewhere = flow.person(there);
        await elsewhere.ask('From there?');
        await page.shows(['question: From there?', 'answer: You asked: From there?']);
        const cut = await flow.db.any(sql.type(z.object({ cut: z.boolean() }))`
          select pg_terminate_backend(pid) as cut from pg_stat_activity
          where datname = current_database() and application_name = 'heph-listen'`);
        expect(cut, 'each server listens').to.have.length.of.at.least(2);
        await elsewhere.ask('And after it?');
        await page.shows([
          'question: From there?',
          'answer: You asked: From there?',
          'question: And after it?',
          'answer: You asked: And after it?',
        ]);
      }),
    );
  });
});
