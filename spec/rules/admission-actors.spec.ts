/**
 * Admission, as a person meets it: a question that is not admitted is accepted, and fails at once with a reason, whatever is busy.
 */
import { expect } from 'chai';
import { sql } from '../../db/pool.ts';
import { becomes, openPlayed, openScene, turnOf, until, useServers } from '../support/actors.ts';
import { useDatabase } from '../support/database.ts';
import { emptyLedger, run } from '../support/ledger.ts';
import { bindModel } from '../support/models.ts';

describe('a question that is not admitted', () => {
  const database = useDatabase();
  const start = useServers(database);
  beforeEach(() => emptyLedger(database.db));

  const forbid = (accountId: string) =>
    run(database.db, sql.unsafe`update workspace_member set ai_allowed = false where account_id = ${accountId} returning 1`);

  it('fails at once without a sandbox, a slot or a timer, and readers are told', async () => {
    const { db, server, person } = await openScene(start, database.db, { capacity: 0 });
    await forbid(person.accountId);
    const turnId = await server.ask(person, 'Why?');
    expect(await becomes(db, turnId, 'FAILED')).to.include({ error: 'AI_CHOICE', attempt: 0, state: 'ENDED' });
    await until('the change is published', () => server.changes.filter(({ turnIds }) => turnIds.includes(turnId)).length === 2);
    expect(server.host.starts, 'no sandbox is started for it').to.deep.equal([]);
  });

  it('fails at once when its sandbox waits, and the sandbox goes on waiting', async () => {
    const { db, server, person, parked } = await openPlayed(start, database.db);
    const pull = await parked();
    await bindModel(db, { outputTokens: 1 });
    const refused = await server.ask(person, 'Why?');
    await becomes(db, refused, 'FAILED');
    await bindModel(db);
    const turnId = await server.ask(person, 'And now?');
    expect(await pull.answer).to.include({ kind: 'TURN', epoch: 1, deadlineMs: 300_000 });
    expect(await turnOf(db, turnId)).to.include({ status: 'RUNNING' });
  });

  it('fails with those behind it, one after the other, also when a judgement meets another writer', async () => {
    // Each round races the arrival of a pull, a submit and a judgement of one conversation; a lost wake-up would show in one of them.
    for (let round = 0; round < 8; round++) {
      const { db, server, person } = await openScene(start, database.db, { capacity: 0 });
      const turns = [await server.ask(person, 'One?'), await server.ask(person, 'Two?'), await server.ask(person, 'Three?')];
      await forbid(person.accountId);
      turns.push(await server.ask(person, 'Four?'));
      for (const turnId of turns) await becomes(db, turnId, 'FAILED');
    }
  });

  it('fails by the sweep when the reason came after it', async () => {
    const { db, clock, server, person } = await openScene(start, database.db, { capacity: 0 });
    const turnId = await server.ask(person, 'Why?');
    await until('it is judged', () => server.db.names().includes('ledger_refuse'));
    await forbid(person.accountId);
    await clock.advanceAsync(1_000);
    expect(await becomes(db, turnId, 'FAILED')).to.include({ error: 'AI_CHOICE' });
  });
});
