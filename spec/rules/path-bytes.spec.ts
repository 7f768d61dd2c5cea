/**
 * The bytes of a path: turn n+1 starts with exactly the bytes of turn n, up to the first entry touched by a declared change; anything else
 * raises the metric and the log line.
 * rule: R13
 */
import { expect } from 'chai';
import { loadConversation } from '../../db/ledger/conversation.ts';
import { handOnRun } from '../../db/ledger/hand-on.ts';
import { reconcileSlots } from '../../db/ledger/slots.ts';
import { type Database, sql } from '../../db/pool.ts';
import { buildContext } from '../../src/context/build.ts';
import { PathWatch } from '../../src/context/path-watch.ts';
import type { ContextResponse, PiEntry } from '../../src/contract/agent.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import type { RunId } from '../../src/kernel/ids.ts';
import { type Log, type LogFields, silentLog } from '../../src/kernel/log.ts';
import { createMetrics } from '../../src/ops/index.ts';
import { openTestDatabase, useDatabase } from '../support/database.ts';
import { ask, emptyLedger, makeHost, makeMain, makePerson, run } from '../support/ledger.ts';
import {
  begin,
  claim,
  finish,
  piAnswer,
  piNote,
  piSummary,
  type Talk,
  talkIn,
  tell,
  text,
  threadAt,
  toolTurn,
} from '../support/pi-turns.ts';

