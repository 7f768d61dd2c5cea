/**
 * Owns: what becomes of the results of read, bash and load_context (seed, "Tool results"): when a turn settles, those of older turns are
 * replaced by a note; in an end that is too large for the server, large ones of this turn are, too.
 * Does not own: results of other tools: they record what was shown and found, and stay.
 * Rule R13: an edit is appended and the stored result stays; each result is replaced once, so that the path keeps its bytes afterwards.
 */
import type { PiEntry } from '../src/contract/agent.ts';
import { LIMITS } from '../src/contract/limits.ts';
import { cutText } from '../src/kernel/text.ts';
import { RUNNER } from './config.ts';
import type { SessionEntry, SessionManager } from './pi.ts';
import { momentIn } from './times.ts';

type MessageEntry = Extract<SessionEntry, { type: 'message' }>;
type ToolResult = Extract<MessageEntry['message'], { role: 'toolResult' }>;
type ResultEntry = MessageEntry & { message: ToolResult };

/** Tools whose results are replaced, and the argument that says what was looked at. */
const NOTED: Readonly<Record<string, { readonly argument: string; readonly hint: string }>> = {
  read: { argument: 'path', hint: 'Read it again if you need it.' },
  bash: { argument: 'command', hint: 'Run it again if you need it.' },
  load_context: { argument: 'path', hint: 'Each turn has a new context folder: load it again if you need it.' },
};

/**
 * Appends an edit for each older result that is still verbatim on the path. `own`: ids of the entries of this turn, whose results stay.
 * An end takes a bounded number of entries: what does not fit is replaced by a later turn. Returns how many were replaced.
 */
export function noteOlderResults(manager: SessionManager, own: ReadonlySet<string>, timeZone: string): number {
  const branch = manager.getBranch();
  const edited = new Set(branch.flatMap((entry) => (entry.type === 'context_edit' ? [entry.targetId] : [])));
  const calls = callsIn(branch);
  const visible = manager.buildSessionProjection().entries.map((entry) => entry.sourceEntry);
  const older = visible.filter(isNoted).filter((entry) => !own.has(entry.id) && !edited.has(entry.id));
  older.length = Math.min(older.length, Math.max(0, LIMITS.entriesPerEndMax - own.size));
  for (const entry of older) manager.appendContextEdit(entry.id, { content: noteFor(entry, calls, timeZone) });
  return older.length;
}

/** The same entries with large results reduced to their notes, for a server that found the end too large. */
export function withNotedResults(entries: readonly PiEntry[], timeZone: string): PiEntry[] {
  const own = entries as unknown as SessionEntry[];
  const calls = callsIn(own);
  return own.map((entry) => {
    if (!isNoted(entry) || charsOf(entry.message) <= RUNNER.toolResultKeptChars) return entry as unknown as PiEntry;
    const content = [{ type: 'text' as const, text: noteFor(entry, calls, timeZone) }];
    return { ...entry, message: { ...entry.message, content } } as unknown as PiEntry;
  });
}

function isNoted(entry: SessionEntry): entry is ResultEntry {
  return entry.type === 'message' && entry.message.role === 'toolResult' && Object.hasOwn(NOTED, entry.message.toolName);
}

/** What the model wrote for each call, by the call's id. */
function callsIn(entries: readonly SessionEntry[]): ReadonlyMap<string, Readonly<Record<string, unknown>>> {
  const calls = new Map<string, Readonly<Record<string, unknown>>>();
  for (const entry of entries) {
    if (entry.type !== 'message' || entry.message.role !== 'assistant') continue;
    for (const block of entry.message.content) if (block.type === 'toolCall') calls.set(block.id, block.arguments);
  }
  return calls;
}

/** `[Result of read INDEX.md from Mon 2026-10-12 14:41 +02:00 was removed. Read it again if you need it.]` */
function noteFor(entry: ResultEntry, calls: ReturnType<typeof callsIn>, timeZone: string): string {
  const { toolName, toolCallId } = entry.message;
  const noted = NOTED[toolName];
  const argument = calls.get(toolCallId)?.[noted?.argument ?? ''];
  const what = typeof argument === 'string' ? ` ${shortened(argument)}` : '';
  return `[Result of ${toolName}${what} from ${momentIn(entry.timestamp, timeZone)} was removed. ${noted?.hint ?? ''}]`;
}

/** One line, bounded. */
function shortened(argument: string): string {
  const line = argument.replaceAll(/\s+/g, ' ').trim();
  const cut = cutText(line, RUNNER.noteSubjectMaxChars);
  return cut === line ? line : `${cut}…`;
}

function charsOf(message: ToolResult): number {
  return message.content.reduce((sum, block) => sum + (block.type === 'text' ? block.text.length : block.data.length), 0);
}
