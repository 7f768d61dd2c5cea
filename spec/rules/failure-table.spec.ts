/**
 * The seed's table "How a turn fails", row by row: the cause, who ends the turn, the exact text for the developer, the detail of the closed
 * set, and the log line with its level. Refusals of the admission have their own spec (admission.spec.ts).
 */
import { expect } from 'chai';
import { sql } from '../../db/pool.ts';
import { FAILURE_DETAILS, type TurnEndRequest } from '../../src/contract/agent.ts';
import { becomes, heldSlots, openPlayed, openScene, until, useServers } from '../support/actors.ts';
import { useDatabase } from '../support/database.ts';
import { emptyLedger, run } from '../support/ledger.ts';
import { NotedLog } from '../support/noted-log.ts';
import { piAnswer } from '../support/stub-sandboxes.ts';

const NOT_FINISHED = 'Hephaestus could not finish this reply. Try again.';
const TOO_LONG = 'Hephaestus took too long to reply and stopped. Try again.';
const STALLED = "Hephaestus's AI model stopped responding, so Hephaestus could not finish this reply. Try again in a moment.";

type Row = readonly [cause: string, end: Partial<TurnEndRequest>, expected: { code: string; text: string; detail: string | null }];
const byTheLoop: readonly Row[] = [
  ['the deadline passes and the loop ends the turn', { reason: 'DEADLINE' }, { code: 'DEADLINE', text: TOO_LONG, detail: null }],
  ['the turn reaches its model call limit', { reason: 'ERROR', detail: 'call_limit' }, error('call_limit')],
  ['the provider is silent or its breaker refuses', { reason: 'STALLED' }, { code: 'STALLED', text: STALLED, detail: null }],
  ['Pi writes no answer', { reason: 'ERROR', detail: 'empty_answer' }, error('empty_answer')],
  ['the model call fails', { reason: 'ERROR', detail: 'model_error' }, error('model_error')],
  ['the conversation stays too long after compaction', { reason: 'ERROR', detail: 'context_overflow' }, error('context_overflow')],
  ['the server refused the end', { reason: 'ERROR', detail: 'end_refused' }, error('end_refused')],
  ['the end is still too large with notes instead of results', { reason: 'ERROR', detail: 'end_too_large' }, error('end_too_large')],
  ['the loop names a detail outside of the closed set', { reason: 'ERROR', detail: 'I know: it was them' }, error('unrecognized')],
];

function error(detail: string) {
  return { code: 'ERROR', text: NOT_FINISHED, detail };
}

describe('a turn fails with its own text when', () => {
  const database = useDatabase();
  const start = useServers(database);
  beforeEach(() => emptyLedger(database.db));

  /** A turn in the hands of the test. */
  async function open() {
    const log = new NotedLog();
    const it = await openPlayed(start, database.db, { log, assistantName: 'Hephaestus' });
    const pull = await it.parked();
    const turnId = await it.server.ask(it.person, 'Why?');
    return { ...it, log, turnId, attempt: it.attempt(await pull.answer) };
  }

  async function errorOf(turnId: string) {
    const [row] = await run(
      database.db,
      sql.unsafe`select error_code as code, error_text as text, error_detail as detail,
        (select count(*)::int from mentor_entry e where e.turn_id = t.id and e.kind <> 'QUESTION') as entries
        from mentor_turn t where id = ${turnId}`,
    );
    return row;
  }

  for (const [cause, end, expected] of byTheLoop) {
    it(`${cause}: entries of the attempt are not stored, and a warning has the reason and the detail`, async () => {
      const { db, server, log, turnId, attempt } = await open();
      const entries = [piAnswer('half an answer')];
      expect(await server.runtime.endTurn(attempt, { outcome: 'FAILED', entries, lastPartial: null, ...end })).to.deep.equal({
        kind: 'ended',
      });
      expect(await errorOf(turnId)).to.deep.equal({ ...expected, entries: 0 });
      expect(await heldSlots(db)).to.equal(0);
      const [line, ...more] = log.of('turn failed');
      expect(line).to.include({ level: 'warn', turnId, reason: end.reason, detail: expected.detail });
      expect(more).to.deep.equal([]);
      expect(JSON.stringify(log.lines), 'no words of anybody').to.not.include('half an answer').and.not.include('it was them');
    });
  }

  it('the deadline passes and nobody ends the turn before its grace is over', async () => {
    const { db, server, turnId } = await open();
    await run(
      db,
      sql.unsafe`update agent_run set deadline_at = clock_timestamp() - interval '30 s', bound_at = clock_timestamp() - interval '1 ms',
        lease_until = clock_timestamp() - interval '1 ms' where turn_id = ${turnId} returning 1`,
    );
    await server.actors.reap();
    expect(await errorOf(turnId)).to.deep.equal({ code: 'DEADLINE', text: TOO_LONG, detail: null, entries: 0 });
  });

  it('the second attempt loses its lease, which is no warning', async () => {
    const log = new NotedLog();
    const { db, server, person } = await openScene(start, database.db, {
      log,
      assistantName: 'Hephaestus',
      script: async (turn) => turn.die(),
    });
    const turnId = await server.ask(person, 'Why?');
    await becomes(db, turnId, 'FAILED');
    expect(await errorOf(turnId)).to.deep.equal({ code: 'ERROR', text: NOT_FINISHED, detail: null, entries: 0 });
    await until('both are logged', () => log.of('attempt taken back').length === 2);
    expect(log.of('attempt taken back').map(({ level, status, epoch }) => [level, status, epoch])).to.deep.equal([
      ['info', 'QUEUED', 1],
      ['info', 'FAILED', 2],
    ]);
  });

  it('admission refuses it, which is told at INFO with the code only', async () => {
    const log = new NotedLog();
    const { db, server, person } = await openPlayed(start, database.db, { log });
    await run(db, sql.unsafe`update workspace_member set ai_allowed = false where account_id = ${person.accountId} returning 1`);
    const turnId = await server.ask(person, 'Why?');
    await becomes(db, turnId, 'FAILED');
    await until('it is logged', () => log.of('turn refused').length === 1);
    expect(log.of('turn refused')[0]).to.include({ level: 'info', turnId, code: 'AI_CHOICE' });
  });

  it('and the set of details has nothing but kinds of failures', () => {
    for (const detail of FAILURE_DETAILS) expect(detail).to.match(/^[a-z_]+$/);
  });
});
