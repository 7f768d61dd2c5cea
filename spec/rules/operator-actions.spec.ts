/**
 * rule: R17
 * What an operator does: each deed with its preview, its reason, its row in the log, and a key by which a repeat does nothing again.
 */
import { expect } from 'chai';
import { findOrCreateMain } from '../../db/ledger/conversation.ts';
import { reconcileSlots } from '../../db/ledger/slots.ts';
import { beginAction, finishAction } from '../../db/ops/actions.ts';
import { sql } from '../../db/pool.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import { becomes, openPlayed, openScene, turnOf, until, useServers } from '../support/actors.ts';
import { useDatabase } from '../support/database.ts';
import { ask, claimOne, emptyLedger, makeHost, makeMain, makePerson, makeSandbox, run } from '../support/ledger.ts';
import { useDesks } from '../support/operators.ts';
import { answerAtOnce, done, type TurnScript } from '../support/stub-sandboxes.ts';

const order = (reason = 'a test') => ({ reason, idempotencyKey: uuidv7() });

describe('what an operator does', () => {
  const database = useDatabase();
  const start = useServers(database);
  const open = useDesks(database);
  beforeEach(async () => {
    await emptyLedger(database.db);
    await run(database.db, sql.unsafe`truncate operator_action`);
  });

  const log = () =>
    run(
      database.db,
      sql.unsafe`select action, target, reason, operator, state, state_before, state_after from operator_action order by id`,
    );

  /** A running turn in the hands of a sandbox that the test plays, and an operator's desk. */
  async function running() {
    const it = await openPlayed(start, database.db);
    const pull = await it.parked();
    const turnId = await it.server.ask(it.person, 'Why?');
    const attempt = it.attempt(await pull.answer);
    return { ...it, turnId, attempt, desk: await open({ actors: it.server.actors }) };
  }

  it('stops a running turn as its person would, and writes down why', async () => {
    const { desk, turnId, db, server, attempt } = await running();
    const preview = await desk.post(`turns/${turnId}/stop?preview=true`);
    expect(preview.body).to.deep.include({ action: 'stop', target: turnId, allowed: true });
    expect(preview.body.effect).to.include('STOPPED').and.include('30 s');
    expect((await turnOf(db, turnId)).status, 'a preview changes nothing').to.equal('RUNNING');
    expect(await log(), 'a preview is no deed').to.deep.equal([]);

    const { status, body } = await desk.post(`turns/${turnId}/stop`, order('it runs away'));
    expect([status, body.state, body.repeated]).to.deep.equal([200, 'DONE', false]);
    expect(body.before).to.include({ status: 'RUNNING', run: 'LEASED', epoch: 1 });
    expect(body.after).to.include({ status: 'STOPPED', run: 'LEASED' });
    expect(await log()).to.deep.equal([
      {
        ...{ action: 'stop', target: turnId, reason: 'it runs away', operator: 'local', state: 'DONE' },
        ...{ state_before: body.before, state_after: body.after },
      },
    ]);
    const told = server.changes.filter(({ turnIds, sealedRunIds }) => turnIds.includes(turnId) && sealedRunIds.includes(attempt.runId));
    expect(told, 'its pages and its model calls hear of it').to.have.length(1);
    expect((await desk.post(`turns/${turnId}/stop`, order())).body.code, 'twice').to.equal('ACTION_REFUSED');
  });

  it('does nothing again for a key that it knows, and refuses the key for anything else', async () => {
    const { desk, turnId, db } = await running();
    const asked = order();
    const first = await desk.post(`turns/${turnId}/stop`, asked);
    const again = await desk.post(`turns/${turnId}/stop`, asked);
    expect(again.body).to.deep.equal({ ...first.body, repeated: true });
    const other = await desk.post('claims/pause', asked);
    expect([other.status, other.body.code]).to.deep.equal([409, 'KEY_REUSED']);
    expect(await log()).to.have.length(1);
    const together = order();
    const answers = await Promise.all([1, 2, 3].map(() => desk.post('claims/pause', together)));
    expect(answers.map(({ status }) => status)).to.deep.equal([200, 200, 200]);
    expect(await run(db, sql.unsafe`select 1 from claim_pause`)).to.have.length(1);
    expect(await log()).to.have.length(2);
  });

  it('needs a reason and a key, within their bounds', async () => {
    const { desk, turnId, db } = await running();
    const path = `turns/${turnId}/stop`;
    for (const body of [
      {},
      { reason: 'x' },
      { idempotencyKey: 'x' },
      { reason: '  ', idempotencyKey: 'x' },
      { reason: 'x'.repeat(501), idempotencyKey: 'x' },
      { reason: 'x', idempotencyKey: 'x'.repeat(129) },
      { reason: 'x', idempotencyKey: 'x', other: 1 },
    ]) {
      expect((await desk.post(path, body)).status, JSON.stringify(body).slice(0, 80)).to.equal(400);
    }
    expect((await turnOf(db, turnId)).status).to.equal('RUNNING');
    expect((await desk.post(path, order(), { origin: 'http://evil.example' })).body.code).to.equal('ORIGIN_REFUSED');
    expect((await desk.post(path, { reason: 'x'.repeat(500), idempotencyKey: 'k'.repeat(128) })).status).to.equal(200);
  });

  it('takes an attempt back: its sandbox ends, its turn waits and runs again elsewhere, and what the old one says is refused', async () => {
    const { desk, turnId, db, server, attempt, sandbox } = await running();
    const { body } = await desk.post(`turns/${turnId}/requeue`, order('its sandbox hangs'));
    expect(body.before).to.include({ status: 'RUNNING', attempt: 1, epoch: 1 });
    expect(body.after).to.include({ attempt: 1 });
    const late = await server.runtime.endTurn(attempt, done('too late'));
    expect(late.kind).to.equal('lost');
    const [box] = await run(db, sql.unsafe`select state from sandbox where id = ${sandbox.sandboxId}`);
    expect(box?.['state']).to.equal('ENDED');
    const turn = await becomes(db, turnId, 'DONE'); // by the sandbox that the server starts instead
    expect(turn).to.deep.include({ attempt: 2, epoch: 2, answers: ['Answer to Why?'] });
  });

  it('does not take the last attempt back, because that would fail the turn', async () => {
    const { desk, turnId, db } = await running();
    await run(db, sql.unsafe`update mentor_turn set attempt = 2 where id = ${turnId} returning 1`);
    const { status, body } = await desk.post(`turns/${turnId}/requeue`, order());
    expect([status, body.code]).to.deep.equal([409, 'ACTION_REFUSED']);
    expect(body.detail).to.include('2 of 2').and.include('Stop it instead');
    expect((await desk.post(`turns/${turnId}/requeue?preview=true`)).body.allowed).to.equal(false);
    expect(await log()).to.deep.equal([]);
  });

  it('skips a question that waits: it fails and says so, and the one behind it runs', async () => {
    const it = await openScene(start, database.db, { capacity: 0 });
    const { db, server, person } = it;
    const poisoned = await server.ask(person, 'Poison?');
    const next = await server.ask(person, 'And now?');
    const desk = await open({ actors: server.actors });
    expect((await desk.post(`turns/${next}/requeue`, order())).body.code).to.equal('ACTION_REFUSED');
    const { body } = await desk.post(`turns/${poisoned}/skip`, order('it kills its sandbox'));
    expect(body.after).to.include({ status: 'FAILED', error: 'SKIPPED', run: 'ENDED' });
    expect(
      server.changes.some(({ turnIds }) => turnIds.includes(poisoned)),
      'its pages are told',
    ).to.equal(true);
    const [row] = await run(db, sql.unsafe`select error_text from mentor_turn where id = ${poisoned}`);
    expect(row?.['error_text']).to.match(/operator took this question out/);
    await reconcileSlots(db, 1);
    await it.clock.advanceAsync(1_000);
    expect((await becomes(db, next, 'DONE')).answers).to.deep.equal(['Answer to And now?']);
  });

  it('takes up an action that was cut off, with the key of the first, and only on the attempt that it saw', async () => {
    const { desk, turnId, db, server } = await running();
    const cut = { ...order('cut off'), action: 'requeue', target: turnId, operator: 'local' } as const;
    const before = { status: 'RUNNING', attempt: 1, epoch: 1, run: 'LEASED', error: null };
    await beginAction(db, { ...cut, id: uuidv7(), before });
    const { body } = await desk.post(`turns/${turnId}/requeue`, { reason: 'again', idempotencyKey: cut.idempotencyKey });
    expect([body.state, body.repeated, body.reason]).to.deep.equal(['DONE', true, 'cut off']);
    await becomes(db, turnId, 'DONE');
    const other = await server.ask(await makePerson(db), 'Another?');
    await becomes(db, other, 'DONE');
    // The same again for a turn that has moved on since: nothing is done to its newer attempt.
    const second = await running();
    await run(db, sql.unsafe`update agent_run set epoch = 2 where turn_id = ${second.turnId} returning 1`);
    const stale = { ...order('stale'), action: 'requeue', target: second.turnId, operator: 'local' } as const;
    await beginAction(db, { ...stale, id: uuidv7(), before });
    await second.desk.post(`turns/${second.turnId}/requeue`, { reason: 'again', idempotencyKey: stale.idempotencyKey });
    expect(await turnOf(db, second.turnId)).to.include({ status: 'RUNNING', epoch: 2 });
  });

  it('closes the row of an action once', async () => {
    const row = await beginAction(database.db, {
      ...order(),
      ...{ id: uuidv7(), operator: 'local', action: 'drain', target: 'x', before: { draining: false } },
    });
    expect((await finishAction(database.db, row.id, { draining: true })).state_after).to.deep.equal({ draining: true });
    expect((await finishAction(database.db, row.id, { draining: false })).state_after).to.deep.equal({ draining: true });
  });

  describe('pauses claims', () => {
    it('of the installation: nothing starts, what runs ends, and turns start again after it', async () => {
      const mayEnd = Promise.withResolvers<void>();
      const script: TurnScript = async (turn) => {
        await mayEnd.promise;
        await answerAtOnce(turn);
      };
      const { db, server, person, clock } = await openScene(start, database.db, { script });
      const desk = await open({ actors: server.actors });
      const first = await server.ask(person, 'Why?');
      await becomes(db, first, 'RUNNING');
      const { effect } = (await desk.post('claims/pause?preview=true')).body;
      expect(effect).to.include('the installation').and.include('0 wait, 1 that run go on');
      expect((await desk.post('claims/pause', order('the provider is down'))).body.after).to.include({ paused: true });
      expect((await desk.post('claims/pause', order())).body.code, 'twice').to.equal('ACTION_REFUSED');
      const behind = await server.ask(person, 'And then?');
      mayEnd.resolve();
      await becomes(db, first, 'DONE');
      const claims = () => server.db.names().filter((name) => name === 'ledger_claim').length;
      const before = claims();
      await clock.advanceAsync(2_000);
      await until('its sandbox waits, and sweeps have asked for it', () => claims() > before);
      expect((await turnOf(db, behind)).status).to.equal('QUEUED');
      expect((await desk.get(`turns/${behind}`)).body.turn.waiting).to.deep.equal({ why: 'paused', behind: null });
      await desk.post('claims/resume', order('it is back'));
      await clock.advanceAsync(1_000);
      await becomes(db, behind, 'DONE');
      expect((await log()).map(({ action, target }) => [action, target])).to.deep.equal([
        ['pause-claims', 'installation'],
        ['resume-claims', 'installation'],
      ]);
    });

    it('of one workspace: others start, at once and from the queue', async () => {
      const { db } = database;
      await reconcileSlots(db, 4);
      const desk = await open();
      const hostId = await makeHost(db);
      const people = [await makePerson(db), await makePerson(db)] as const;
      const [paused, free] = people;
      const [slug] = await run(db, sql.unsafe`select slug from workspace where id = ${paused.workspaceId}`);
      await desk.post('claims/pause', { ...order(), workspace: slug?.['slug'] });
      const boxes = await Promise.all(
        people.map(async (person) => {
          const conversationId = await makeMain(db, person);
          return { person, conversationId, sandbox: await makeSandbox(db, person, conversationId, hostId) };
        }),
      );
      const folded = [];
      for (const { person, conversationId, sandbox } of boxes) {
        const { result } = await ask(db, person, conversationId, { sandboxId: sandbox.id });
        folded.push(result.kind === 'written' && result.claimed !== null);
      }
      expect(folded).to.deep.equal([false, true]);
      const other = await makePerson(db, free.workspaceId);
      const otherMain = await findOrCreateMain(db, other.workspaceId, other.accountId);
      const otherBox = await makeSandbox(db, other, otherMain, hostId);
      await ask(db, other, otherMain);
      expect(await claimOne(db, otherMain, otherBox.id)).to.include({ conversationId: otherMain });
      const [first] = boxes;
      expect(await claimOne(db, first?.conversationId as never, first?.sandbox.id as never)).to.equal(undefined);
      expect((await desk.post('claims/pause', { ...order(), workspace: 'nobodys' })).body.code).to.equal('WORKSPACE_NOT_FOUND');
      expect((await desk.post('claims/resume', order())).body.code, 'the installation is not paused').to.equal('ACTION_REFUSED');
    });

    it('starts no sandbox for what is paused', async () => {
      const { db, server, person, clock } = await openScene(start, database.db);
      const desk = await open({ actors: server.actors });
      await desk.post('claims/pause', order());
      await server.ask(person, 'Why?');
      await clock.advanceAsync(2_000);
      await until('demand was looked at', () => server.db.names().includes('ledger_sandbox_demand'));
      expect(server.host.starts).to.deep.equal([]);
      await desk.post('claims/resume', order());
      await clock.advanceAsync(1_000);
      await until(
        'its turn is through',
        async () => (await run(db, sql.unsafe`select 1 from mentor_turn where status = 'DONE'`)).length === 1,
      );
    });
  });

  it('drains this server once', async () => {
    const desk = await open({ hostId: 'server-1' });
    expect((await desk.post('drain?preview=true')).body).to.deep.include({ allowed: true, target: 'server-1' });
    expect(desk.hands.drains).to.equal(0);
    const { body } = await desk.post('drain', order('a new build'));
    expect([body.before, body.after]).to.deep.equal([{ draining: false }, { draining: true }]);
    expect((await desk.post('drain', order())).body.code).to.equal('ACTION_REFUSED');
    expect(desk.hands.drains).to.equal(1);
  });

  it('lists what was done, newest first, in pages', async () => {
    const desk = await open();
    for (const path of ['claims/pause', 'claims/resume', 'claims/pause']) await desk.post(path, order(`because of ${path}`));
    const first = (await desk.get('actions?limit=2')).body;
    expect(first.actions.map(({ action }: { action: string }) => action)).to.deep.equal(['pause-claims', 'resume-claims']);
    const last = (await desk.get(`actions?limit=2&before=${first.nextBefore}`)).body;
    expect([last.actions.length, last.nextBefore, last.actions[0].reason]).to.deep.equal([1, null, 'because of claims/pause']);
  });

  it('is done from the command line, too', async () => {
    const { desk, turnId, db } = await running();
    const said = async (...args: string[]) => {
      const { code, said: words } = await desk.heph(...args);
      expect(code, words).to.equal(0);
      return words;
    };
    expect(await said('turns')).to.match(new RegExp(`${turnId} +\\S+ +running +1 +\\d+s +- +[\\dms]+ +[\\dms]+`));
    expect(await said('turns', '--state', 'stuck')).to.equal('There are none.\n');
    expect(await said('turn', 'show', turnId))
      .to.include('asked')
      .and.include('claimed');
    expect(await said('turn', 'stop', turnId, '--preview')).to.match(/^It would be done: The turn is STOPPED/);
    expect(await said('turn', 'skip', turnId, '--preview')).to.match(/^It would be refused: The turn does not wait/);
    expect((await turnOf(db, turnId)).status).to.equal('RUNNING');
    const key = uuidv7();
    const stop = ['turn', 'stop', turnId, '--reason', 'it runs away', '--key', key];
    expect(await said(...stop))
      .to.include('before: status=RUNNING')
      .and.include('after:  status=STOPPED');
    expect(await said(...stop)).to.include('done before with this key');
    expect(await said('claims', 'pause', '--reason', 'night')).to.include('paused=true');
    expect(await said('claims', 'resume', '--reason', 'day')).to.include('paused=false');
    expect(await said('turn', 'show', turnId)).to.match(/action +stop by local: it runs away/);
    expect(await said('actions')).to.match(/stop +\S+ +local +it runs away +DONE/);
    expect(await said('actors')).to.include('conversation');
    expect(await said('drain', '--reason', 'a new build')).to.include('draining=true');
    expect((await log()).map(({ action, reason }) => [action, reason])).to.deep.equal([
      ['stop', 'it runs away'],
      ['pause-claims', 'night'],
      ['resume-claims', 'day'],
      ['drain', 'a new build'],
    ]);
    for (const [args, code, words] of [
      [['turn', 'stop', turnId], 2, /--reason is missing/],
      [['turn', 'stop', turnId, '--reason', 'x'], 1, /stopped already|has ended/],
      [['turn', 'show', 'it'], 1, /no such turn/],
      [['turn', 'break', turnId], 2, /no command/],
      [['turns', '--state', 'odd'], 1, /state/],
    ] as const) {
      const { code: exit, said: told } = await desk.heph(...args);
      expect(exit, args.join(' ')).to.equal(code);
      expect(told, args.join(' ')).to.match(words);
    }
  });

  it('finds one actor by its kind and id, and says when it is not here', async () => {
    const { desk, conversationId } = await running();
    expect((await desk.get(`actors/conversation/${conversationId}`)).body.actor).to.include({ kind: 'conversation', id: conversationId });
    expect((await desk.get(`actors/conversation/${uuidv7()}`)).status).to.equal(404);
  });
});