describe('the bytes of a conversation’s paths', function () {
  this.timeout(120_000);
  const database = useDatabase();
  let main: Talk;
  let hostId: Awaited<ReturnType<typeof makeHost>>;
  let warnings: { event: string; fields: LogFields }[];
  let metrics: ReturnType<typeof createMetrics>;
  let watch: PathWatch;

  function watchOn(db: Database): PathWatch {
    const log: Log = { ...silentLog, warn: (event, fields = {}) => void warnings.push({ event, fields }) };
    return new PathWatch({ db, log, clock: systemClock, afterMs: 0, onBreak: metrics.pathBroken });
  }

  beforeEach(async () => {
    await emptyLedger(database.db);
    await reconcileSlots(database.db, 4);
    const person = await makePerson(database.db);
    hostId = await makeHost(database.db);
    main = await talkIn(database.db, { person, conversationId: await makeMain(database.db, person), hostId });
    warnings = [];
    metrics = createMetrics();
    watch = watchOn(database.db);
  });

  async function contextOf(runId: RunId, db: Database = database.db): Promise<ContextResponse> {
    const context = await buildContext(db, runId, { assistantName: 'Heph', watch });
    await watch.idle();
    if (!context || context === 'too-long') throw new Error('no context');
    return context;
  }

  async function breaks(part = 'path'): Promise<number> {
    const line = (await metrics.metrics()).split('\n').find((one) => one.startsWith(`heph_path_breaks_total{part="${part}"}`));
    return Number(line?.split(' ').at(-1));
  }

  /** A turn whose context is read and that then ends. */
  async function turn(words: string, entries: readonly PiEntry[], talk: Talk = main) {
    const now = await begin(talk, words);
    const context = await contextOf(now.runId);
    await finish(talk, now, entries);
    return { ...now, context };
  }

  /** What the model was told, and the question as the next turn will repeat it. */
  const lines = ({ entries }: ContextResponse) => entries.map((entry) => ({ id: entry.id, json: JSON.stringify(entry) }));

  /** Every tenth turn something is declared. Returns the ids that it touches; `all`: the whole path. */
  async function declareSomething(n: number, earlier: readonly PiEntry[]): Promise<ReadonlySet<string> | 'all'> {
    const results = earlier.filter((entry) => (entry['message'] as { role?: string } | undefined)?.role === 'toolResult');
    const kinds = ['note', 'stop', 'failure', 'erasure', 'edit', 'summary', 'zone'] as const;
    const target = results.at(-2)?.id ?? '';
    switch (kinds[(n / 10) % kinds.length]) {
      case 'note':
        await tell(main, `note ${n}`, [...toolTurn(), piNote(target)]);
        return new Set([target]);
      case 'stop':
        await tell(main, `stop ${n}`, { entries: toolTurn().slice(0, 2), outcome: 'STOPPED' });
        return new Set();
      case 'failure':
        await tell(main, `failure ${n}`, { entries: [], outcome: 'FAILED' });
        return new Set();
      case 'erasure':
        await run(
          database.db,
          sql.unsafe`update mentor_entry set erased_at = now(), text = null, search_text = null where id = ${target} returning 1`,
        );
        return new Set([target]);
      case 'edit': {
        const [{ id } = { id: '' }] = await run(
          database.db,
          sql.unsafe`select id from mentor_entry where kind = 'QUESTION' order by seq desc limit 1`,
        );
        await run(database.db, sql.unsafe`update mentor_entry set text = 'other words' where id = ${String(id)} returning 1`);
        return new Set([String(id)]);
      }
      case 'summary':
        await tell(main, `summary ${n}`, [piSummary(null, 'an older entry'), ...toolTurn()]);
        return 'all';
      default:
        await run(database.db, sql.unsafe`update account set time_zone = ${n % 20 === 0 ? 'Europe/Berlin' : 'Asia/Tokyo'} returning 1`);
        return 'all';
    }
  }

  it('stay over 200 turns with tools, restarts, second attempts and every declared change', async () => {
    let before: { id: string; json: string }[] = [];
    let touched: ReadonlySet<string> | 'all' = new Set();
    for (let n = 1; n <= 200; n++) {
      const now = await begin(main, `question ${n}`);
      const context = await contextOf(now.runId);
      const told = lines(context);
      const differs = before.findIndex((entry, at) => entry.json !== told[at]?.json);
      const isDeclared = touched === 'all' || differs < 0 || touched.has(before[differs]?.id ?? '');
      expect(isDeclared, `turn ${n} differs at entry ${differs}, and nothing was declared there`).to.equal(true);
      let attempt = now;
      if (n % 7 === 0) {
        const rows = await loadConversation(database.db, main.conversationId);
        const key = { runId: now.runId, epoch: now.epoch, sandboxId: main.sandboxId };
        await handOnRun(database.db, { ...key, conversationId: main.conversationId, version: rows?.version ?? 0 });
        attempt = await claim(main, now);
        const again = n % 50 === 0 ? await restarted(now.runId) : await contextOf(now.runId);
        expect(lines(again), 'a second attempt is told the same').to.deep.equal(told);
      }
      await finish(main, attempt, toolTurn(`answer ${n}`, `file ${n} \u0000 \ud800`));
      before = told;
      touched = n % 10 === 0 ? await declareSomething(n, context.entries) : new Set();
    }
    expect(await breaks()).to.equal(0);
    expect(warnings).to.deep.equal([]);
    const [kept] = await run(database.db, sql.unsafe`select count(*)::int as rows from mentor_path`);
    expect(kept, 'two prints a conversation').to.deep.equal({ rows: 2 });
  });

  /** Another server reads the same rows. */
  async function restarted(runId: RunId): Promise<ContextResponse> {
    const db = await openTestDatabase(database.url, 2);
    watch = watchOn(db);
    const context = await contextOf(runId, db);
    await db.close();
    watch = watchOn(database.db);
    return context;
  }

  const plants: readonly [what: string, plant: (ids: { answer: string; result: string }) => ReturnType<typeof sql.unsafe>][] = [
    [
      'another byte in a stored answer',
      ({ answer }) =>
        sql.unsafe`update mentor_entry set payload = replace(payload::text, 'Because', 'Becausé')::json where id = ${answer} returning 1`,
    ],
    ['a tool result that vanished', ({ result }) => sql.unsafe`delete from mentor_entry where id = ${result} returning 1`],
    [
      'an entry that was put in between',
      ({ answer }) => sql.unsafe`
      insert into mentor_entry (id, workspace_id, conversation_id, turn_id, seq, kind, surface, payload)
      select gen_random_uuid(), e.workspace_id, e.conversation_id, null, 1000 + e.seq, 'SYSTEM', 'app', e.payload from mentor_entry e where e.id = ${answer} returning 1`,
    ],
  ];
  for (const [what, plant] of plants) {
    it(`raise the metric and the log line for ${what}, with ids and no words`, async () => {
      const entries = toolTurn();
      const [, result, answer] = entries.map(({ id }) => id) as [string, string, string];
      const first = await turn('one', entries);
      const second = await turn('two', toolTurn());
      expect(await breaks()).to.equal(0);
      await run(database.db, plant({ answer, result }));
      if (what.includes('between'))
        await run(database.db, sql.unsafe`update mentor_entry set turn_id = ${first.turnId} where seq > 1000 returning 1`);
      const third = await turn('three', toolTurn());
      expect(await breaks()).to.equal(1);
      const { event, fields } = warnings[0] as { event: string; fields: LogFields };
      expect(event).to.equal('path.broken');
      expect(fields).to.include({ conversationId: main.conversationId, turnId: third.turnId, previousTurnId: second.turnId });
      expect(JSON.stringify(warnings)).to.not.match(/Becaus|What the file/);
      await turn('four', []);
      expect(await breaks(), 'once: the next turn is compared with this one').to.equal(1);
    });
  }

  it('may lose a call when its result was erased without a trace of the call', async () => {
    const entries = toolTurn();
    await turn('one', entries);
    await turn('two', []);
    await run(
      database.db,
      sql.unsafe`update mentor_entry set erased_at = now(), payload = null where id = ${entries[1]?.id ?? ''} returning 1`,
    );
    const { context } = await turn('three', []);
    expect(JSON.stringify(context.entries)).to.not.include('toolCall');
    expect(await breaks()).to.equal(0);
  });

  it('count another system prompt apart: a new version of the program is no broken path', async () => {
    await turn('one', toolTurn());
    const now = await begin(main, 'two');
    await buildContext(database.db, now.runId, { assistantName: 'Vulcan', watch });
    await watch.idle();
    expect([await breaks('system'), await breaks('path')]).to.deep.equal([1, 0]);
  });

  it('of a thread may get the answer to an older question before its parent', async () => {
    const running = await begin(main, 'one');
    const waiting = await ask(database.db, main.person, main.conversationId, { text: 'two' });
    const thread = await talkIn(database.db, { person: main.person, conversationId: await threadAt(main, waiting.entryId), hostId });
    await turn('in the thread', [piAnswer([text('yes')])], thread);
    await finish(main, running, toolTurn());
    const later = await turn('again', [], thread);
    expect(later.context.entries.map((entry) => (entry['message'] as { role: string }).role)).to.deep.equal([
      'user',
      'assistant',
      'toolResult',
      'assistant',
      'user',
      'user',
      'assistant',
    ]);
    expect(await breaks()).to.equal(0);
  });
});
