/**
 * The context of a turn over real HTTP: what a sandbox is told, and what happens when a conversation is too long to be told.
 */
import { expect } from 'chai';
import { reconcileSlots } from '../../db/ledger/slots.ts';
import { sql } from '../../db/pool.ts';
import { buildContext } from '../../src/context/build.ts';
import { contextResponseSchema } from '../../src/contract/agent.ts';
import { useDatabase } from '../support/database.ts';
import { type HttpRig, useRigs } from '../support/http-rig.ts';
import { emptyLedger, run } from '../support/ledger.ts';

describe('the context of a turn', () => {
  const database = useDatabase();
  const openRig = useRigs(database);

  async function running(pathMaxBytes?: number) {
    await emptyLedger(database.db);
    await reconcileSlots(database.db, 4);
    const options = { assistantName: 'Heph', ...(pathMaxBytes === undefined ? {} : { pathMaxBytes }) };
    const rig: HttpRig = await openRig({ buildContext: (runId) => buildContext(database.db, runId, options) });
    const { body } = await rig.ask('Why?');
    const sandbox = await rig.sandbox(body.turn.conversationId);
    const pulled = await sandbox.next(5_000);
    return { rig, sandbox, turn: body.turn, run: pulled.body.run as { id: string; epoch: number } };
  }

  it('is given out whole, and the question is the prompt', async () => {
    const { sandbox, run: claimed } = await running();
    const context = contextResponseSchema.parse((await sandbox.call(claimed, 'context')).body);
    expect(context.prompt).to.match(/^\[.* UTC\]\nWhy\?$/);
    expect(context.entries).to.deep.equal([]);
    expect(context.situation).to.include('Start with read INDEX.md');
  });

  it('of a conversation that is too long is not given out: the turn fails with a text, and its sandbox is told to drop it', async () => {
    const { rig, sandbox, run: claimed, turn } = await running(3);
    expect((await sandbox.call(claimed, 'context')).body).to.include({ status: 409, code: 'MENTOR_LEASE_LOST' });
    const { body } = await rig.send('GET', `turns/${turn.id}`);
    expect(body).to.deep.include({ status: 'FAILED' });
    expect(body.error.text).to.equal('Heph could not finish this reply. Try again.');
    const [row] = await run(database.db, sql.unsafe`select error_detail from mentor_turn where id = ${turn.id}`);
    expect(row).to.deep.equal({ error_detail: 'context_overflow' });
  });
});
