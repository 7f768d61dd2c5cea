/**
 * Owns: a conversation as Markdown, written piece by piece, with times in the zone of the account.
 * No message can swallow or forge what comes after it: a question is a quotation, and what an answer leaves open is closed.
 */
import type { ExportedEntry, ExportHead } from '../../../db/web/read-export.ts';

const FENCE = /^ {0,3}(`{3,}(?=[^`]*$)|~{3,})/;
/** Beginnings of HTML that go on over blank lines until their own end. The page shows HTML as words; so does a reader of this. */
const OPEN_HTML = /^( {0,3})<(?=script|pre|style|textarea|!--|\?|!\[CDATA\[|![a-z])/i;

/** The words of an answer so that they end where they end. */
export function contained(markdown: string): string {
  let fence: string | null = null;
  const lines = markdown.split('\n').map((line) => {
    const mark = FENCE.exec(line)?.[1];
    if (fence === null) {
      fence = mark ?? null;
      return line.replace(OPEN_HTML, '$1\\<');
    }
    const closes = mark?.startsWith(fence) === true && line.trim() === mark;
    if (closes) fence = null;
    return line;
  });
  return [...lines, ...(fence === null ? [] : [fence])].join('\n');
}

function quoted(text: string): string {
  return text
    .split(/\r\n|\r|\n/)
    .map((line) => `> ${line}`.trimEnd())
    .join('\n');
}

/** `2026-10-08 09:12` in a time zone; in UTC, and saying so, when nobody knows the zone. */
export function localTimes(timeZone: string): { zone: string; of(iso: string): string } {
  const options = { dateStyle: 'short', timeStyle: 'short' } as const;
  const make = (zone: string) => new Intl.DateTimeFormat('sv-SE', { ...options, timeZone: zone });
  try {
    const formatter = make(timeZone);
    return { zone: timeZone, of: (iso) => formatter.format(Date.parse(iso)) };
  } catch {
    const formatter = make('UTC');
    return { zone: 'UTC', of: (iso) => formatter.format(Date.parse(iso)) };
  }
}

/** What the page says beside a message, as a line of its own; null when there is nothing to say. */
function remarkOf({ entry, turn }: ExportedEntry): string | null {
  if (entry.kind === 'answer') return turn?.status === 'STOPPED' ? '*Stopped.*' : null;
  if (turn?.status === 'FAILED') return `*No answer: ${turn.error?.text ?? ''}*`;
  if (turn?.status === 'QUEUED' || turn?.status === 'RUNNING') return '*Not answered yet.*';
  return null;
}

function wordsOf({ entry }: ExportedEntry): string {
  if (entry.erasedAt !== null) return '*This message was deleted.*';
  return entry.kind === 'question' ? quoted(entry.text) : contained(entry.text);
}

const WHO = { question: 'You', digest: 'Weekly digest', answer: null } as const;

/** A name as plain words of a heading. */
function plain(name: string): string {
  return name.replaceAll(/\s+/g, ' ').replaceAll(/[\\`*_[\]<>#|~]/g, String.raw`\$&`);
}

/** Pieces of one Markdown document. */
export async function* exportMarkdown(
  head: ExportHead,
  pages: AsyncIterable<readonly ExportedEntry[]>,
  assistantName: string,
): AsyncGenerator<string> {
  const times = localTimes(head.timeZone);
  const about = `${plain(head.displayName)} · ${plain(head.workspaceName)} · ${times.of(head.exportedAt)} · times in ${times.zone}`;
  yield `# Conversation with ${plain(assistantName)}\n\n${about}\n`;
  for await (const page of pages) {
    let piece = '';
    for (const item of page) {
      const { kind, createdAt, surface } = item.entry;
      const from = surface === 'slack' ? ' · from Slack' : '';
      const remark = remarkOf(item);
      piece += `\n## ${WHO[kind] ?? plain(assistantName)} · ${times.of(createdAt)}${from}\n\n${wordsOf(item)}\n`;
      if (remark !== null) piece += `\n${remark}\n`;
    }
    yield piece;
  }
}
