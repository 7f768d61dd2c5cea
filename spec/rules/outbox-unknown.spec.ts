/**
 * Owns: proof that an action whose outcome nobody knows is read back, and never repeated on doubt (rule R14), with the real client of Slack.
 * cases: H3
 * Does not own: known outcomes (outbox.spec.ts), deaths at each step (outbox-kills.spec.ts).
 */
import { expect } from 'chai';
import { sql } from '../../db/pool.ts';
import { expireLeases, type LeasedAction, leaseNext, settleAction } from '../../db/slack/outbox.ts';
import { decideAction } from '../../db/slack/outbox-admin.ts';
import { until } from '../support/actors.ts';
import { useDatabase } from '../support/database.ts';
import type { Fate } from '../support/fake-slack.ts';
import { run } from '../support/ledger.ts';
import { useOutbox } from '../support/outbox-scene.ts';
import { QUICK, sender, TEAM } from '../support/slack-scene.ts';

describe('the outbox, after an unknown outcome', () => {
  // rule: R14
  const database = useDatabase();
  const outbox = useOutbox(database);
  const { fill, open, work, one, fates } = outbox;

  const unknown: readonly (readonly [string, Fate, boolean])[] = [
    ['a time-out before Slack took it', 'hang', false],
    ['a time-out after Slack took it', 'hangAccepted', true],
    ['a connection that is cut before Slack took it', 'drop', false],
    ['a connection that is cut after Slack took it', 'dropAccepted', true],
    ['a 500 without effect', { status: 500 }, false],
    ['a 503 after the effect', { status: 503, accepted: true }, true],
    ['internal_error', { error: 'internal_error' }, false],
  ];
  for (const [what, fate, visible] of unknown) {
    it(`reads the history back before anything else: ${what}`, async () => {
      await fill(1, 1);
      fates(fate);
      const rig = open({ timeoutMs: 150 });
      await work(rig, 'it is uncertain', ([row]) => row?.state === 'UNCERTAIN');
      expect(outbox.slack.callsOf('chat.postMessage')).to.have.length(1);
      await work(rig, 'it is sent', ([row]) => row?.state === 'SENT');
      expect(outbox.slack.messages).to.have.length(1);
      expect(outbox.slack.callsOf('chat.postMessage')).to.have.length(visible ? 1 : 2);
      expect(outbox.slack.callsOf('conversations.replies')[0]?.fields).to.include({
        include_all_metadata: 'true',
        ts: '1700000000.000000',
      });
      expect((await one()).message_ts).to.equal(outbox.slack.messages[0]?.ts);
    });
  }

  for (const code of ['missing_scope', 'thread_not_found', 'token_revoked']) {
    it(`stays uncertain for an operator when the history cannot be read: ${code}`, async () => {
      await fill(1, 2);
      outbox.slack.fate = ({ method }) =>
        method === 'chat.postMessage' ? (outbox.slack.messages.length === 0 ? 'dropAccepted' : 'ok') : { error: code };
      const rig = open();
      await work(rig, 'the first is left to an operator', ([row]) => row?.state === 'UNCERTAIN' && !row.due);
      expect((await one()).reason).to.equal(`history_${code}`);
      // It holds up nothing any more, and is never posted again.
      await work(rig, 'the second is sent', (rows) => rows[1]?.state === 'SENT');
      expect(outbox.slack.messages).to.have.length(2);
      const { id } = await one();
      expect(await decideAction(database.db, id, 'sent')).to.deep.equal({ before: 'UNCERTAIN', moved: true });
      expect((await one()).state).to.equal('SENT');
      expect(await decideAction(database.db, id, 'again')).to.deep.equal({ before: 'SENT', moved: false });
    });
  }

  it('gives the reading up after some tries, and never the action', async () => {
    await fill(1, 1);
    outbox.slack.fate = ({ method }) => (method === 'chat.postMessage' ? 'dropAccepted' : { status: 502 });
    const rig = open();
    await work(rig, 'it is left to an operator', ([row]) => row?.state === 'UNCERTAIN' && !row.due);
    expect(outbox.slack.callsOf('conversations.replies')).to.have.length(QUICK.readsMax);
    expect(outbox.slack.messages).to.have.length(1);
  });

  it('reads one history after the other, as often as Slack allows, and posts go on meanwhile', async () => {
    await fill(2, 1);
    fates('dropAccepted', 'dropAccepted');
    const rig = open({ times: { ...QUICK, readEveryMs: 3_600_000 } });
    await work(rig, 'one is found', (rows) => rows.some(({ state }) => state === 'SENT'));
    await fill(1, 1, 2); // not behind the one that waits to be read
    await work(rig, 'the third is sent', (rows) => rows[2]?.state === 'SENT');
    expect(outbox.slack.callsOf('conversations.replies')).to.have.length(1);
    const waiting = sql.unsafe`select extract(epoch from read_after - clock_timestamp())::int as s from slack_connection`;
    expect((await run(database.db, waiting))[0]?.['s']).to.be.within(3_000, 3_600);
    await run(database.db, sql.unsafe`update slack_connection set read_after = now() returning 1`);
    outbox.slack.fate = ({ method }) => (method === 'conversations.replies' ? { limitedS: 7_200 } : 'ok');
    await work(rig, 'Slack asks to wait', (rows) => rows.some(({ reason }) => reason === 'history_limited'));
    await until('the reading is paused', async () => Number((await run(database.db, waiting))[0]?.['s']) > 7_000);
    await fill(1, 1, 3);
    await work(rig, 'the fourth is sent', (rows) => rows[3]?.state === 'SENT');
  });

  it('is sent again when an operator says so, and each step is on record', async () => {
    await fill(1, 1);
    outbox.slack.fate = ({ method }) =>
      method === 'chat.postMessage' && outbox.slack.calls.length === 1
        ? 'drop'
        : method === 'chat.postMessage'
          ? 'ok'
          : { error: 'missing_scope' };
    const rig = open();
    await work(rig, 'it is left to an operator', ([row]) => row?.state === 'UNCERTAIN' && !row.due);
    await decideAction(database.db, (await one()).id, 'again');
    await work(rig, 'it is sent', ([row]) => row?.state === 'SENT');
    const steps = await run(
      database.db,
      sql.unsafe`select from_state || ' ' || to_state || ' ' || moved_by as step from outbox_step order by at`,
    );
    expect(steps.map(({ step }) => step)).to.deep.equal([
      'PENDING SENDING server',
      'SENDING UNCERTAIN server',
      'UNCERTAIN RETRY operator',
      'RETRY SENDING server',
      'SENDING SENT server',
    ]);
  });

  it('cannot be repeated by a server without proof: the database refuses the step', async () => {
    await fill(1, 1);
    const leased = await leaseNext(database.db, { teamId: TEAM, channelId: 'D0', leaseId: '00000000-0000-4000-8000-000000000001' }, QUICK);
    await settleAction(
      database.db,
      { ...(leased as never as LeasedAction), to: { state: 'UNCERTAIN', reason: 'x', readAgain: true } },
      QUICK,
    );
    const step = async (query: ReturnType<typeof sql.unsafe>) =>
      run(database.db, query).then(
        () => 'taken',
        () => 'refused',
      );
    expect(await step(sql.unsafe`update outbox_action set state = 'SENDING' returning 1`)).to.equal('refused');
    expect(await step(sql.unsafe`update outbox_action set state = 'PENDING', due_at = now() returning 1`)).to.equal('refused');
    const other = '00000000-0000-4000-8000-000000000002';
    expect(await step(sql.unsafe`update outbox_action set state = 'RETRY', lease_id = ${other} returning 1`)).to.equal('refused');
    expect(
      await settleAction(database.db, { id: String(leased?.id), leaseId: other, to: { state: 'RETRY', afterMs: 0, reason: 'x' } }, QUICK),
    ).to.equal(false);
    expect(
      await settleAction(database.db, { ...(leased as never as LeasedAction), to: { state: 'SENT', messageTs: '1.2' } }, QUICK),
    ).to.equal(true);
  });

  it('takes for uncertain what a server was sending when it died, at each step', async () => {
    await fill(1, 1);
    const short = { ...QUICK, leaseMs: 0, settleMs: 0 };
    // Died between the lease and the request: nothing was posted.
    await leaseNext(database.db, { teamId: TEAM, channelId: 'D0', leaseId: '00000000-0000-4000-8000-000000000001' }, short);
    expect(await expireLeases(database.db, 10, short)).to.equal(1);
    const first = open();
    await work(first, 'it is sent', ([row]) => row?.state === 'SENT');
    expect([outbox.slack.messages.length, (await one()).attempts]).to.deep.equal([1, 2]);
    await first.stop();
    // Died between the request and the note of its answer: it was posted.
    await run(database.db, sql.unsafe`delete from outbox_action returning 1`);
    outbox.slack.messages.length = 0;
    await fill(1, 1);
    const leased = await leaseNext(database.db, { teamId: TEAM, channelId: 'D0', leaseId: '00000000-0000-4000-8000-000000000002' }, short);
    await sender(outbox.slack.apiUrl).post(leased as never);
    expect(await expireLeases(database.db, 10, short)).to.equal(1);
    await work(open(), 'it is found', ([row]) => row?.state === 'SENT');
    expect([outbox.slack.messages.length, (await one()).attempts]).to.deep.equal([1, 1]);
  });
});
