/**
 * Paths of any conversation, as properties: whatever was asked, stopped, failed, erased, noted or summarized, Pi reads one chain, a provider gets
 * no call without a result, no result without a call and no empty answer, and each path starts as the one before it.
 * rule: R13
 */
import { SessionManager } from '@earendil-works/pi-coding-agent';
import { expect } from 'chai';
import fc from 'fast-check';
import type { PathRow } from '../../db/context/read-path.ts';
import { renderPath } from '../../src/context/path.ts';
import { firstBreak, printOf } from '../../src/context/path-print.ts';
import type { PiEntry } from '../../src/contract/agent.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import { call, piAnswer, piNote, piResult, piSummary, piSystem, text } from '../support/pi-turns.ts';

/** What one turn does; numbers choose among what is there. */
const turnScript = fc.record({
  status: fc.constantFrom('DONE', 'DONE', 'DONE', 'STOPPED', 'FAILED'),
  reads: fc.integer({ min: 0, max: 3 }),
  callsAtOnce: fc.integer({ min: 1, max: 2 }),
  /** A stop may leave a call without its result, an answer without words, or nothing. */
  cut: fc.constantFrom('none', 'open call', 'empty answer', 'aborted', 'nothing'),
  summary: fc.constantFrom('none', 'none', 'none', 'before', 'within'),
  keeps: fc.option(fc.nat(), { nil: null }),
  system: fc.boolean(),
  note: fc.option(fc.nat(), { nil: null }),
  /** Erased before this turn is asked: how much of the row is left. */
  erase: fc.option(fc.tuple(fc.nat(), fc.boolean()), { nil: null }),
});
type TurnScript = typeof turnScript extends fc.Arbitrary<infer T> ? T : never;

const KIND = { assistant: 'ANSWER', toolResult: 'TOOL_RESULT', system: 'SYSTEM' } as const;

function kindOf(entry: PiEntry): PathRow['kind'] {
  if (entry.type !== 'message') return entry.type === 'compaction' ? 'SUMMARY' : 'EDIT';
  return KIND[(entry['message'] as { role: keyof typeof KIND }).role];
}

/** A conversation as the ledger would have it, turn by turn. */
class Conversation {
  readonly rows: PathRow[] = [];
  #calls = 0;

  #row(kind: PathRow['kind'], more: Partial<PathRow>): PathRow {
    const blank = {
      id: uuidv7(),
      turn_id: null,
      surface: 'app',
      text: null,
      payload: null,
      erased: false,
      edited_at: null,
      status: 'DONE',
    } as const;
    return { ...blank, kind, created_at: '2026-10-08T07:12:00.000Z', ...more };
  }

  /** What the ledger's statement reads: from what the newest summary keeps, else from the question of its turn. */
  read(): readonly PathRow[] {
    const summary = this.rows.findLast((row) => row.kind === 'SUMMARY' && !row.erased);
    if (!summary?.payload) return this.rows;
    const { firstKeptEntryId } = JSON.parse(summary.payload) as { firstKeptEntryId: string };
    const kept = this.rows.findIndex((row) => row.id === firstKeptEntryId && row.kind !== 'SUMMARY');
    return this.rows.slice(kept >= 0 ? kept : this.rows.findIndex((row) => row.turn_id === summary.turn_id));
  }

  ask(): PathRow {
    return this.#row('QUESTION', { turn_id: uuidv7(), text: 'Why?', status: 'RUNNING' });
  }

  /** Ends the turn of a question that was put after `this.rows`. */
  end(question: PathRow, script: TurnScript): void {
    const entries =
      script.status === 'FAILED'
        ? this.#entries(question, script).filter(({ type }) => type === 'compaction')
        : this.#entries(question, script);
    const status = script.status as 'DONE' | 'STOPPED' | 'FAILED';
    this.rows.push({ ...question, status });
    for (const entry of entries) {
      this.rows.push(this.#row(kindOf(entry), { id: entry.id, turn_id: question.turn_id, payload: JSON.stringify(entry), status }));
    }
  }

  erase([which, whole]: [number, boolean]): void {
    const at = which % Math.max(1, this.rows.length);
    const row = this.rows[at];
    if (!row || row.erased) return;
    const keepsPayload = !whole && (row.kind === 'ANSWER' || row.kind === 'TOOL_RESULT');
    this.rows[at] = { ...row, erased: true, text: null, payload: keepsPayload ? row.payload : null };
  }

  #entries(question: PathRow, { reads, callsAtOnce, cut, summary, keeps, system, note, status }: TurnScript): PiEntry[] {
    const stored = this.rows.filter((row) => row.kind !== 'SUMMARY' && row.kind !== 'EDIT');
    const kept = keeps === null ? null : (stored[keeps % Math.max(1, stored.length)]?.id ?? null);
    const entries: PiEntry[] = system ? [piSystem()] : [];
    if (summary === 'before') entries.push(piSummary(kept, entries.at(-1)?.id ?? this.rows.at(-1)?.id ?? null));
    for (let n = 0; n < reads; n++) {
      const ids = Array.from({ length: callsAtOnce }, () => `call_${this.#calls++ % 3}-${n}`);
      entries.push(piAnswer([text('Let me look.'), ...ids.map((id) => call(id))], 'toolUse'), ...ids.map((id) => piResult(id)));
    }
    if (summary === 'within') entries.push(piSummary(question.id, entries.at(-1)?.id ?? question.id));
    if (status === 'STOPPED' && cut === 'open call') entries.push(piAnswer([text('And'), call('open')], 'aborted'));
    else if (status === 'STOPPED' && cut === 'empty answer') entries.push(piAnswer([], 'aborted'));
    else if (status === 'STOPPED' && cut === 'aborted') entries.push(piAnswer([text('half')], 'aborted'));
    else if (status !== 'STOPPED' || cut !== 'nothing') entries.push(piAnswer([text('Because.')]));
    const results = this.rows.filter((row) => row.kind === 'TOOL_RESULT');
    const noted = note === null ? undefined : results[note % Math.max(1, results.length)];
    return noted ? [...entries, piNote(noted.id)] : entries;
  }
}

