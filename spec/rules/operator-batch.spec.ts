/**
 * rule: R17
 * One action on every turn of a filter: the operator says how many they mean, each turn has its own row, fence and result.
 */
import { expect } from 'chai';
import { reconcileSlots } from '../../db/ledger/slots.ts';
import { beginBatch } from '../../db/ops/actions.ts';
import { sql } from '../../db/pool.ts';
import { BATCH_MAX_TURNS } from '../../src/contract/operator-batch.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import { batchIdOf } from '../../src/ops/batch-id.ts';
import { useDatabase } from '../support/database.ts';
import { ask, emptyLedger, makeMain, makePerson, type Person, run } from '../support/ledger.ts';
import { useDesks } from '../support/operators.ts';
import { claimed } from '../support/scene.ts';

describe('one action on many turns', () => {
  const database = useDatabase();
  const open = useDesks(database);
  beforeEach(async () => {
    await emptyLedger(database.db);
    await run(database.db, sql.unsafe`truncate operator_action`);
    await reconcileSlots(database.db, 4);
  });
  const order = (reason = 'a test') => ({ reason, idempotencyKey: uuidv7() });
  const statuses = async () => (await run(database.db, sql.unsafe`select status from mentor_turn order by id`)).map(({ status }) => status);
  const log = () => run(database.db, sql.unsafe`select target, action, reason, state, batch_id from operator_action order by id`);

  /** Questions of one person each; all wait. */
  async function waiting(count: number, workspace?: Person['workspaceId']) {
    const turns: string[] = [];
    for (let n = 0; n < count; n++) {
      const person = await makePerson(database.db, workspace);
      turns.push((await ask(database.db, person, await makeMain(database.db, person))).turnId);
    }
    return turns;
  }

  it('says what it would do to how many, and does it to exactly these, with a row for each', async () => {
    const turns = await waiting(3);
    const it = await claimed(database.db);
    const desk = await open();
    const filter = { state: 'open' };
    const preview = (await desk.post('batch?preview=true', { action: 'skip', filter })).body;
    expect(preview).to.include({ count: 4, tooMany: false, allowed: 3 });
    expect(preview.effects.map((one: { allowed: boolean; count: number }) => [one.allowed, one.count])).to.deep.equal([
      [true, 3],
      [false, 1],
    ]);
    expect(await log(), 'a preview is no deed').to.deep.equal([]);
    const { status, body } = await desk.post('batch', { action: 'skip', filter, count: 4, ...order('a broken model') });
    expect([status, body.repeated]).to.deep.equal([200, false]);
    const outcomes = new Map(body.results.map((one: { turn: string; outcome: string }) => [one.turn, one.outcome]));
    expect(turns.map((id) => outcomes.get(id))).to.deep.equal(['done', 'done', 'done']);
    expect(outcomes.get(it.asked.turnId), 'what runs cannot be skipped').to.equal('refused');
    expect(await statuses()).to.deep.equal(['FAILED', 'FAILED', 'FAILED', 'RUNNING']);
    const rows = await log();
    expect(rows.map(({ target }) => target)).to.have.members(turns);
    for (const row of rows) expect(row).to.include({ action: 'skip', reason: 'a broken model', state: 'DONE', batch_id: body.batchId });
    expect((await desk.get('actions')).body.actions[0].batchId).to.equal(body.batchId);
  });

  it('refuses another number than the operator means, and says which it is now', async () => {
    await waiting(2);
    const desk = await open();
    const filter = { state: 'queued' };
    await waiting(1);
    const { status, body } = await desk.post('batch', { action: 'skip', filter, count: 2, ...order() });
    expect([status, body.code, body.count]).to.deep.equal([409, 'ACTION_REFUSED', 3]);
    expect(body.detail).to.include('3 turns match now');
    expect([await statuses(), await log()]).to.deep.equal([['QUEUED', 'QUEUED', 'QUEUED'], []]);
  });

  it('has the filter of the list: the same turns, and no others', async () => {
    const [here, there] = [await makePerson(database.db), await makePerson(database.db)];
    const mine = await waiting(2, here.workspaceId);
    await waiting(1, there.workspaceId);
    const [row] = await run(database.db, sql.unsafe`select slug from workspace where id = ${here.workspaceId}`);
    const desk = await open();
    const filter = { state: 'queued', workspace: row?.['slug'], surface: 'app', why: 'no-server' };
    const listed = (await desk.get(`turns?${new URLSearchParams(filter as never)}`)).body.turns.map(({ id }: { id: string }) => id);
    expect(listed).to.have.members(mine);
    const { body } = await desk.post('batch', { action: 'skip', filter, count: 2, ...order() });
    expect(body.results.map(({ turn }: { turn: string }) => turn)).to.have.members(mine);
    expect((await statuses()).filter((status) => status === 'QUEUED')).to.have.length(1);
  });

  it('does nothing again for a key that it knows, whatever matches now', async () => {
    await waiting(2);
    const desk = await open();
    const asked = { action: 'skip', filter: { state: 'queued' }, count: 2, ...order() };
    const first = (await desk.post('batch', asked)).body;
    await waiting(2);
    const again = (await desk.post('batch', asked)).body;
    expect([again.repeated, again.batchId]).to.deep.equal([true, first.batchId]);
    expect(again.results.map(({ turn }: { turn: string }) => turn)).to.have.members(
      first.results.map(({ turn }: { turn: string }) => turn),
    );
    expect(
      (await statuses()).filter((status) => status === 'QUEUED'),
      'the new ones wait',
    ).to.have.length(2);
    expect(await log()).to.have.length(2);
    const other = await desk.post('batch', { ...asked, action: 'stop' });
    expect([other.status, other.body.code]).to.deep.equal([409, 'KEY_REUSED']);
  });

  it('goes on with its key after a cut, with its own turns only', async () => {
    const [first, second] = await waiting(2);
    const asked = { action: 'skip', filter: { state: 'queued' }, count: 2, ...order() };
    const before = { status: 'QUEUED', attempt: 0, epoch: 0, run: 'WAITING', error: null };
    const row = (target: string) => ({ id: uuidv7<'action'>(), idempotencyKey: `${asked.idempotencyKey} ${target}`, target, before });
    const batch = { id: batchIdOf(asked.idempotencyKey), action: 'skip', operator: 'local', reason: 'cut off' } as const;
    await beginBatch(database.db, batch, [row(String(first)), row(String(second))]);
    const [later] = await waiting(1);
    const { body } = await (await open()).post('batch', asked);
    expect([body.repeated, body.results.length]).to.deep.equal([true, 2]);
    expect(await statuses()).to.deep.equal(['FAILED', 'FAILED', 'QUEUED']);
    expect((await log()).map(({ state }) => state)).to.deep.equal(['DONE', 'DONE']);
    expect(later).to.be.a('string');
  });

  it('tells of a turn that has moved on, and does the others', async () => {
    const [gone, stays] = await waiting(2);
    const asked = { action: 'skip', filter: { state: 'queued' }, count: 2, ...order() };
    const before = { status: 'QUEUED', attempt: 0, epoch: 7, run: 'WAITING', error: null };
    const row = (target: string, epoch: number) => ({
      ...{ id: uuidv7<'action'>(), idempotencyKey: `${asked.idempotencyKey} ${target}`, target },
      before: { ...before, epoch },
    });
    const batch = { id: batchIdOf(asked.idempotencyKey), action: 'skip', operator: 'local', reason: 'x' } as const;
    await beginBatch(database.db, batch, [row(String(gone), 7), row(String(stays), 0)]);
    const { body } = await (await open()).post('batch', asked);
    const said = new Map(body.results.map((one: { turn: string; detail: string }) => [one.turn, one.detail]));
    expect([said.get(String(gone)), said.get(String(stays))]).to.deep.equal(['QUEUED', 'FAILED']);
  });

  describe('is bounded', () => {
    /** Turns that wait, as rows; nobody claims them. */
    async function rows(count: number): Promise<void> {
      const person = await makePerson(database.db);
      const conversationId = await makeMain(database.db, person);
      const { workspaceId, accountId } = person;
      await run(
        database.db,
        sql.unsafe`with n as materialized (select g, gen_random_uuid() as turn_id, gen_random_uuid() as entry_id from generate_series(1, ${count}::int) g),
          e as (insert into mentor_entry (id, workspace_id, conversation_id, turn_id, seq, kind, surface, text)
            select entry_id, ${workspaceId}, ${conversationId}, turn_id, g, 'QUESTION', 'app', 'Why?' from n),
          t as (insert into mentor_turn (id, workspace_id, conversation_id, account_id, question_entry_id, question_seq, request_id, surface)
            select turn_id, ${workspaceId}, ${conversationId}, ${accountId}, entry_id, g, g::text, 'app' from n)
          insert into agent_run (id, workspace_id, kind, conversation_id, turn_id)
          select gen_random_uuid(), ${workspaceId}, 'TURN', ${conversationId}, turn_id from n returning 1`,
      );
    }
    const filter = { state: 'queued' };

    it('to 500 turns', async () => {
      const desk = await open();
      await rows(BATCH_MAX_TURNS - 1);
      expect((await desk.post('batch?preview=true', { action: 'skip', filter })).body).to.include({
        count: BATCH_MAX_TURNS - 1,
        tooMany: false,
      });
      await rows(1);
      expect((await desk.post('batch?preview=true', { action: 'skip', filter })).body).to.include({
        count: BATCH_MAX_TURNS,
        tooMany: false,
      });
      await rows(1);
      expect((await desk.post('batch?preview=true', { action: 'skip', filter })).body).to.include({ tooMany: true });
      const { status, body } = await desk.post('batch', { action: 'skip', filter, count: BATCH_MAX_TURNS, ...order() });
      expect([status, body.code]).to.deep.equal([409, 'ACTION_REFUSED']);
      expect(body.detail).to.include('Narrow the filter');
    });

    it('to a count, a reason and a key', async () => {
      const desk = await open();
      for (const body of [
        { count: 0, ...order() },
        { count: BATCH_MAX_TURNS + 1, ...order() },
        { count: 1, reason: 'x' },
        { count: 1, idempotencyKey: 'x' },
        { count: 1, reason: 'x', idempotencyKey: 'k'.repeat(81) },
      ])
        expect((await desk.post('batch', { action: 'skip', filter, ...body })).status, JSON.stringify(body)).to.equal(400);
      expect((await desk.post('batch', { action: 'drain', filter, count: 1, ...order() })).status).to.equal(400);
      const longest = { action: 'skip', filter, count: 1, reason: 'x', idempotencyKey: 'k'.repeat(80) };
      expect((await desk.post('batch', longest)).body.detail).to.include('0 turns match now');
      await waiting(1);
      expect((await desk.post('batch', longest)).status).to.equal(200);
    });
  });

  it('is done from the command line, too', async () => {
    await waiting(2);
    const desk = await open();
    const heph = (line: string) => desk.heph(...line.split(' '));
    expect((await heph('batch skip --state queued --preview')).said).to.match(/^2 turn\(s\) match, 2 would be done\. Say --count 2/);
    expect((await heph('batch skip --state queued --reason x')).said).to.include('--count is missing');
    expect((await heph('batch skip --state queued --count 3 --reason x')).said).to.include('2 turns match now');
    expect((await heph('batch skip --state queued --count 2 --reason x')).said).to.match(
      /^batch \S+\nturn +outcome +detail\n\S+ +done +FAILED/,
    );
    expect((await heph('turns --state queued --surface app --sort oldest')).said).to.equal('There are none.\n');
  });
});
