/**
 * The choice of a person whether an AI model may work for them, on the web wire.
 */
import { expect } from 'chai';
import { reconcileSlots } from '../../db/ledger/slots.ts';
import { sql } from '../../db/pool.ts';
import { sessionSchema } from '../../src/contract/web.ts';
import { until } from '../support/actors.ts';
import { useDatabase } from '../support/database.ts';
import { type Answer, type HttpRig, useRigs } from '../support/http-rig.ts';
import { emptyLedger, makePerson, run } from '../support/ledger.ts';

describe('the choice of AI', () => {
  const database = useDatabase();
  const openRig = useRigs(database);
  let rig: HttpRig;
  beforeEach(async () => {
    await emptyLedger(database.db);
    await reconcileSlots(database.db, 4);
    rig = await openRig();
  });

  const choose = (allowed: unknown) => rig.send('PUT', 'ai-choice', { body: { allowed } });
  const session = async () => sessionSchema.parse((await rig.send('GET', '/session')).body);

  async function turnEnds(asked: Answer): Promise<Record<string, unknown>> {
    let turn: Record<string, unknown> = {};
    await until('the turn has ended', async () => {
      turn = (await rig.send('GET', `turns/${asked.body.turn.id}`)).body;
      return turn['endedAt'] !== null;
    });
    return turn;
  }

  it('fails the next question with the reason while it is off, and lets it be answered when it is on again', async () => {
    expect(await session()).to.include({ aiAllowed: true });
    expect((await choose(false)).body).to.deep.equal({ allowed: false });
    expect(await session()).to.include({ aiAllowed: false });
    const turn = await turnEnds(await rig.ask('Why?'));
    expect(turn).to.include({ status: 'FAILED', attempt: 0 });
    expect(turn['error']).to.deep.equal({
      code: 'AI_CHOICE',
      text: 'AI is switched off for you in this workspace, so Heph did not start this reply. Ask an administrator to switch it on.',
    });
    expect((await choose(true)).status).to.equal(200);
    const asked = await rig.ask('And now?');
    const sandbox = await rig.sandbox(asked.body.turn.conversationId);
    const { body } = await sandbox.next(20_000);
    await sandbox.answer(body.run, 'Because.');
    expect(await turnEnds(asked)).to.include({ status: 'DONE' });
  });

  it('is that of one person in one workspace', async () => {
    const other = await makePerson(database.db, rig.person.workspaceId);
    await choose(false);
    const rows = await run(database.db, sql.unsafe`select account_id from workspace_member where ai_allowed`);
    expect(rows.map((row) => row['account_id'])).to.deep.equal([other.accountId]);
    const foreign = await rig.send('PUT', '/workspaces/nobodys/mentor/ai-choice', { body: { allowed: false } });
    expect([foreign.status, foreign.body.code]).to.deep.equal([404, 'WORKSPACE_NOT_FOUND']);
  });

  it('is refused when it is neither on nor off, and for a person who is being erased', async () => {
    // rule: R12
    expect((await choose('yes')).body).to.include({ status: 400, code: 'BAD_REQUEST' });
    await run(database.db, sql.unsafe`update account set erasure_requested_at = now() where id = ${rig.person.accountId} returning id`);
    expect((await choose(false)).body).to.include({ code: 'PERSON_ERASED' });
    expect(await run(database.db, sql.unsafe`select 1 from workspace_member where not ai_allowed`)).to.deep.equal([]);
  });
});