interface Sent {
  readonly role: string;
  readonly content: string | readonly { readonly type: string; readonly id?: string }[];
  readonly toolCallId?: string;
  readonly stopReason?: string;
}

/** Fails when a provider would refuse these messages. */
function expectAcceptable(messages: readonly Sent[]): void {
  let open = new Set<string>();
  for (const { role, content, toolCallId, stopReason } of messages) {
    if (role === 'toolResult') {
      expect(open.delete(String(toolCallId)), 'a result without its call').to.equal(true);
      continue;
    }
    if (role !== 'user' && role !== 'assistant') continue;
    expect([...open], 'a call without its result').to.deep.equal([]);
    expect(content, `an empty ${role} message`).to.not.have.length(0);
    if (role === 'assistant') {
      expect(stopReason, 'Pi would leave it out, and its results not').to.not.be.oneOf(['aborted', 'error']);
      open = new Set(
        (content as readonly { type: string; id?: string }[]).flatMap((block) => (block.type === 'toolCall' ? [String(block.id)] : [])),
      );
    }
  }
  expect([...open], 'a call without its result').to.deep.equal([]);
}

const plain: TurnScript = {
  ...{ status: 'DONE', reads: 0, callsAtOnce: 1, cut: 'none', summary: 'none', keeps: null, system: false, note: null, erase: null },
};
/** The second row, the answer without a word, is erased before the third question. */
const STOPPED_WITHOUT_A_WORD_AND_ERASED: TurnScript[] = [
  { ...plain, status: 'STOPPED', cut: 'empty answer' },
  plain,
  { ...plain, erase: [1, false] },
];

describe('the path of any conversation', function () {
  this.timeout(60_000);

  it('is one chain that Pi reads as it is, acceptable for a provider, and starts as the one before it', () => {
    fc.assert(
      fc.property(fc.array(turnScript, { maxLength: 12 }), (scripts) => {
        const talk = new Conversation();
        let before: ReturnType<typeof printOf> | null = null;
        for (const script of scripts) {
          if (script.erase) talk.erase(script.erase);
          const question = talk.ask();
          const path = renderPath([...talk.read(), question], 'UTC');
          const entries = path.entries.map(({ entry }) => entry);
          const manager = SessionManager.inMemory('/workspace/work', { id: 'spec' }, structuredClone(entries) as never);
          expect(manager.getBranch()).to.deep.equal(entries);
          const { messages } = manager.buildSessionContext();
          expectAcceptable(messages as unknown as Sent[]);
          expect(entries.at(-1)?.id, 'the question is the leaf').to.equal(question.id);
          const shown = new Set(messages.map((message) => JSON.stringify(message)));
          for (const entry of entries) {
            const { role } = (entry['message'] ?? {}) as { role?: string };
            const lost = role === 'user' && !shown.has(JSON.stringify(entry['message']));
            expect(lost, 'a question that Pi would drop without a word').to.equal(false);
          }
          const print = printOf(path, { timeZone: 'UTC', systemPrompt: '' });
          const declared = { erasedIds: new Set(path.erasedIds), addedIds: new Set<string>() };
          expect(before && firstBreak(before, print, declared), 'an undeclared change').to.equal(null);
          before = print;
          talk.end(question, script);
        }
      }),
      { numRuns: 400, examples: [[STOPPED_WITHOUT_A_WORD_AND_ERASED]] },
    );
  });
});
