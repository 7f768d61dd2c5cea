/**
 * Which rows a path reads: order, summaries, threads, bounds; and that Pi reads what we render as we meant it.
 * rule: R13
 */
import { SessionManager } from '@earendil-works/pi-coding-agent';
import { expect } from 'chai';
import { readPath } from '../../db/context/read-path.ts';
import { reconcileSlots } from '../../db/ledger/slots.ts';
import { sql } from '../../db/pool.ts';
import { buildContext } from '../../src/context/build.ts';
import { buildPath } from '../../src/context/path.ts';
import type { PiEntry } from '../../src/contract/agent.ts';
import { LIMITS } from '../../src/contract/limits.ts';
import type { RunId } from '../../src/kernel/ids.ts';
import { useDatabase } from '../support/database.ts';
import { ask, emptyLedger, makeHost, makeMain, makePerson, run } from '../support/ledger.ts';
import {
  begin,
  claim,
  finish,
  piAnswer,
  piNote,
  piSummary,
  piSystem,
  type Talk,
  talkIn,
  tell,
  text,
  threadAt,
  toolTurn,
} from '../support/pi-turns.ts';

describe('the rows of a path', () => {
  const database = useDatabase();
  let main: Talk;
  let hostId: Awaited<ReturnType<typeof makeHost>>;

  beforeEach(async () => {
    await emptyLedger(database.db);
    await reconcileSlots(database.db, 4);
    const person = await makePerson(database.db);
    hostId = await makeHost(database.db);
    main = await talkIn(database.db, { person, conversationId: await makeMain(database.db, person), hostId });
  });

  async function openThread(entryId: string): Promise<Talk> {
    const conversationId = await threadAt(main, entryId);
    return talkIn(database.db, { person: main.person, conversationId, hostId });
  }

  async function rowsOf(runId: RunId, maxBytes: number = LIMITS.pathMaxBytes) {
    const read = await readPath(database.db, runId, maxBytes);
    if (read.kind === 'too-long') throw new Error('too long');
    return read.rows;
  }

  async function pathOf(runId: RunId): Promise<PiEntry[]> {
    return buildPath((await rowsOf(runId)).slice(0, -1), 'UTC');
  }

  /** What a model would be sent, as words. */
  function projected(path: readonly PiEntry[]): string[] {
    const manager = SessionManager.inMemory('/workspace/work', { id: 'spec' }, structuredClone(path) as never);
    expect(manager.getBranch(), 'one chain: Pi drops what is above a missing parent').to.deep.equal(path);
    return manager.buildSessionContext().messages.map((message) => {
      const said = message as unknown as { role: string; summary?: string; content?: unknown };
      const words =
        said.summary ??
        (typeof said.content === 'string'
          ? said.content
          : (said.content as { text?: string; type: string }[]).map((block) => block.text ?? block.type).join('|'));
      return `${said.role}: ${words.replace(/^\[[^\]]*\]\n/, '')}`;
    });
  }

  const said = (words: string) => [piAnswer([text(words)])];

  it('groups entries by turn: a question that waited stands behind the answer before it', async () => {
    const first = await begin(main, 'one');
    const second = await ask(database.db, main.person, main.conversationId, { text: 'two' });
    await finish(main, first, said('1'));
    await finish(main, await claim(main, second), said('2'));
    const now = await begin(main, 'three');
    expect(projected(await pathOf(now.runId))).to.deep.equal(['user: one', 'assistant: 1', 'user: two', 'assistant: 2']);
    expect((await rowsOf(now.runId)).at(-1)?.id).to.equal(now.entryId);
  });

  it('leaves out questions that wait behind the run', async () => {
    const now = await begin(main, 'one');
    await ask(database.db, main.person, main.conversationId, { text: 'two' });
    expect((await rowsOf(now.runId)).map((row) => row.text)).to.deep.equal(['one']);
  });

  it('starts at the newest summary, with what the summary keeps and what came later', async () => {
    await tell(main, 'one', said('1'));
    const two = await tell(main, 'two', said('2'));
    await tell(main, 'three', [piSummary(two.entryId, 'an older entry'), ...said('3')]);
    const now = await begin(main, 'four');
    const path = await pathOf(now.runId);
    expect(path[0]?.id, 'nothing older is read').to.equal(two.entryId);
    expect(projected(path)).to.deep.equal([
      'system: You are Heph.',
      'compactionSummary: What was said before.',
      'user: two',
      'assistant: 2',
      'user: three',
      'assistant: 3',
    ]);
  });

  it('keeps the question of a summary that keeps nothing older, and drops what an even older summary said', async () => {
    const one = await tell(main, 'one', said('1'));
    await tell(main, 'two', [piSummary(one.entryId, 'an older entry', 'The older one.'), ...said('2')]);
    await tell(main, 'three', [piSummary(null, 'an older entry', 'The newer one.'), ...said('3')]);
    const now = await begin(main, 'four');
    expect(projected(await pathOf(now.runId)).slice(1)).to.deep.equal(['compactionSummary: The newer one.', 'user: three', 'assistant: 3']);
  });

  it('has the summary of a failed turn, and its question with the mark', async () => {
    const one = await tell(main, 'one', said('1'));
    await tell(main, 'two', { entries: [piSummary(one.entryId, 'an older entry'), ...said('never stored')], outcome: 'FAILED' });
    const now = await begin(main, 'three');
    const path = projected(await pathOf(now.runId));
    expect(path.slice(1)).to.deep.equal([
      'compactionSummary: What was said before.',
      'user: one',
      'assistant: 1',
      'user: two\n\n[no answer: the turn failed]',
    ]);
  });

  it('falls back to the older summary, or to the beginning, when a summary is erased', async () => {
    const one = await tell(main, 'one', said('1'));
    await tell(main, 'two', [piSummary(one.entryId, 'an older entry'), ...said('2')]);
    await run(database.db, sql.unsafe`update mentor_entry set erased_at = now(), payload = null where kind = 'SUMMARY' returning 1`);
    const now = await begin(main, 'three');
    expect(projected(await pathOf(now.runId))).to.deep.equal(['user: one', 'assistant: 1', 'user: two', 'assistant: 2']);
  });

  it('finds the start of what a summary keeps also when that question was erased', async () => {
    const one = await tell(main, 'one', said('1'));
    await tell(main, 'two', [piSummary(one.entryId, 'an older entry'), ...said('2')]);
    await run(
      database.db,
      sql.unsafe`update mentor_entry set erased_at = now(), text = null, search_text = null where id = ${one.entryId} returning 1`,
    );
    const now = await begin(main, 'three');
    expect(projected(await pathOf(now.runId)).slice(2)).to.deep.equal(['user: [erased]', 'assistant: 1', 'user: two', 'assistant: 2']);
  });

  it('keeps from the next message when the first kept one is gone: nothing is dropped without a word', async () => {
    const answer = piAnswer([text('1')]);
    await tell(main, 'one', [answer]);
    await tell(main, 'two', [piSummary(answer.id, 'an older entry'), ...said('2')]);
    await run(
      database.db,
      sql.unsafe`update mentor_entry set erased_at = now(), text = null, search_text = null, payload = null where id = ${answer.id} returning 1`,
    );
    const now = await begin(main, 'three');
    expect(projected(await pathOf(now.runId)).slice(1)).to.deep.equal([
      'compactionSummary: What was said before.',
      'user: two',
      'assistant: 2',
    ]);
  });

  it('reads a summary whose words hold a NUL or a lone surrogate, and one that names no uuid', async () => {
    const one = await tell(main, 'one', said('1'));
    await tell(main, 'two', [piSummary(one.entryId, 'an older entry', 'NUL \u0000 and \ud800 and "firstKeptEntryId":"x"'), ...said('2')]);
    expect(projected(await pathOf((await begin(main, 'three')).runId))[2]).to.equal('user: one');
    await run(
      database.db,
      sql.unsafe`update mentor_entry set payload = replace(payload::text, ${one.entryId}, 'zz')::json where kind = 'SUMMARY' returning 1`,
    );
    const [{ id } = { id: '' }] = await run(database.db, sql.unsafe`select r.id from agent_run r where r.state = 'LEASED'`);
    expect(projected(await pathOf(id as RunId)).slice(2)).to.deep.equal(['user: two', 'assistant: 2']);
  });

  it('of a thread has the main conversation up to and including its parent, then the thread’s own', async () => {
    await tell(main, 'one', said('1'));
    const answer = piAnswer([text('2')]);
    await tell(main, 'two', [...toolTurn('first').slice(0, 2), answer, piSystem('after')]);
    const thread = await openThread(answer.id);
    await tell(main, 'three', said('3'));
    await tell(thread, 'in the thread', said('yes'));
    const now = await begin(thread, 'and?');
    expect(projected(await pathOf(now.runId))).to.deep.equal([
      'user: one',
      'assistant: 1',
      'user: two',
      'assistant: Let me look.|toolCall',
      'toolResult: What the file says.',
      'assistant: 2',
      'user: in the thread',
      'assistant: yes',
    ]);
  });

  it('of a thread in the middle of an answer has no call without its result', async () => {
    const entries = toolTurn();
    await tell(main, 'one', entries);
    const now = await begin(await openThread((entries[0] as PiEntry).id), 'what?');
    expect(projected(await pathOf(now.runId))).to.deep.equal(['user: one', 'assistant: Let me look.']);
  });

  it('of a thread starts at the newest summary at or before its parent, not at a later one', async () => {
    const one = await tell(main, 'one', said('1'));
    const answer = piAnswer([text('2')]);
    await tell(main, 'two', [piSummary(one.entryId, 'an older entry', 'Before.'), answer]);
    await tell(main, 'three', [piSummary(null, 'an older entry', 'Too late.'), ...said('3')]);
    const now = await begin(await openThread(answer.id), 'what?');
    expect(projected(await pathOf(now.runId)).slice(1)).to.deep.equal([
      'compactionSummary: Before.',
      'user: one',
      'assistant: 1',
      'user: two',
      'assistant: 2',
    ]);
  });

  it('of a thread starts at a later summary of its own, which may keep from the main conversation or from the thread', async () => {
    await tell(main, 'one', said('1'));
    const answer = piAnswer([text('2')]);
    await tell(main, 'two', [answer]);
    const thread = await openThread(answer.id);
    await tell(thread, 'a', [piSummary(answer.id, answer.id, 'Own.'), ...said('A')]);
    const keepsMain = await begin(thread, 'b');
    expect(projected(await pathOf(keepsMain.runId)).slice(1)).to.deep.equal([
      'compactionSummary: Own.',
      'assistant: 2',
      'user: a',
      'assistant: A',
    ]);
    await finish(thread, keepsMain, [piSummary(keepsMain.entryId, keepsMain.entryId, 'Later.'), ...said('B')]);
    const keepsOwn = await begin(thread, 'c');
    expect(projected(await pathOf(keepsOwn.runId)).slice(1)).to.deep.equal(['compactionSummary: Later.', 'user: b', 'assistant: B']);
    expect(
      (await rowsOf(keepsOwn.runId)).some((row) => row.id === answer.id),
      'the main conversation is not read',
    ).to.equal(false);
  });

  it('keeps its notes: a result that was replaced stays replaced in Pi’s own eyes', async () => {
    const entries = toolTurn('Because.', 'long and secret');
    const note = piNote((entries[1] as PiEntry).id);
    await tell(main, 'one', [...entries, note]);
    const now = await begin(main, 'two');
    expect(projected(await pathOf(now.runId))[2]).to.equal('toolResult: [read INDEX.md: read it again]');
    expect(JSON.stringify(await pathOf(now.runId))).to.not.include('long and secret');
  });

  it('is given out at its bound and not one byte over it; a turn over it fails with a clear reason', async () => {
    await tell(main, 'one', said('1'));
    const now = await begin(main, 'two');
    const [{ bytes } = { bytes: 0 }] = await run(
      database.db,
      sql.unsafe`select sum(octet_length(coalesce(payload::text, text)))::int as bytes from mentor_entry`,
    );
    expect((await readPath(database.db, now.runId, Number(bytes))).kind).to.equal('path');
    expect(await readPath(database.db, now.runId, Number(bytes) - 1)).to.deep.equal({ kind: 'too-long', bytes: Number(bytes) });
    const options = { assistantName: 'Heph', pathMaxBytes: Number(bytes) };
    expect(await buildContext(database.db, now.runId, options)).to.have.property('prompt');
    expect(await buildContext(database.db, now.runId, { ...options, pathMaxBytes: Number(bytes) - 1 })).to.equal('too-long');
  });
});
