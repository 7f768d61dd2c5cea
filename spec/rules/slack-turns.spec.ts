/**
 * Owns: proof that each end of a Slack turn enqueues one post, whoever ends it, and that the post says what the turn says at that time.
 * Does not own: what becomes of the post (outbox.spec.ts).
 */
import { expect } from 'chai';
import { loadConversation } from '../../db/ledger/conversation.ts';
import { endTurn } from '../../db/ledger/end-turn.ts';
import { eraseEntries } from '../../db/ledger/erase.ts';
import { handOnRun } from '../../db/ledger/hand-on.ts';
import { takeBackLeases } from '../../db/ledger/reap.ts';
import { refuseTurns } from '../../db/ledger/refuse.ts';
import { stopTurn } from '../../db/ledger/stop.ts';
import { sql } from '../../db/pool.ts';
import { leaseNext } from '../../db/slack/outbox.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import { compose } from '../../src/slack/compose.ts';
import { useDatabase } from '../support/database.ts';
import { ask, claimOne, emptyLedger, run, TIMES } from '../support/ledger.ts';
import { answer, scene } from '../support/scene.ts';
import { actions, connect, origin, QUICK, TEAM, VOICE } from '../support/slack-scene.ts';

const FAILED = { failed: { code: 'ERROR', text: 'It failed.' }, deadline: { code: 'DEADLINE', text: 'It took too long.' } };

