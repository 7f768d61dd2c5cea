/**
 * The operator page in a browser: who is let in, one conversation and its actor, words that are revealed, batches, the outbox, sandboxes.
 */
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { sql } from '../../db/pool.ts';
import { leaseNext, settleAction } from '../../db/slack/outbox.ts';
import { readConfig } from '../../src/config.ts';
import { operatorDoor } from '../../src/http/index.ts';
import { MemberAdmin } from '../../src/models/members.ts';
import { useBrowser } from '../support/browser.ts';
import { useDatabase } from '../support/database.ts';
import { ask, emptyLedger, makeMain, makePerson, run } from '../support/ledger.ts';
import { type DeskOptions, useDesks } from '../support/operators.ts';
import { DESK, looksRight } from '../support/page-looks.ts';
import { claimed, endDone } from '../support/scene.ts';
import { actions, connect, fillOutbox, QUICK, TEAM } from '../support/slack-scene.ts';

const PAGE = fileURLToPath(new URL('../../dist/web', import.meta.url));
const VIEWER = 'viewer-0123456789abcdef0123456789abcdef';
const SECRET = 'where the key lies under the mat';

describe('the operator page', function () {
  this.timeout(60_000);
  const database = useDatabase();
  const inBrowser = useBrowser();
  const desks = useDesks(database);

  async function desk(options: DeskOptions = {}) {
    return desks({ pageFolder: PAGE, members: new MemberAdmin(database.db), ...options });
  }
  beforeEach(async () => {
    await emptyLedger(database.db);
    await run(database.db, sql.unsafe`truncate operator_action`);
  });
  const log = () => run(database.db, sql.unsafe`select action, operator, reason from operator_action order by id`);
  async function waiting(count: number) {
    for (let n = 0; n < count; n++) {
      const person = await makePerson(database.db);
      await ask(database.db, person, await makeMain(database.db, person));
    }
  }
  const loaded = (page: Page) => page.getByText(/^Read at/).waitFor();

  it(
    'asks who the operator is, takes a token for this tab, and offers a viewer nothing to do',
    inBrowser(async (browsing) => {
      browsing.expects(/status of 401/);
      const { tokens } = readConfig({ HEPH_OPS_VIEWER_TOKEN: VIEWER }, '/').ops;
      const adminGuard = operatorDoor({ db: database.db, tokens, metricsToken: null, local: false, signIn: null, bearer: null });
      const { url } = await desk({ adminGuard });
      const it = await claimed(database.db);
      const page = await browsing.open(`${url}/ops?tab=turns&id=${it.asked.turnId}`, { viewport: DESK });
      await page.getByText('Say who you are. Send').waitFor();
      await looksRight(page, 'ops-sign-in');
      await page.getByLabel(/Token of a role/).fill('none of theirs');
      await page.keyboard.press('Enter');
      await page.getByText('This token is none of this installation').waitFor();
      await page.getByLabel(/Token of a role/).fill(VIEWER);
      await page.keyboard.press('Enter');
      await page.getByText('token:viewer, viewer').waitFor();
      await page.getByRole('cell', { name: 'asked' }).waitFor();
      expect(await page.getByRole('button', { name: /Stop|Reveal/ }).count(), 'a viewer looks').to.equal(0);
      await page.reload();
      await page.getByText('token:viewer, viewer').waitFor();
      await page.getByRole('button', { name: 'Forget the token' }).click();
      await page.getByText('Say who you are. Send').waitFor();
    }),
  );

  it(
    'shows a conversation with its attempts and its ledger, and its words only for a reason that stays',
    inBrowser(async (browsing) => {
      const { url } = await desk();
      const it = await claimed(database.db);
      await ask(database.db, it.person, it.conversationId, { text: SECRET });
      await endDone(it);
      const page = await browsing.open(`${url}/ops?tab=turns&id=${it.asked.turnId}`, { viewport: DESK });
      await page.getByRole('link', { name: /^Its conversation/ }).click();
      await page.getByRole('heading', { name: 'Mailbox' }).waitFor();
      await page.getByRole('row').filter({ hasText: 'QUESTION' }).first().waitFor();
      expect(await page.content()).to.not.include(SECRET);
      await looksRight(page, 'ops-conversation');
      await page.setViewportSize(DESK);
      await page.getByRole('button', { name: 'Reveal entry 2' }).click();
      await page.getByRole('button', { name: 'Show the words…' }).click();
      await page.getByText('You read the words of a person').waitFor();
      expect(await page.content(), 'not yet').to.not.include(SECRET);
      await page.getByLabel('Why?').fill('they asked for help');
      await page.keyboard.press('Enter');
      await page.getByText(SECRET).waitFor();
      expect(await log()).to.deep.equal([{ action: 'reveal-entry', operator: 'local', reason: 'they asked for help' }]);
      await looksRight(page, 'ops-revealed');
      await page.setViewportSize(DESK);
      await page.getByRole('button', { name: 'Hide' }).click();
      await page.getByText(SECRET).waitFor({ state: 'detached' });
      await page.getByRole('link', { name: 'Actions' }).click();
      await page.getByText('they asked for help').waitFor();
      expect(await page.content()).to.not.include(SECRET);
    }),
  );

  it(
    'does one thing to all turns of a filter, when the operator types how many these are',
    inBrowser(async (browsing) => {
      browsing.expects(/status of 409/);
      await waiting(2);
      await claimed(database.db);
      const { url } = await desk();
      const page = await browsing.open(`${url}/ops?tab=turns&state=open`, { viewport: DESK });
      await loaded(page);
      await page.getByLabel('Waits for').selectOption('no-sandbox');
      await page.getByRole('button', { name: 'Filter', exact: true }).click();
      await page.waitForURL(/why=no-sandbox/);
      await page.getByLabel('All of these:').selectOption('skip');
      await page.getByRole('button', { name: 'Look what it would do…' }).click();
      await page.getByText('2 turns match; it would be done to 2.').waitFor();
      await looksRight(page, 'ops-batch');
      await page.setViewportSize(DESK);
      await page.getByLabel('How many turns do you mean?').fill('3');
      await page.getByLabel('Why?').fill('a broken model');
      await page.keyboard.press('Enter');
      await page.getByText('2 turns match now.').waitFor();
      expect(await log()).to.deep.equal([]);
      await page.getByLabel('How many turns do you mean?').fill('2');
      await page.keyboard.press('Enter');
      await page.getByText('Done: 2. Refused: 0. Failed: 0.').waitFor();
      expect(await log()).to.have.length(2);
      await page.goBack();
      await page.getByText('running', { exact: true }).last().waitFor();
    }),
  );

  it(
    'shows the outbox per channel, and settles an action whose outcome nobody knows',
    inBrowser(async (browsing) => {
      const { db } = database;
      const person = await makePerson(db);
      await connect(db, person);
      await fillOutbox(db, person, [2, 2]);
      const leased = await leaseNext(db, { teamId: TEAM, channelId: 'D0', leaseId: randomUUID() }, QUICK);
      const { id, leaseId } = leased as NonNullable<typeof leased>;
      await settleAction(db, { id, leaseId, to: { state: 'UNCERTAIN', reason: 'history_missing_scope', readAgain: false } }, QUICK);
      const { url } = await desk();
      const page = await browsing.open(`${url}/ops?tab=outbox`, { viewport: DESK });
      await page.getByText('history_missing_scope').waitFor();
      await looksRight(page, 'ops-outbox');
      await page.setViewportSize(DESK);
      await page.getByRole('button', { name: `Settle …${id.slice(-8)}` }).click();
      await page.getByRole('button', { name: 'Mark as sent…' }).click();
      await page.getByText('you have seen it in D0').waitFor();
      await page.getByLabel('Why?').fill('I see it there');
      await page.keyboard.press('Enter');
      await page.getByText('history_missing_scope').waitFor({ state: 'detached' });
      expect((await actions(db)).find((one) => one.id === id)?.state).to.equal('SENT');
      await page.getByRole('link', { name: 'D1' }).click();
      await page.waitForURL(/channel=D1/);
      await page.getByRole('row').filter({ hasText: 'PENDING' }).first().waitFor();
    }),
  );

  it(
    'shows sandboxes and spending, and pauses one surface',
    inBrowser(async (browsing) => {
      const it = await claimed(database.db);
      const { url } = await desk();
      const page = await browsing.open(`${url}/ops?tab=sandboxes`, { viewport: DESK });
      await page.getByRole('link', { name: `…${it.asked.turnId.slice(-8)}` }).waitFor();
      await looksRight(page, 'ops-sandboxes');
      await page.setViewportSize(DESK);
      await page.getByRole('link', { name: 'failed' }).click();
      await page.getByText('There are none.').waitFor();
      await page.getByRole('link', { name: 'Usage' }).click();
      await page.getByText('No model was called.').waitFor();
      await looksRight(page, 'ops-usage');
      await page.setViewportSize(DESK);
      await page.getByRole('link', { name: 'Actions' }).click();
      await page.getByLabel('Claims of').selectOption('Slack');
      await page.getByRole('button', { name: 'Pause claims…' }).click();
      await page.getByText('No turn of Slack starts').waitFor();
      await page.getByLabel('Why?').fill('Slack says twice');
      await page.keyboard.press('Enter');
      await page.getByText('Done. Now:').waitFor();
      await page.getByRole('link', { name: 'Overview' }).click();
      await page.getByText('Claims of Slack are paused since').waitFor();
    }),
  );

  it(
    'speaks German to a German browser, and leaves codes as the command line has them',
    inBrowser(async (browsing) => {
      const it = await claimed(database.db);
      const { url } = await desk();
      const page = await browsing.open(`${url}/ops`, { viewport: DESK, locale: 'de-DE' });
      await page.getByRole('link', { name: 'Überblick' }).waitFor();
      await page.getByText('Ältester wartender Zug').waitFor();
      expect(await page.evaluate(() => [document.documentElement.lang, document.title])).to.deep.equal(['de', 'Heph-Betrieb']);
      await looksRight(page, 'ops-overview-de');
      await page.setViewportSize(DESK);
      await page.getByRole('link', { name: 'Züge' }).click();
      await page.getByRole('link', { name: `…${it.asked.turnId.slice(-8)}` }).click();
      await page.getByRole('button', { name: 'Pacht zurücknehmen…' }).click();
      await page.getByText('It costs one attempt').waitFor();
      await page.getByLabel('Warum?').fill('Schleife hängt');
      await looksRight(page, 'ops-turn-de');
    }),
  );
});
