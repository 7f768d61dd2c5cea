/**
 * Owns: proof that an action becomes visible at most once, whatever Slack and this server do (rule R14), with the real client of Slack.
 * Does not own: the words of a message (slack-text.spec.ts), the ends that enqueue (slack-turns.spec.ts).
 */
import { expect } from 'chai';
import { sql } from '../../db/pool.ts';
import { expireLeases, type LeasedAction, leaseNext, settleAction } from '../../db/slack/outbox.ts';
import { decideAction } from '../../db/slack/outbox-admin.ts';
import { until } from '../support/actors.ts';
import { useDatabase } from '../support/database.ts';
import { FakeSlack, type Fate } from '../support/fake-slack.ts';
import { emptyLedger, makePerson, type Person, run } from '../support/ledger.ts';
import { type ActionRow, actions, connect, fillOutbox, type OutboxRig, openOutbox, QUICK, sender, TEAM } from '../support/slack-scene.ts';

describe('the outbox', () => {
  // rule: R14
  const database = useDatabase();
  let slack: FakeSlack;
  let person: Person;
  let connectionId: string;
  let rigs: OutboxRig[];

  before(async () => {
    slack = await FakeSlack.start();
  });
  after(() => slack.stop());
  beforeEach(async () => {
    await emptyLedger(database.db);
    slack.messages.length = 0;
    slack.calls.length = 0;
    slack.fate = () => 'ok';
    person = await makePerson(database.db);
    connectionId = await connect(database.db, person);
    rigs = [];
  });
  afterEach(() => Promise.all(rigs.map((rig) => rig.stop())));

  const open = (timeoutMs?: number) => {
    const rig = openOutbox(database.db, { sender: sender(slack.apiUrl, timeoutMs) });
    rigs.push(rig);
    return rig;
  };
  /** Looks until the condition holds. */
  const work = (rig: OutboxRig, what: string, done: (rows: readonly ActionRow[]) => boolean) =>
    until(what, async () => {
      rig.outbox.look();
      return done(await actions(database.db));
    });
  const one = async () => (await actions(database.db))[0] as ActionRow;
  const fates = (...list: readonly Fate[]) => {
    const left = [...list];
    slack.fate = ({ method }) => (method === 'chat.postMessage' ? (left.shift() ?? 'ok') : 'ok');
  };

  it('posts once, in its thread, without unfurling, and says which action it was', async () => {
    await fillOutbox(database.db, person, [1, 1]);
    await work(open(), 'it is sent', (rows) => rows.every(({ state }) => state === 'SENT'));
    const [message] = slack.messages;
    expect(message).to.include({ channel: 'D0', threadTs: '1700000000.000000' });
    expect(message?.fields).to.include({ unfurl_links: 'false', unfurl_media: 'false', parse: 'none', link_names: 'false' });
    const row = await one();
    expect(message?.metadata).to.deep.equal({ event_type: 'heph_outbox', event_payload: { action: row.id } });
    expect([row.message_ts, row.attempts]).to.deep.equal([message?.ts, 1]);
  });

  describe('after an unknown outcome', () => {
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
        await fillOutbox(database.db, person, [1, 1]);
        fates(fate);
        const rig = open(150);
        await work(rig, 'it is uncertain', ([row]) => row?.state === 'UNCERTAIN');
        expect(slack.callsOf('chat.postMessage')).to.have.length(1);
        await work(rig, 'it is sent', ([row]) => row?.state === 'SENT');
        expect(slack.messages).to.have.length(1);
        expect(slack.callsOf('chat.postMessage')).to.have.length(visible ? 1 : 2);
        expect(slack.callsOf('conversations.replies')[0]?.fields).to.include({ include_all_metadata: 'true', ts: '1700000000.000000' });
        expect((await one()).message_ts).to.equal(slack.messages[0]?.ts);
      });
    }

    for (const code of ['missing_scope', 'thread_not_found', 'token_revoked']) {
      it(`stays uncertain for an operator when the history cannot be read: ${code}`, async () => {
        await fillOutbox(database.db, person, [1, 2]);
        slack.fate = ({ method }) =>
          method === 'chat.postMessage' ? (slack.messages.length === 0 ? 'dropAccepted' : 'ok') : { error: code };
        const rig = open();
        await work(rig, 'the first is left to an operator', ([row]) => row?.state === 'UNCERTAIN' && !row.due);
        expect((await one()).reason).to.equal(`history_${code}`);
        // It holds up nothing any more, and is never posted again.
        await work(rig, 'the second is sent', (rows) => rows[1]?.state === 'SENT');
        expect(slack.messages).to.have.length(2);
        const { id } = await one();
        expect(await decideAction(database.db, id, 'sent')).to.deep.equal({ before: 'UNCERTAIN', moved: true });
        expect((await one()).state).to.equal('SENT');
        expect(await decideAction(database.db, id, 'again')).to.deep.equal({ before: 'SENT', moved: false });
      });
    }

    it('gives the reading up after some tries, and never the action', async () => {
      await fillOutbox(database.db, person, [1, 1]);
      slack.fate = ({ method }) => (method === 'chat.postMessage' ? 'dropAccepted' : { status: 502 });
      const rig = open();
      await work(rig, 'it is left to an operator', ([row]) => row?.state === 'UNCERTAIN' && !row.due);
      expect(slack.callsOf('conversations.replies')).to.have.length(QUICK.readsMax);
      expect(slack.messages).to.have.length(1);
    });

    it('is sent again when an operator says so, and each step is on record', async () => {
      await fillOutbox(database.db, person, [1, 1]);
      slack.fate = ({ method }) =>
        method === 'chat.postMessage' && slack.calls.length === 1
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
      await fillOutbox(database.db, person, [1, 1]);
      const leased = await leaseNext(
        database.db,
        { teamId: TEAM, channelId: 'D0', leaseId: '00000000-0000-4000-8000-000000000001' },
        QUICK,
      );
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
  });

  it('tries again what is known not to be posted: no connection, a documented code', async () => {
    await fillOutbox(database.db, person, [1, 1]);
    const closed = await FakeSlack.start();
    const nowhere = closed.apiUrl;
    await closed.stop();
    const lost = openOutbox(database.db, { sender: sender(nowhere) });
    rigs.push(lost);
    await work(lost, 'it waits', ([row]) => row?.state === 'RETRY' && row.reason === 'not_connected');
    fates({ error: 'service_unavailable' });
    const rig = open();
    await work(rig, 'it is sent', ([row]) => row?.state === 'SENT');
    expect([slack.messages.length, slack.callsOf('conversations.replies').length, (await one()).attempts > 2]).to.deep.equal([1, 0, true]);
  });

  it('waits as long as Slack asks, in every channel of the team, also when Slack names no time', async () => {
    await fillOutbox(database.db, person, [2, 1]);
    slack.fate = () => ({ limitedS: 3_600 });
    const rig = open();
    await work(rig, 'one was refused', (rows) => rows.some(({ state }) => state === 'RETRY'));
    await until('nobody is at it', async () => (await actions(database.db)).every(({ state }) => state !== 'SENDING'));
    const calls = slack.calls.length;
    expect(await leaseNext(database.db, { teamId: TEAM, channelId: 'D0', leaseId: connectionId }, QUICK)).to.equal(null);
    expect(await leaseNext(database.db, { teamId: TEAM, channelId: 'D1', leaseId: connectionId }, QUICK)).to.equal(null);
    const [waits] = await run(
      database.db,
      sql.unsafe`select extract(epoch from post_after - clock_timestamp())::int as s from slack_connection`,
    );
    expect(waits?.['s']).to.be.within(3_500, 3_600);
    expect(calls).to.be.within(1, 2);
    slack.fate = () => ({ limitedS: null });
    await run(database.db, sql.unsafe`update slack_connection set post_after = now() returning 1`);
    await run(database.db, sql.unsafe`update outbox_action set due_at = now() returning 1`);
    await work(rig, 'it was refused again', () => slack.calls.length > calls);
    await until('it waits', async () => (await actions(database.db)).every(({ state }) => state !== 'SENDING'));
    expect((await actions(database.db)).every(({ state, reason }) => state !== 'UNCERTAIN' && reason !== 'lease_expired')).to.equal(true);
  });

  it('gives up what Slack refuses for good, and goes on with the next', async () => {
    await fillOutbox(database.db, person, [1, 2]);
    fates({ error: 'msg_too_long' });
    await work(open(), 'the second is sent', (rows) => rows[1]?.state === 'SENT');
    expect(await one()).to.include({ state: 'DEAD', reason: 'msg_too_long', attempts: 1 });
  });

  it('parks what it may not post any more, and sends it when an operator says so', async () => {
    await fillOutbox(database.db, person, [1, 1]);
    fates({ error: 'token_revoked' });
    const rig = open();
    await work(rig, 'it is parked', ([row]) => row?.state === 'PARKED');
    const id = await one().then((row) => row.id);
    expect(await decideAction(database.db, id, 'again')).to.deep.equal({ before: 'PARKED', moved: true });
    await work(rig, 'it is sent', ([row]) => row?.state === 'SENT');
    expect(slack.messages).to.have.length(1);
  });

  it('keeps the order of a channel, and its pace, on two servers', async () => {
    const filled = await fillOutbox(database.db, person, [3, 5]);
    const times = { ...QUICK, paceMs: 40 };
    const both = [1, 2].map(() => openOutbox(database.db, { sender: sender(slack.apiUrl), times }));
    rigs.push(...both);
    await until('all are sent', async () => {
      for (const { outbox } of both) outbox.look();
      return (await actions(database.db)).every(({ state }) => state === 'SENT');
    });
    for (const [channel, ids] of filled) {
      const shown = slack.messages
        .filter((message) => message.channel === channel)
        .map(({ metadata }) => metadata?.event_payload['action']);
      expect(shown).to.deep.equal(ids);
    }
    const [gap] = await run(
      database.db,
      sql.unsafe`select min(extract(epoch from gap) * 1000)::float8 as ms from
        (select started_at - lag(started_at) over (partition by channel_id order by seq) as gap from outbox_action) g`,
    );
    expect(gap?.['ms']).to.be.at.least(40);
  });

  it('takes for uncertain what a server was sending when it died, at each step', async () => {
    await fillOutbox(database.db, person, [1, 1]);
    const short = { ...QUICK, leaseMs: 0, settleMs: 0 };
    // Died between the lease and the request: nothing was posted.
    await leaseNext(database.db, { teamId: TEAM, channelId: 'D0', leaseId: '00000000-0000-4000-8000-000000000001' }, short);
    expect(await expireLeases(database.db, 10, short)).to.equal(1);
    const first = open();
    await work(first, 'it is sent', ([row]) => row?.state === 'SENT');
    expect([slack.messages.length, (await one()).attempts]).to.deep.equal([1, 2]);
    await first.stop();
    // Died between the request and the note of its answer: it was posted.
    await run(database.db, sql.unsafe`delete from outbox_action returning 1`);
    slack.messages.length = 0;
    await fillOutbox(database.db, person, [1, 1]);
    const leased = await leaseNext(database.db, { teamId: TEAM, channelId: 'D0', leaseId: '00000000-0000-4000-8000-000000000002' }, short);
    await sender(slack.apiUrl).post(leased as never);
    expect(await expireLeases(database.db, 10, short)).to.equal(1);
    await work(open(), 'it is found', ([row]) => row?.state === 'SENT');
    expect([slack.messages.length, (await one()).attempts]).to.deep.equal([1, 1]);
  });

  it('loses none and doubles none of many posts, whatever Slack answers and whoever dies', async function () {
    const total = Number(process.env['HEPH_TEST_OUTBOX'] ?? 300); // 5000: the full run
    this.timeout(total * 300);
    const channels = 20;
    const filled = await fillOutbox(database.db, person, [channels, total / channels]);
    const odd: readonly Fate[] = [
      'dropAccepted',
      'drop',
      { status: 500, accepted: true },
      { status: 502 },
      { error: 'service_unavailable' },
      { error: 'fatal_error' },
      { limitedS: 0 },
    ];
    let n = 0;
    slack.fate = ({ method }) => {
      if (method !== 'chat.postMessage') return n++ % 11 === 0 ? { status: 503 } : 'ok';
      return n++ % 3 === 0 ? (odd[n % odd.length] as Fate) : 'ok';
    };
    const times = { ...QUICK, leaseMs: 2_000, readsMax: 50 };
    const start = () => openOutbox(database.db, { sender: deadly(sender(slack.apiUrl)), times });
    // A server that dies stops in the middle: before its request, after it, or before it notes the answer.
    let died = 0;
    const dies = (every: number) => ++died % every === 0;
    const forever = () => new Promise<never>(() => undefined);
    const deadly = (real: ReturnType<typeof sender>) => ({
      post: async (...args: Parameters<typeof real.post>) => {
        if (dies(17)) return forever();
        const verdict = await real.post(...args);
        return dies(19) ? forever() : verdict;
      },
      find: async (...args: Parameters<typeof real.find>) => (dies(23) ? forever() : real.find(...args)),
    });
    let rig = start();
    const dead: OutboxRig[] = [];
    let looks = 0;
    await until(
      'all are sent',
      async () => {
        rig.outbox.look();
        if (++looks % 40 === 0) {
          dead.push(rig); // its actors hang where they were; another server takes over
          rig = start();
        }
        const [open_] = await run(database.db, sql.unsafe`select count(*)::int as n from outbox_action where state <> 'SENT'`);
        return open_?.['n'] === 0;
      },
      total * 250,
    );
    await rig.stop();
    const seen = slack.seen();
    const ids = [...filled.values()].flat();
    expect({ lost: ids.filter((id) => !seen.has(id)).length, doubled: ids.filter((id) => (seen.get(id) ?? 0) > 1).length }).to.deep.equal({
      ...{ lost: 0, doubled: 0 },
    });
    const [unknowns] = await run(database.db, sql.unsafe`select count(*)::int as n from outbox_step where to_state = 'UNCERTAIN'`);
    expect(unknowns?.['n']).to.be.at.least(total / 10);
    for (const [channel, order] of filled) {
      const shown = slack.messages
        .filter((message) => message.channel === channel)
        .map(({ metadata }) => metadata?.event_payload['action']);
      expect(shown).to.deep.equal(order);
    }
  });
});
