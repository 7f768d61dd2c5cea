/**
 * Owns: proof of how an action goes its way when what became of it is known (rule R14), with the real client of Slack: once, in order, at a pace.
 * Does not own: unknown outcomes (outbox-unknown.spec.ts), deaths (outbox-kills.spec.ts), the words of a message (slack-text.spec.ts), the ends
 * that enqueue (slack-turns.spec.ts).
 */
import { expect } from 'chai';
import { sql } from '../../db/pool.ts';
import { leaseNext } from '../../db/slack/outbox.ts';
import { decideAction } from '../../db/slack/outbox-admin.ts';
import { until } from '../support/actors.ts';
import { useDatabase } from '../support/database.ts';
import { FakeSlack } from '../support/fake-slack.ts';
import { run } from '../support/ledger.ts';
import { shownIn, useOutbox } from '../support/outbox-scene.ts';
import { actions, QUICK, TEAM } from '../support/slack-scene.ts';

describe('the outbox', () => {
  // rule: R14
  const database = useDatabase();
  const outbox = useOutbox(database);
  const { fill, open, work, one, fates } = outbox;

  it('posts once, in its thread, without unfurling, and says which action it was', async () => {
    await fill(1, 1);
    await work(open(), 'it is sent', (rows) => rows.every(({ state }) => state === 'SENT'));
    const [message] = outbox.slack.messages;
    expect(message).to.include({ channel: 'D0', threadTs: '1700000000.000000' });
    expect(message?.fields).to.include({ unfurl_links: 'false', unfurl_media: 'false', parse: 'none', link_names: 'false' });
    const row = await one();
    expect(message?.metadata).to.deep.equal({ event_type: 'heph_outbox', event_payload: { action: row.id } });
    expect([row.message_ts, row.attempts]).to.deep.equal([message?.ts, 1]);
  });

  it('tries again what is known not to be posted: no connection, a documented code', async () => {
    await fill(1, 1);
    const closed = await FakeSlack.start();
    const nowhere = closed.apiUrl;
    await closed.stop();
    await work(open({ apiUrl: nowhere }), 'it waits', ([row]) => row?.state === 'RETRY' && row.reason === 'not_connected');
    fates({ error: 'service_unavailable' });
    const rig = open();
    await work(rig, 'it is sent', ([row]) => row?.state === 'SENT');
    expect([outbox.slack.messages.length, outbox.slack.callsOf('conversations.replies').length, (await one()).attempts > 2]).to.deep.equal([
      1,
      0,
      true,
    ]);
  });

  it('waits as long as Slack asks, in every channel of the team, also when Slack names no time', async () => {
    await fill(2, 1);
    outbox.slack.fate = () => ({ limitedS: 3_600 });
    const rig = open();
    await work(rig, 'one was refused', (rows) => rows.some(({ state }) => state === 'RETRY'));
    await until('nobody is at it', async () => (await actions(database.db)).every(({ state }) => state !== 'SENDING'));
    const calls = outbox.slack.calls.length;
    expect(await leaseNext(database.db, { teamId: TEAM, channelId: 'D0', leaseId: outbox.connectionId }, QUICK)).to.equal(null);
    expect(await leaseNext(database.db, { teamId: TEAM, channelId: 'D1', leaseId: outbox.connectionId }, QUICK)).to.equal(null);
    const [waits] = await run(
      database.db,
      sql.unsafe`select extract(epoch from post_after - clock_timestamp())::int as s from slack_connection`,
    );
    expect(waits?.['s']).to.be.within(3_500, 3_600);
    expect(calls).to.be.within(1, 2);
    outbox.slack.fate = () => ({ limitedS: null });
    await run(database.db, sql.unsafe`update slack_connection set post_after = now() returning 1`);
    await run(database.db, sql.unsafe`update outbox_action set due_at = now() returning 1`);
    await work(rig, 'it was refused again', () => outbox.slack.calls.length > calls);
    await until('it waits', async () => (await actions(database.db)).every(({ state }) => state !== 'SENDING'));
    expect((await actions(database.db)).every(({ state, reason }) => state !== 'UNCERTAIN' && reason !== 'lease_expired')).to.equal(true);
  });

  it('gives up what Slack refuses for good, and goes on with the next', async () => {
    await fill(1, 2);
    fates({ error: 'msg_too_long' });
    await work(open(), 'the second is sent', (rows) => rows[1]?.state === 'SENT');
    expect(await one()).to.include({ state: 'DEAD', reason: 'msg_too_long', attempts: 1 });
  });

  it('parks what it may not post any more, and sends it when an operator says so', async () => {
    await fill(1, 1);
    fates({ error: 'token_revoked' });
    const rig = open();
    await work(rig, 'it is parked', ([row]) => row?.state === 'PARKED');
    const id = await one().then((row) => row.id);
    expect(await decideAction(database.db, id, 'again')).to.deep.equal({ before: 'PARKED', moved: true });
    await work(rig, 'it is sent', ([row]) => row?.state === 'SENT');
    expect(outbox.slack.messages).to.have.length(1);
  });

  it('keeps the order of a channel, and its pace, on two servers', async () => {
    const filled = await fill(3, 5);
    const times = { ...QUICK, paceMs: 40 };
    const both = [open({ times }), open({ times })];
    await until('all are sent', async () => {
      for (const server of both) server.outbox.look();
      return (await actions(database.db)).every(({ state }) => state === 'SENT');
    });
    for (const [channel, ids] of filled) {
      const shown = shownIn(outbox.slack, channel);
      expect(shown).to.deep.equal(ids);
    }
    const [gap] = await run(
      database.db,
      sql.unsafe`select min(extract(epoch from gap) * 1000)::float8 as ms from
        (select started_at - lag(started_at) over (partition by channel_id order by seq) as gap from outbox_action) g`,
    );
    expect(gap?.['ms']).to.be.at.least(40);
  });
});
