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
const GONE = /Failed to load resource: net::ERR_|ERR_INCOMPLETE_CHUNKED_ENCODING/;

function streamsIn(requests: readonly string[]): number {
  return requests.filter((url) => url.endsWith('/events')).length;
}

describe('a page whose server is killed', function () {
  this.timeout(90_000);
  const inBrowser = useBrowser();
  let flow: Flow | undefined;
  afterEach(async () => {
    await flow?.close();
  });

  it(
    'says that it reconnects, and goes on by itself when the server is back: nothing is lost, nothing is doubled',
    inBrowser(async (browsing) => {
      browsing.expects(GONE);
      flow = await Flow.open();
      const pause = hold();
      flow.model.use(scripted({ 'Killed?': [{ steps: [{ text: 'I was ' }, { hold: pause }] }, { steps: [{ text: 'I am back.' }] }] }));
      const dataDir = newDataDir();
      const server = await flow.server({ dataDir });
      const page = await ChatPage.open(browsing, server.url('/'));
      console.log(Math.round(performance.now()),'before next step');
      await page.ask('Early?');
      console.log(Math.round(performance.now()),'before next step');
      await page.shows(['question: Early?', 'answer: You asked: Early?']);
      console.log(Math.round(performance.now()),'before next step');
      await page.ask('Killed?');
      console.log(Math.round(performance.now()),'before next step');
      await page.ask('Later?');
      console.log(Math.round(performance.now()),'before next step');
      await page.shows(['question: Early?', 'answer: You asked: Early?', 'question: Killed?', 'answering: I was', 'question: Later? [Queued · next]']);
      console.log(Math.round(performance.now()),'before next step');
      await server.kill();
      console.log(Math.round(performance.now()),'before next step');
      await page.notices.getByText('Reconnecting…').waitFor();
      console.log(Math.round(performance.now()),'before next step');
      await page.shoot('reconnecting');
      console.log(Math.round(performance.now()),'before next step');
      const again = await flow.server({ dataDir, env: { HEPH_PORT: String(server.port) } });
      console.log(Math.round(performance.now()),'before next step');
      await page.notices.getByText('Reconnecting…').waitFor({ state: 'detached' });
      const end = [
        'question: Early?',
        'answer: You asked: Early?',
        'question: Killed?',
        'answer: I am back.',
        'question: Later?',
        'answer: You asked: Later?',
      ] as const;
      console.log(Math.round(performance.now()),'before next step');
      await page.shows(end);
      pause.release();
      console.log(again.tail(60));
      console.log(Math.round(performance.now()),'before next step');
      await page.reload();
      console.log(Math.round(performance.now()),'before next step');
      await page.shows(end);
      expect(await page.transcript(null)).to.deep.equal(end);
    }),
  );

  it(
    'hears what another server did, also after its database connection was cut',
    inBrowser(async (browsing) => {
      flow = await Flow.open();
      const [here, there] = [await flow.server(), await flow.server()];
      const page = await ChatPage.open(browsing, here.url('/'));
      const elsewhere = flow.person(there);
      console.log(Math.round(performance.now()),'before next step');
      await elsewhere.ask('From there?');
      console.log(Math.round(performance.now()),'before next step');
      await page.shows(['question: From there?', 'answer: You asked: From there?']);
      const cut = await flow.db.any(sql.type(z.object({ cut: z.boolean() }))`
        select pg_terminate_backend(pid) as cut from pg_stat_activity
        where datname = current_database() and application_name = 'heph-listen'`);
      expect(cut, 'each server listens').to.have.length.of.at.least(2);
      console.log(Math.round(performance.now()),'before next step');
      await elsewhere.ask('And after it?');
      console.log(Math.round(performance.now()),'before next step');
      await page.shows(['question: From there?', 'answer: You asked: From there?', 'question: And after it?', 'answer: You asked: And after it?']);
    }),
  );
});
