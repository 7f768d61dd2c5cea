/**
 * Turns written straight through the ledger, with entries as Pi writes them: for specs about what a later turn reads.
 */
import { deriveEntries } from '../../actors/conversation/pi-entries.ts';
import { loadConversation } from '../../db/ledger/conversation.ts';
import { endTurn } from '../../db/ledger/end-turn.ts';
import { stopTurn } from '../../db/ledger/stop.ts';
import type { Database } from '../../db/pool.ts';
import { sql } from '../../db/pool.ts';
import type { PiEntry } from '../../src/contract/agent.ts';
import { type ConversationId, type EntryId, type HostId, type RunId, type SandboxId, type TurnId, uuidv7 } from '../../src/kernel/ids.ts';
import { ask, claimOne, makeSandbox, type Person, run, TIMES } from './ledger.ts';

const USAGE = {
  input: 900,
  output: 40,
  cacheRead: 0,
  cacheWrite: 0,
  totalTokens: 940,
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
};

function entry(type: string, more: Record<string, unknown>): PiEntry {
  return { type, id: uuidv7(), parentId: null, timestamp: new Date().toISOString(), ...more };
}

export const text = (words: string) => ({ type: 'text', text: words });
export const call = (id: string, args: Record<string, unknown> = { path: 'INDEX.md' }) => ({
  type: 'toolCall',
  id,
  name: 'read',
  arguments: args,
});

export function piAnswer(content: readonly unknown[], stopReason = 'stop'): PiEntry {
  const from = { api: 'openai-completions', provider: 'heph', model: 'model-of-the-spec', usage: USAGE };
  return entry('message', { message: { role: 'assistant', content, ...from, stopReason, timestamp: Date.now() } });
}

export function piResult(toolCallId: string, words = 'What the file says.'): PiEntry {
  const message = { role: 'toolResult', toolCallId, toolName: 'read', content: [text(words)], isError: false, timestamp: Date.now() };
  return entry('message', { message });
}

export function piSystem(words = 'You are Heph.'): PiEntry {
  return entry('message', { message: { role: 'system', content: words, timestamp: Date.now() } });
}

/** A note that replaces what an earlier tool answered. */
export function piNote(targetId: string, words = '[read INDEX.md: read it again]'): PiEntry {
  return entry('context_edit', { targetId, replacement: { content: words } });
}

/** `after`: what stood before it in the session. */
export function piSummary(firstKeptEntryId: string | null, after: string | null = null, summary = 'What was said before.'): PiEntry {
  const made = entry('compaction', { parentId: after, summary, tokensBefore: 50_000 });
  return {
    ...made,
    firstKeptEntryId: firstKeptEntryId ?? made.id,
    fromHook: true,
    systemMessage: { role: 'system', content: 'You are Heph.', timestamp: 1 },
  };
}

/** One read and an answer. */
export function toolTurn(words = 'Because.', result = 'What the file says.'): PiEntry[] {
  const id = `call_${uuidv7().slice(-12)}`;
  return [piAnswer([text('Let me look.'), call(id)], 'toolUse'), piResult(id, result), piAnswer([text(words)])];
}

/** A conversation that a spec writes turn by turn. */
export interface Talk {
  readonly db: Database;
  readonly person: Person;
  readonly conversationId: ConversationId;
  readonly sandboxId: SandboxId;
}

export interface Told {
  readonly turnId: TurnId;
  readonly entryId: EntryId;
  readonly runId: RunId;
}

export async function talkIn(db: Database, at: { person: Person; conversationId: ConversationId; hostId: HostId }): Promise<Talk> {
  const sandbox = await makeSandbox(db, at.person, at.conversationId, at.hostId);
  return { db, person: at.person, conversationId: at.conversationId, sandboxId: sandbox.id };
}

/** A question that is running now. */
export async function begin(talk: Talk, words = 'Why?'): Promise<Told & { readonly epoch: number }> {
  const asked = await ask(talk.db, talk.person, talk.conversationId, { text: words });
  return claim(talk, asked);
}

/** Claims the conversation's next turn, which must be `asked`. */
export async function claim(talk: Talk, { turnId, entryId, runId }: Told): Promise<Told & { readonly epoch: number }> {
  const grant = await claimOne(talk.db, talk.conversationId, talk.sandboxId);
  if (grant?.runId !== runId) throw new Error('another turn, or none, was claimed');
  return { turnId, entryId, runId, epoch: grant.epoch };
}

/** What a loop ends a turn with; DONE when it is not said. */
export type Written = readonly PiEntry[] | { readonly entries: readonly PiEntry[]; readonly outcome: 'DONE' | 'FAILED' | 'STOPPED' };

/** Ends a running turn as the server does when its loop ends it. */
export async function finish(talk: Talk, turn: Told & { readonly epoch: number }, written: Written): Promise<void> {
  const { entries, outcome } = 'outcome' in written ? written : { entries: written, outcome: 'DONE' };
  const { db, conversationId, sandboxId } = talk;
  const versionNow = async () => (await loadConversation(db, conversationId))?.version ?? 0;
  if (outcome === 'STOPPED') {
    await stopTurn(db, { conversationId, version: await versionNow(), turnId: turn.turnId, graceMs: TIMES.graceMs });
  }
  const derived = deriveEntries(entries, outcome === 'FAILED');
  if (derived.kind === 'refused') throw new Error(derived.why);
  const error = outcome === 'FAILED' ? { code: 'ERROR', text: 'It failed.', detail: null } : null;
  const key = { runId: turn.runId, epoch: turn.epoch, sandboxId, conversationId, version: await versionNow() };
  const done = await endTurn(db, { ...key, status: error ? 'FAILED' : 'DONE', error, entries: derived.entries });
  if (!done) throw new Error('the end wrote nothing');
}

/** A whole turn. */
export async function tell(talk: Talk, words: string, written: Written): Promise<Told> {
  const turn = await begin(talk, words);
  await finish(talk, turn, written);
  return turn;
}

/** A thread of the talk's conversation at one of its entries. */
export async function threadAt(talk: Talk, entryId: string): Promise<ConversationId> {
  const id = uuidv7<'conversation'>();
  const { workspaceId, accountId } = talk.person;
  await run(
    talk.db,
    sql.unsafe`insert into mentor_conversation (id, workspace_id, account_id, parent_conversation_id, parent_entry_id)
      values (${id}, ${workspaceId}, ${accountId}, ${talk.conversationId}, ${entryId}) returning 1`,
  );
  return id;
}
