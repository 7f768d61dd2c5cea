/**
 * rule: R17
 * More that an operator does: taking a lease back, pausing one surface, settling the outbox. What all deeds have in common stands in
 * operator-actions.spec.ts.
 */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { reconcileSlots } from '../../db/ledger/slots.ts';
import { beginAction } from '../../db/ops/actions.ts';
import { sql } from '../../db/pool.ts';
import { leaseNext, settleAction } from '../../db/slack/outbox.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import { becomes, openPlayed, turnOf, useServers } from '../support/actors.ts';
import { useDatabase } from '../support/database.ts';
import { ask, claimOne, emptyLedger, makeHost, makeMain, makePerson, makeSandbox, run } from '../support/ledger.ts';
import { type OperatorDesk, useDesks } from '../support/operators.ts';
import { actions, connect, fillOutbox, origin, QUICK, TEAM } from '../support/slack-scene.ts';
import { done } from '../support/stub-sandboxes.ts';

const order = (reason = 'a test') => ({ reason, idempotencyKey: uuidv7() });

describe('an operator', () => {
  const database = useDatabase();
  const start = useServers(database);
  const open = useDesks(database);
  beforeEach(async () => {
    await emptyLedger(database.db);
    await run(database.db, sql.unsafe`truncate operator_action`);
  });
  const freeSlots = async () => (await run(database.db, sql.unsafe`select 1 from turn_slot where run_id is null`)).length;

  describe('takes a lease back', () => {
    /** A running turn in the hands of a sandbox that the test plays. */
    async function running() {
      const it = await openPlayed(start, database.db);
      const pull = await it.parked();
      const turnId = await it.server.ask(it.person, 'Why?');
      const attempt = it.attempt(await pull.answer);
      return { ...it, turnId, attempt, desk: await open({ actors: it.server.actors }) };
    }
    const preview = async (desk: OperatorDesk, id: string) => (await desk.post(`turns/${id}/release?preview=true`)).body;

    it('of a first attempt, which costs that attempt and nothing else', async () => {
      const { desk, turnId, db, server, attempt } = await running();
      expect((await preview(desk, turnId)).effect)
        .to.include('costs one attempt')
        .and.include('second and last');
      const { body } = await desk.post(`turns/${turnId}/release`, order('its loop hangs'));
      expect(body.before).to.include({ status: 'RUNNING', attempt: 1, epoch: 1 });
      expect((await server.runtime.endTurn(attempt, done('too late'))).kind).to.equal('lost');
      expect(await becomes(db, turnId, 'DONE')).to.deep.include({ attempt: 2, epoch: 2 });
    });

    it('of a last attempt, after saying that the turn fails with it', async () => {
      const { desk, turnId, db } = await running();
      await run(db, sql.unsafe`update mentor_turn set attempt = 2 where id = ${turnId} returning 1`);
      expect(await preview(desk, turnId)).to.deep.include({ allowed: true });
      expect((await preview(desk, turnId)).effect)
        .to.include('2 of 2')
        .and.include('the turn FAILS');
      const { body } = await desk.post(`turns/${turnId}/release`, order());
      expect(body.after).to.include({ status: 'FAILED', run: 'ENDED' });
    });

    it('of a stopped turn, whose slot is free at once and which stays stopped', async () => {
      const { desk, turnId, db } = await running();
      const before = await freeSlots();
      await desk.post(`turns/${turnId}/stop`, order());
      expect((await preview(desk, turnId)).effect).to.include('stays STOPPED');
      expect((await desk.post(`turns/${turnId}/release`, order())).body.after).to.include({ status: 'STOPPED', run: 'ENDED' });
      expect([await freeSlots(), (await turnOf(db, turnId)).status]).to.deep.equal([before + 1, 'STOPPED']);
      expect((await desk.post(`turns/${turnId}/release`, order())).body.code, 'twice').to.equal('ACTION_REFUSED');
    });

    it('only of the attempt that they saw', async () => {
      const { desk, turnId, db } = await running();
      const cut = { ...order(), action: 'release', target: turnId, operator: 'local' } as const;
      await beginAction(db, { ...cut, id: uuidv7(), before: { status: 'RUNNING', attempt: 1, epoch: 1, run: 'LEASED', error: null } });
      await run(db, sql.unsafe`update agent_run set epoch = 2 where turn_id = ${turnId} returning 1`);
      const { body } = await desk.post(`turns/${turnId}/release`, { reason: 'again', idempotencyKey: cut.idempotencyKey });
      expect([body.state, body.repeated]).to.deep.equal(['DONE', true]);
      expect(await turnOf(db, turnId)).to.include({ status: 'RUNNING', epoch: 2 });
    });

    it('of nothing that waits', async () => {
      const desk = await open();
      const person = await makePerson(database.db);
      const { turnId } = await ask(database.db, person, await makeMain(database.db, person));
      expect((await desk.post(`turns/${turnId}/release`, order())).body.detail).to.include('no lease to take back');
    });
  });

  describe('pauses claims of one surface', () => {
    /** A person of a workspace with a question in the web chat or in Slack, and a sandbox that waits. */
    async function asking(surface: 'app' | 'slack') {
      const { db } = database;
      const person = await makePerson(db);
      if (surface === 'slack') await connect(db, person);
      const conversationId = await makeMain(db, person);
      const sandbox = await makeSandbox(db, person, conversationId, await makeHost(db));
      const slack = surface === 'slack' ? origin() : undefined;
      return { person, conversationId, sandbox, options: slack ? { slack } : {} };
    }

    it('and the other goes on: from the queue, with the submit, and in what an operator reads', async () => {
      const { db } = database;
      await reconcileSlots(db, 4);
      const desk = await open();
      const { body } = await desk.post('claims/pause', { ...order('Slack says twice'), surface: 'slack' });
      expect([body.target, body.after.paused]).to.deep.equal(['surface:slack', true]);
      expect((await desk.get('overview')).body.pauses[0]).to.include({ workspace: null, surface: 'slack', reason: 'Slack says twice' });
      const [there, here] = [await asking('slack'), await asking('app')];
      const folded = async (it: typeof here) => {
        const { result, turnId } = await ask(db, it.person, it.conversationId, { ...it.options, sandboxId: it.sandbox.id });
        return { claimed: result.kind === 'written' && result.claimed !== null, turnId };
      };
      const inSlack = await folded(there);
      expect(inSlack.claimed, 'with the submit').to.equal(false);
      expect((await folded(here)).claimed).to.equal(true);
      expect(await claimOne(db, there.conversationId, there.sandbox.id), 'from the queue').to.equal(undefined);
      expect((await desk.get(`turns/${inSlack.turnId}`)).body.turn.waiting).to.deep.equal({ why: 'paused', behind: null });
      expect((await desk.post('claims/resume', order())).body.code, 'the installation is not paused').to.equal('ACTION_REFUSED');
      await desk.post('claims/resume', { ...order('it is right again'), surface: 'slack' });
      expect(await claimOne(db, there.conversationId, there.sandbox.id)).to.include({ turnId: inSlack.turnId });
    });

    it('and says of which in the preview, from the command line, too; never of a workspace and a surface at once', async () => {
      const desk = await open();
      expect((await desk.post('claims/pause?preview=true', { surface: 'app' })).body.effect).to.include('No turn of the web chat starts');
      expect((await desk.heph('claims', 'pause', '--surface', 'slack', '--reason', 'night')).said).to.include('pause-claims surface:slack');
      expect((await desk.post('claims/pause', { ...order(), surface: 'slack', workspace: 'w' })).status).to.equal(400);
      expect((await desk.post('claims/pause', { ...order(), surface: 'fax' })).status).to.equal(400);
    });
  });

  describe('settles the outbox', () => {
    /** One action that nobody knows the outcome of, and one that waits. */
    async function uncertain() {
      const { db } = database;
      const person = await makePerson(db);
      await connect(db, person);
      await fillOutbox(db, person, [1, 2]);
      const leased = await leaseNext(db, { teamId: TEAM, channelId: 'D0', leaseId: randomUUID() }, QUICK);
      const { id, leaseId } = leased as NonNullable<typeof leased>;
      await settleAction(db, { id, leaseId, to: { state: 'UNCERTAIN', reason: 'history_missing_scope', readAgain: false } }, QUICK);
      const [slug] = await run(db, sql.unsafe`select slug from workspace where id = ${person.workspaceId}`);
      return { id, waiting: (await actions(db))[1]?.id as string, slug: String(slug?.['slug']), desk: await open() };
    }

    it('with a preview, a reason and a row in the log, once for a key', async () => {
      const { desk, id } = await uncertain();
      expect((await desk.post(`outbox/${id}/again?preview=true`)).body.effect).to.include('people read it twice');
      const asked = order('I see it in the channel');
      const { body } = await desk.post(`outbox/${id}/sent`, asked);
      expect([body.before.state, body.after.state, body.target]).to.deep.equal(['UNCERTAIN', 'SENT', id]);
      expect((await desk.post(`outbox/${id}/sent`, asked)).body).to.deep.equal({ ...body, repeated: true });
      expect((await desk.post(`outbox/${id}/sent`, order())).body.code).to.equal('ACTION_REFUSED');
      const log = await run(database.db, sql.unsafe`select action, reason, operator from operator_action`);
      expect(log).to.deep.equal([{ action: 'outbox-sent', reason: 'I see it in the channel', operator: 'local' }]);
      const steps = await run(database.db, sql.unsafe`select moved_by from outbox_step where action_id = ${id} order by at`);
      expect(steps.at(-1)).to.deep.equal({ moved_by: 'operator' });
    });

    it('and does not send again what a repeat finds uncertain for another attempt', async () => {
      const { desk, id } = await uncertain();
      const { db } = database;
      const cut = { ...order(), action: 'outbox-again', target: id, operator: 'local' } as const;
      await beginAction(db, { ...cut, id: uuidv7(), before: { state: 'UNCERTAIN', attempts: 0, reason: 'history_missing_scope' } });
      await desk.post(`outbox/${id}/again`, { reason: 'again', idempotencyKey: cut.idempotencyKey });
      expect((await actions(db)).find((one) => one.id === id)?.state).to.equal('UNCERTAIN');
    });

    it('from the command line, which lists what is not sent per channel', async () => {
      const { desk, id, waiting, slug } = await uncertain();
      const heph = async (line: string) => desk.heph(...line.split(' '));
      const listed = (await heph('outbox list')).said;
      expect(listed).to.match(new RegExp(`${slug} +${TEAM} +D0 +1 +1 +0 +0 +\\d+s`), 'the channel');
      expect(listed).to.match(new RegExp(`${id} +UNCERTAIN +history_missing_scope +${slug} +${TEAM} +D0`));
      expect((await heph('outbox list --state NONE')).code).to.equal(1);
      expect((await heph(`outbox again ${waiting} --reason x`)).said).to.equal(
        'The action is PENDING; only one that is UNCERTAIN, PARKED or DEAD can be sent again.\n',
      );
      expect((await heph(`outbox sent ${id}`)).said).to.include('--reason is missing');
      expect((await heph(`outbox again ${id} --reason gone`)).said).to.match(/before: state=UNCERTAIN .*\n +after: +state=RETRY/);
      expect((await heph(`outbox sent ${randomUUID()} --reason x`)).said).to.match(/^There is no such action/);
      expect((await heph('outbox sent x --reason x')).code).to.equal(1);
    });
  });
});
