/**
 * Owns: the words of the demo model. The same question and the same files give the same answer.
 * Does not own: the wire and the pace (demo-provider.ts).
 */
import { cutText } from '../../kernel/text.ts';

const COUNT_MAX = 500;
const FILES_MAX = 12;
const QUOTE_MAX_CHARS = 300;
const COUNT = /\bcount (?:up )?to (\d{1,9})\b/i;
const FILE = /[\w./-]*\w\.(?:jsonl?|md|txt|csv)\b/g;

/** What it answers to a request for a summary. */
export const DEMO_SUMMARY =
  'So far, the built-in demo model of Heph answered the questions of this conversation. It keeps no details of them.';

/** The answer in the pieces in which it is streamed. `index`: what reading INDEX.md gave. */
export function demoAnswer(question: string, index: string | null): readonly string[] {
  const count = COUNT.exec(question)?.[1];
  if (count !== undefined) return countPieces(question, Number(count));
  return words(`${introduction(question)}\n\n${filesLine(index)}\n\n${HOW_TO_CONFIGURE}`);
}

const HOW_TO_CONFIGURE = `For real answers, configure a provider and start Heph again:

- \`HEPH_LLM_API\`: openai-completions, openai-responses or anthropic-messages
- \`HEPH_LLM_BASE_URL\`: the provider's address
- \`HEPH_LLM_API_KEY\`: its key
- \`HEPH_LLM_MODEL\`: the model's name`;

function introduction(question: string): string {
  const quote = cutText(question, QUOTE_MAX_CHARS);
  const lines = `${quote}${quote.length < question.length ? '…' : ''}`.split('\n').map((line) => `> ${line}`.trimEnd());
  return `I am the demo model of Heph: I understand nothing, and I answer the same way each time. You asked:\n\n${lines.join('\n')}`;
}

function filesLine(index: string | null): string {
  const files = [...new Set(index?.match(FILE) ?? [])].filter((file) => !file.endsWith('INDEX.md'));
  if (files.length === 0) return 'I looked at `INDEX.md` for files to read and found none.';
  const shown = files.slice(0, FILES_MAX).map((file) => `\`${file}\``);
  const more = files.length > shown.length ? `, and ${files.length - shown.length} more` : '';
  return `\`INDEX.md\` lists these files: ${shown.join(', ')}${more}.`;
}

/** One numbered line a piece: long enough to stop it, or to ask something while it runs. */
function countPieces(question: string, count: number): readonly string[] {
  const last = Math.min(count, COUNT_MAX);
  const bound = count > COUNT_MAX ? ` I stop at ${COUNT_MAX}.` : '';
  const lines = Array.from({ length: last }, (_, index) => `${index + 1}. This is line ${index + 1} of ${last}.\n`);
  return [...words(`${introduction(question)}\n\n`), ...words(`So I count.${bound}\n\n`), ...lines];
}

/** Pieces of a few words; joined they are the text. */
function words(text: string): readonly string[] {
  return text.match(/(?:\S+\s*){1,3}/g) ?? [];
}
