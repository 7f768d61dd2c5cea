/**
 * An independent model of what a turn's model requests hold, written from the seed's sentences ("The path", "Tool results", "Compaction") and
 * not from the product: it knows what was asked, answered, stopped, failed and erased, and says each message that a provider must receive.
 */
export interface Told {
  readonly question: string;
  /** Epoch milliseconds of the stored question. */
  askedAtMs: number;
  outcome: 'DONE' | 'STOPPED' | 'FAILED' | 'RUNNING';
  answer: string | null;
  /** The result of the one call that the turn made, as its own next request had it. */
  result: string | null;
  isQuestionErased: boolean;
  isAnswerErased: boolean;
}

/** A message as a provider sees it, in one line. */
export type Line = string;

const CHARS_PER_TOKEN = 4;
const CALL = 'read {"path":"INDEX.md"}';
export const NOTE = 'user-result: [note of INDEX.md]';

/** `[Thu 2026-10-08 09:12 Europe/Berlin]` */
export function prefixOf(askedAtMs: number, timeZone: string): string {
  const parts = new Intl.DateTimeFormat('en-GB', {
    timeZone,
    weekday: 'short',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
  }).formatToParts(askedAtMs);
  const part = (type: string): string => parts.find((one) => one.type === type)?.value ?? '';
  return `[${part('weekday')} ${part('year')}-${part('month')}-${part('day')} ${part('hour')}:${part('minute')} ${timeZone}]`;
}

/** What one turn leaves on the path. `isLatest`: its results stay verbatim, since no turn has settled after it. */
export function linesOf(told: Told, isLatest: boolean, timeZone: string): Line[] {
  const words = told.isQuestionErased ? '[erased]' : told.question;
  const failed = told.outcome === 'FAILED' ? '\n\n[no answer: the turn failed]' : '';
  const lines = [`user: ${prefixOf(told.askedAtMs, timeZone)}\n${words}${failed}`];
  if (told.result !== null) lines.push(`assistant: ${CALL}`, isLatest ? `user-result: ${told.result}` : NOTE);
  if (told.outcome === 'STOPPED') lines.push(`assistant: ${told.answer}\n\n[stopped by the developer]`);
  else if (told.answer !== null) lines.push(`assistant: ${told.isAnswerErased ? '[erased]' : told.answer}`);
  return lines;
}

/** The messages of consecutive turns; the last of them is the one that runs. */
export function pathOf(turns: readonly Told[], timeZone: string): Line[] {
  return turns.flatMap((told, at) => linesOf(told, at >= turns.length - 2, timeZone));
}

/**
 * How many of these messages a summary takes: recent ones are kept up to the target, a message whole, a call with its result.
 * `noteChars`: length of a note, which `NOTE` stands for.
 */
export function summarisedCount(lines: readonly Line[], targetTokens: number, noteChars: number): number {
  let tokens = 0;
  for (let at = lines.length - 1; at > 0; at--) {
    const line = lines[at] as Line;
    const chars = line === NOTE ? noteChars : line.slice(line.indexOf(': ') + 2).length;
    tokens += Math.ceil(chars / CHARS_PER_TOKEN);
    if (tokens >= targetTokens) return line.startsWith('user-result') ? at + 1 : at;
  }
  return 0;
}

interface WireMessage {
  readonly role: string;
  readonly content: unknown;
  readonly tool_calls?: readonly { readonly function: { readonly name: string; readonly arguments: string } }[];
}

const NOTE_PATTERN =
  /^\[Result of read INDEX\.md from [A-Z][a-z]{2} \d{4}-\d\d-\d\d \d\d:\d\d [+-]\d\d:\d\d was removed\. Read it again if you need it\.\]$/;

function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  return Array.isArray(content) ? content.map((part: { text?: string }) => part.text ?? '').join('') : '';
}

/** A message of the wire as a line. */
export function lineOf(message: WireMessage): Line {
  const text = textOf(message.content);
  if (message.role === 'tool') return NOTE_PATTERN.test(text) ? NOTE : `user-result: ${text}`;
  const calls = (message.tool_calls ?? []).map((call) => `${call.function.name} ${call.function.arguments}`);
  return `${message.role}: ${[text, ...calls].filter(Boolean).join(' ')}`;
}

/** The messages of a request on the path: without the system prompt before them and the situation after them. */
export function requestLines(body: { messages: readonly WireMessage[] }): { lines: Line[]; system: string; situation: string } {
  const [system, ...rest] = body.messages;
  const situation = rest.pop();
  return { lines: rest.map(lineOf), system: textOf(system?.content), situation: textOf(situation?.content) };
}
