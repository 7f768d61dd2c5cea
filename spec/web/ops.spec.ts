/**
 * The operator page in a browser, on real rows: what it shows, what it does, how it looks, and that it says when it cannot read.
 */
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { createActors, failureTexts } from '../../actors/index.ts';
import { describeHost } from '../../db/ops/hosts.ts';
import { sql } from '../../db/pool.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { silentLog } from '../../src/kernel/log.ts';
import { MemberAdmin } from '../../src/models/members.ts';
import { useBrowser } from '../support/browser.ts';
import { useDatabase } from '../support/database.ts';
import { ask, emptyLedger, makeMain, makePerson, run, TIMES } from '../support/ledger.ts';
import { useDesks } from '../support/operators.ts';
import { DESK, looksRight } from '../support/page-looks.ts';
import { claimed } from '../support/scene.ts';

const PAGE = fileURLToPath(new URL('../../dist/web', import.meta.url));

describe('the operator page', function () {
  this.timeout(60_000);
  const database = useDatabase();
  const inBrowser = useBrowser();
  const desks = useDesks(database);

  /** Actors that only do what they are asked: no sweep runs. */
  function quietActors(hostId: never) {
    const nothing = {
      start: async () => undefined,
      end: async () => undefined,
      onExit: () => undefined,
      list: () => [],
      drain: async () => undefined,
    };
    return createActors({
      ...{ db: database.db, clock: systemClock, log: silentLog, times: TIMES, texts: failureTexts('Heph'), sandboxHost: nothing },
      ...{ changes: { publish: () => undefined }, partials: { publish: () => 'ok', clear: () => undefined } },
      ...{ buildContext: async () => null, host: { id: hostId, predecessorOf: null } },
      ...{ maxFollowUps: 10, sandboxesMax: 0, sandboxIdleMs: 60_000, sweepMs: 3_600_000 },
    });
  }

  /** One turn that runs, one behind it, and one that is stuck without a sandbox. */
  async function installation() {
    const { db } = database;
    await emptyLedger(db);
    await run(db, sql.unsafe`truncate operator_action`);
    const it = await claimed(db);
    await describeHost(db, it.hostId, 'heph 0.1.0, node 24');
    const behind = await ask(db, it.person, it.conversationId);
    const person = await makePerson(db);
    const stuck = await ask(db, person, await makeMain(db, person));
    await run(db, sql.unsafe`update mentor_turn set created_at = created_at - interval '5 min' where id = ${stuck.turnId} returning 1`);
    const actors = quietActors(it.hostId as never);
    const desk = await desks({ actors, hostId: it.hostId, pageFolder: PAGE, members: new MemberAdmin(db) });
    return { ...it, desk, actors, running: it.asked.turnId, behind: behind.turnId, stuck: stuck.turnId };
  }

  const cellOf = (page: Page, turnId: string) =>
    page.getByRole('row').filter({ has: page.getByRole('link', { name: `…${turnId.slice(-8)}` }) });
  const loaded = (page: Page) => page.getByText(/^Read at/).waitFor();

  it(
    'shows at a glance whether people wait, and leads to those who do',
    inBrowser(async (browsing) => {
      const { desk, stuck, running, behind } = await installation();
      const page = await browsing.open(`${desk.url}/ops`, { viewport: DESK });
      await page.getByText('5m 0s').or(page.getByText('5m 1s')).first().waitFor();
      expect(await page.getByText('1 of 4', { exact: true }).count()).to.be.at.least(1);
      await page.getByText('heph 0.1.0, node 24').waitFor();
      await looksRight(page, 'ops-overview');
      await page.setViewportSize(DESK);
      await page.getByRole('link', { name: 'Stuck' }).click();
      await cellOf(page, stuck).getByText('no-sandbox, QUEUED_NO_SANDBOX_LONG').waitFor();
      expect(new URL(page.url()).search).to.equal('?tab=turns&state=stuck');
      expect(await cellOf(page, running).count()).to.equal(0);
      await page.getByRole('link', { name: 'open', exact: true }).click();
      await cellOf(page, behind)
        .getByText(`behind …${running.slice(-8)}`)
        .waitFor();
      await looksRight(page, 'ops-turns');
      await page.goBack();
      await cellOf(page, running).waitFor({ state: 'detached' });
      await page.reload();
      await cellOf(page, stuck).waitFor();
    }),
  );

  it(
    'stops a turn after saying what that does and asking why, once however often one clicks',
    inBrowser(async (browsing) => {
      const { desk, running } = await installation();
      const page = await browsing.open(`${desk.url}/ops?tab=turns&id=${running}`, { viewport: DESK });
      await page.getByRole('cell', { name: 'asked' }).waitFor();
      await page.getByRole('button', { name: 'Skip…' }).click();
      await page.getByText('The turn does not wait.').waitFor();
      await page.getByRole('button', { name: 'Stop…' }).click();
      await page.getByText('What is written so far is kept').waitFor();
      await looksRight(page, 'ops-turn');
      await page.setViewportSize(DESK);
      expect(await page.evaluate(() => document.activeElement?.tagName), 'the reason has the focus').to.equal('INPUT');
      await page.keyboard.press('Escape');
      expect(await page.evaluate(() => document.activeElement?.textContent), 'and gives it back').to.equal('Stop…');
      await page.keyboard.press('Enter');
      await page.getByLabel('Why?').fill('it runs away');
      await page.keyboard.press('Enter');
      await page.getByText('Done. Now: status STOPPED').waitFor();
      await page.getByText('stopping', { exact: true }).waitFor();
      const rows = await run(database.db, sql.unsafe`select action, reason, state from operator_action`);
      expect(rows).to.deep.equal([{ action: 'stop', reason: 'it runs away', state: 'DONE' }]);
      await page.getByRole('link', { name: 'Actions' }).click();
      await page.getByText('it runs away').waitFor();
      await looksRight(page, 'ops-actions');
    }),
  );

  it(
    'pauses claims, and says on the overview that they are',
    inBrowser(async (browsing) => {
      const { desk } = await installation();
      const page = await browsing.open(`${desk.url}/ops?tab=actions`, { viewport: DESK });
      await page.getByRole('button', { name: 'Pause claims…' }).click();
      await page.getByText('2 wait, 1 that run go on').waitFor();
      await page.getByLabel('Why?').fill('the provider is down');
      await page.getByRole('button', { name: 'Pause claims', exact: true }).click();
      await page.getByText('Done. Now:').waitFor();
      await page.getByRole('link', { name: 'Overview' }).click();
      await page.getByText('are paused since').waitFor();
      await looksRight(page, 'ops-paused');
    }),
  );

  it(
    'shows actors and usage, and reads again by itself, but not while it is held',
    inBrowser(async (browsing) => {
      const { desk, running } = await installation();
      const page = await browsing.open(`${desk.url}/ops?tab=usage`, { viewport: DESK });
      await page.getByRole('cell', { name: '–' }).first().waitFor();
      await page.getByRole('link', { name: 'Actors' }).click();
      await loaded(page);
      await page.getByRole('link', { name: 'Turns' }).click();
      await cellOf(page, running).waitFor();
      const reads = () => browsing.requests.filter((url) => url.includes('/admin/api/turns')).length;
      const before = reads();
      await page.waitForRequest(/admin\/api\/turns/, { timeout: 10_000 });
      expect(reads()).to.be.above(before);
      await page.getByRole('button', { name: 'Hold' }).click();
      await page.getByText(/^Read at [\d:]+$/).waitFor();
    }),
  );

  it(
    'keeps what it has read, and says so, when its server does not answer any more',
    inBrowser(async (browsing) => {
      const { desk, running } = await installation();
      browsing.expects(/ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE/);
      const page = await browsing.open(`${desk.url}/ops?tab=turns`, { viewport: DESK });
      await cellOf(page, running).waitFor();
      await desk.close();
      await page.getByText('This server does not answer.').waitFor();
      expect(await cellOf(page, running).count()).to.equal(1);
      await looksRight(page, 'ops-no-server');
    }),
  );

  it('is on this listener only, for this machine only, and under the policy of the chat', async () => {
    const { desk } = await installation();
    const page = await fetch(`${desk.url}/ops`);
    expect(page.status).to.equal(200);
    expect(page.headers.get('content-security-policy')).to.include("script-src 'self'").and.include("style-src 'self'");
    expect(await page.text()).to.not.match(/<style|<script(?![^>]*src=)/);
    const foreign = await fetch(`${desk.url}/ops`, { headers: { 'sec-fetch-site': 'cross-site' } });
    expect(foreign.status).to.equal(403);
    for (const path of ['/', '/index.html', '/ops/index.html']) expect((await fetch(desk.url + path)).status, path).to.equal(404);
  });
});