describe('the end of a turn that was asked in Slack', () => {
  // rule: R14
  const database = useDatabase();
  let it_: Awaited<ReturnType<typeof scene>>;

  beforeEach(async () => {
    await emptyLedger(database.db);
    it_ = await scene(database.db);
    await connect(database.db, it_.person);
  });

  const asked = () => ask(database.db, it_.person, it_.conversationId, { slack: origin() });
  const running = async () => {
    const question = await asked();
    const grant = await claimOne(database.db, it_.conversationId, it_.sandbox.id);
    return { ...question, key: { runId: grant?.runId ?? uuidv7<'run'>(), epoch: grant?.epoch ?? 0, sandboxId: it_.sandbox.id } };
  };
  const at = async () => ({
    conversationId: it_.conversationId,
    version: (await loadConversation(database.db, it_.conversationId))?.version ?? -1,
  });
  const stop = async (turnId: Awaited<ReturnType<typeof asked>>['turnId']) =>
    stopTurn(database.db, { ...(await at()), turnId, graceMs: 30_000 });
  const end = async (key: Awaited<ReturnType<typeof running>>['key'], status: 'DONE' | 'FAILED', texts: readonly string[]) =>
    endTurn(database.db, {
      ...{ ...key, ...(await at()), status, entries: texts.map((text) => answer(text)) },
      error: status === 'FAILED' ? { code: 'ERROR', text: 'It failed.', detail: null } : null,
    });
  const said = async () => {
    const action = await leaseNext(database.db, { teamId: TEAM, channelId: 'D0ADA', leaseId: uuidv7<'lease'>() }, QUICK);
    return action && compose(action, VOICE);
  };
  const count = async () => (await actions(database.db)).length;

  it('posts the whole answer of a turn that is done, once', async () => {
    const { key, turnId } = await running();
    expect(await count()).to.equal(0);
    await end(key, 'DONE', ['First.', 'Second.']);
    expect(await actions(database.db)).to.have.length(1);
    expect((await actions(database.db))[0]).to.include({ turn_id: turnId, state: 'PENDING' });
    expect(await end(key, 'DONE', ['Again.'])).to.equal(null);
    expect(await count()).to.equal(1);
    expect(await said()).to.equal('First.\n\nSecond.');
  });

  it('posts why a turn failed', async () => {
    const { key } = await running();
    await end(key, 'FAILED', []);
    expect(await said()).to.equal('It failed.');
  });

  it('posts for a turn that was taken back for the last time, and nothing while it is tried again', async () => {
    const { key } = await running();
    const lapse = () =>
      run(database.db, sql.unsafe`update agent_run set lease_until = now() - interval '1 s' where state = 'LEASED' returning 1`);
    await lapse();
    await takeBackLeases(database.db, 10, FAILED);
    expect(await count()).to.equal(0);
    const grant = await claimOne(database.db, it_.conversationId, it_.sandbox.id);
    expect(grant?.runId).to.equal(key.runId);
    await lapse();
    await takeBackLeases(database.db, 10, FAILED);
    expect(await said()).to.equal('It failed.');
    expect(await count()).to.equal(1);
  });

  it('posts for a turn that was refused, and for a queued one that was stopped', async () => {
    await run(database.db, sql.unsafe`update workspace_member set ai_allowed = false returning 1`);
    await asked();
    await refuseTurns(database.db, [it_.conversationId], TIMES.refusals);
    expect(await said()).to.match(/^AI is switched off for you/);
    await run(database.db, sql.unsafe`update outbox_action set state = 'DEAD', ended_at = now(), lease_until = null returning 1`);
    await run(database.db, sql.unsafe`update workspace_member set ai_allowed = true returning 1`);
    const { turnId } = await asked();
    await stop(turnId);
    expect(await said()).to.equal('_Stopped before there was an answer._');
  });

  it('waits for the words of a turn that is stopped while it runs, and marks them', async () => {
    const { key, turnId } = await running();
    await stop(turnId);
    expect(await count()).to.equal(0);
    await end(key, 'DONE', ['So far']);
    expect(await said()).to.equal('So far\n\n_Stopped here._');
    expect(await count()).to.equal(1);
  });

  it('posts for a stopped turn whose sandbox hands its run on', async () => {
    const { key, turnId } = await running();
    await stop(turnId);
    await handOnRun(database.db, { ...key, ...(await at()) });
    expect(await said()).to.equal('_Stopped before there was an answer._');
  });

  it('says nothing of what was erased meanwhile: the question, or the answer', async () => {
    const first = await running();
    await database.db.transaction((tx) => eraseEntries(tx, { ids: [first.entryId], reach: it_.person, graceMs: 30_000 }));
    await end(first.key, 'DONE', ['Of what is gone.']);
    expect([await count(), await said()]).to.deep.equal([1, null]);
    await run(database.db, sql.unsafe`update outbox_action set state = 'DEAD', ended_at = now(), lease_until = null returning 1`);
    const second = await running();
    const done = await end(second.key, 'DONE', ['Erase me.']);
    await database.db.transaction((tx) => eraseEntries(tx, { ids: done?.entryIds ?? [], reach: it_.person, graceMs: 30_000 }));
    expect(await said()).to.equal(null);
  });

  it('says nothing to somebody who is no member any more, or is being erased', async () => {
    // rule: R16
    for (const [gone, back] of [
      [
        sql.unsafe`update workspace_member set active = false returning 1`,
        sql.unsafe`update workspace_member set active = true returning 1`,
      ],
      [
        sql.unsafe`update account set erasure_requested_at = now() returning 1`,
        sql.unsafe`update account set erasure_requested_at = null returning 1`,
      ],
    ] as const) {
      const { key } = await running();
      await end(key, 'DONE', ['For a member.']);
      await run(database.db, gone);
      expect(await said()).to.equal(null);
      await run(
        database.db,
        sql.unsafe`update outbox_action set state = 'DEAD', ended_at = now(), lease_until = null where state = 'SENDING' returning 1`,
      );
      await run(database.db, back);
    }
  });

  it('posts nothing for a question of the app', async () => {
    await ask(database.db, it_.person, it_.conversationId);
    const grant = await claimOne(database.db, it_.conversationId, it_.sandbox.id);
    await end({ runId: grant?.runId ?? uuidv7<'run'>(), epoch: grant?.epoch ?? 0, sandboxId: it_.sandbox.id }, 'DONE', ['Here.']);
    expect(await count()).to.equal(0);
  });

  it('is kept for a team that is not connected any more', async () => {
    const { key } = await running();
    await end(key, 'DONE', ['Late.']);
    const refused = await ask(database.db, it_.person, it_.conversationId, { slack: origin({ teamId: 'T0OTHER' }) });
    expect(refused.result).to.deep.equal({ kind: 'disconnected' });
    expect(await count()).to.equal(1);
  });
});
