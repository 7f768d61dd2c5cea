/**
 * Owns: proof that what tools copied is erased before Slack's retention, by the database's clock, once a week, and nothing else is.
 */
import { expect } from 'chai';
import { sql } from '../../db/pool.ts';
import { type EntryId, uuidv7 } from '../../src/kernel/ids.ts';
import { Retention } from '../../src/slack/retention.ts';
import { useDatabase } from '../support/database.ts';
import { emptyLedger, run } from '../support/ledger.ts';
import { NotedLog } from '../support/noted-log.ts';
import { claimed, endDone } from '../support/scene.ts';

const DAY_MS = 86_400_000;

describe('the retention of what tools copied', () => {
  // rule: R8
  const database = useDatabase();
  let it_: Awaited<ReturnType<typeof claimed>>;
  let told: string[];
  beforeEach(async () => {
    await emptyLedger(database.db);
    await run(database.db, sql.unsafe`truncate weekly_sweep`);
    it_ = await claimed(database.db);
    await endDone(it_);
    told = [];
  });

  const retention = (log = new NotedLog()) =>
    new Retention({
      ...{ db: database.db, log, retentionMs: 90 * DAY_MS },
      actors: { entriesErased: (changed) => void told.push(...changed.map(({ conversationId }) => conversationId)) },
    });
  let seq = 1_000;
  /** `ageS` seconds before now, by the database's clock. */
  async function add(kind: 'TOOL_RESULT' | 'SUMMARY' | 'ANSWER', ageS: number): Promise<EntryId> {
    const id = uuidv7<'entry'>();
    const payload = {
      ...{ type: 'message', id, parentId: null, timestamp: '2026-01-01T00:00:00.000Z' },
      message: { role: 'toolResult', toolCallId: 'call-1', toolName: 'read', content: [{ type: 'text', text: 'copied' }], timestamp: 1 },
    };
    await run(
      database.db,
      sql.unsafe`insert into mentor_entry (id, workspace_id, conversation_id, turn_id, seq, kind, surface, text, payload, created_at)
        values (${id}, ${it_.person.workspaceId}, ${it_.conversationId}, ${it_.asked.turnId}, ${++seq}, ${kind}, 'slack',
          ${kind === 'ANSWER' ? 'an answer' : null}, ${kind === 'TOOL_RESULT' ? JSON.stringify(payload) : null}::json, clock_timestamp() - ${ageS}::int * interval '1 s') returning 1`,
    );
    return id;
  }
  const live = async () =>
    (await run(database.db, sql.unsafe`select id from mentor_entry where erased_at is null`)).map(({ id }) => String(id));
  const LIMIT_S = (90 - 14) * 86_400;

  it('erases what would reach the limit before the sweep after the next, and nothing younger', async () => {
    const [younger, older] = [await add('TOOL_RESULT', LIMIT_S - 60), await add('TOOL_RESULT', LIMIT_S + 60)];
    await retention().run();
    expect([(await live()).includes(younger), (await live()).includes(older)]).to.deep.equal([true, false]);
    const [row] = await run(database.db, sql.unsafe`select payload::text as payload from mentor_entry where id = ${older}`);
    expect(row?.['payload']).to.include('toolResult').and.not.include('copied');
    expect(told).to.deep.equal([it_.conversationId]);
  });

  it('takes the summaries that cover it, and leaves what people and the assistant said', async () => {
    const answer = await add('ANSWER', LIMIT_S + 600);
    const copy = await add('TOOL_RESULT', LIMIT_S + 60);
    const summary = await add('SUMMARY', LIMIT_S - 600);
    await retention().run();
    const left = await live();
    expect([left.includes(answer), left.includes(copy), left.includes(summary)]).to.deep.equal([true, false, false]);
  });

  it('goes through more than one batch', async () => {
    for (let n = 0; n < 201; n++) await add('TOOL_RESULT', LIMIT_S + 60 + n);
    await retention().run();
    const [row] = await run(
      database.db,
      sql.unsafe`select count(*)::int as n from mentor_entry where kind = 'TOOL_RESULT' and erased_at is null`,
    );
    expect([row?.['n'], told.length]).to.deep.equal([0, 2]);
  });

  it('is kept once in a week, which begins on Sunday, by one of the servers', async () => {
    const log = new NotedLog();
    await Promise.all([retention(log).run(), retention(log).run(), retention(log).run()]);
    expect(log.of('slack retention kept')).to.have.length(1);
    const [week] = await run(
      database.db,
      sql.unsafe`select extract(isodow from week)::int as day, (clock_timestamp() at time zone 'UTC')::date - week as age from weekly_sweep`,
    );
    expect([week?.['day'], Number(week?.['age'])]).to.satisfy(([day, age]: number[]) => day === 7 && Number(age) >= 0 && Number(age) < 7);
    const late = await add('TOOL_RESULT', LIMIT_S + 60);
    await retention(log).run();
    expect(await live()).to.include(late);
    await run(database.db, sql.unsafe`update weekly_sweep set week = week - 7 returning 1`);
    await retention(log).run();
    expect(await live()).to.not.include(late);
  });
});
