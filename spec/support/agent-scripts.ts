/**
 * Owns: what a model answers in the runner's specs, byte by byte where it matters, archives of documents, and reading what was sent.
 * Does not own: the server that sends it (fake-agent-server.ts).
 */
import type { ServerResponse } from 'node:http';
import type { PiEntry } from '../../src/contract/agent.ts';

const TAR_BLOCK = 512;

/** Starts the stream of a model answer and returns how to write one event. */
export function openStream(response: ServerResponse): (event: object) => void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  return (event) => {
    const type = 'type' in event ? `event: ${String(event.type)}\n` : '';
    response.write(`${type}data: ${JSON.stringify(event)}\n\n`);
  };
}

/** Events of OpenAI's chat completions. */
export const openai = {
  words: (content: string) => ({ id: 'c', choices: [{ index: 0, delta: { content }, finish_reason: null }] }),
  tool: (name: string, args: object, id = 'call_1') => ({
    id: 'c',
    choices: [
      {
        index: 0,
        delta: { tool_calls: [{ index: 0, id, type: 'function', function: { name, arguments: JSON.stringify(args) } }] },
        finish_reason: null,
      },
    ],
  }),
  finish: (reason: string) => ({ id: 'c', choices: [{ index: 0, delta: {}, finish_reason: reason }] }),
  usage: (total = 110) => ({ id: 'c', choices: [], usage: { prompt_tokens: total - 10, completion_tokens: 10, total_tokens: total } }),
};

/** A whole OpenAI answer of words, with the usage chunk that has no choices. */
export function streamWords(response: ServerResponse, words: readonly string[]): void {
  const send = openStream(response);
  for (const word of words) send(openai.words(word));
  send(openai.finish('stop'));
  send(openai.usage());
  response.end('data: [DONE]\n\n');
}

/** A whole OpenAI answer that calls one tool. */
export function streamTool(response: ServerResponse, name: string, args: object): void {
  const send = openStream(response);
  send(openai.tool(name, args));
  send(openai.finish('tool_calls'));
  send(openai.usage());
  response.end('data: [DONE]\n\n');
}

/** A whole Anthropic answer of words. */
export function streamAnthropic(response: ServerResponse, words: readonly string[]): void {
  const send = openStream(response);
  send({
    type: 'message_start',
    message: { id: 'm', type: 'message', role: 'assistant', content: [], usage: { input_tokens: 100, output_tokens: 1 } },
  });
  send({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } });
  for (const text of words) send({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } });
  send({ type: 'content_block_stop', index: 0 });
  send({ type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 10 } });
  send({ type: 'message_stop' });
  response.end();
}

/** A whole answer of the Responses API. */
export function streamResponses(response: ServerResponse, words: readonly string[]): void {
  const send = openStream(response);
  const at = { output_index: 0, item_id: 'm', content_index: 0 };
  send({ type: 'response.created', response: { id: 'r' } });
  send({ type: 'response.output_item.added', output_index: 0, item: { type: 'message', id: 'm', role: 'assistant', content: [] } });
  send({ type: 'response.content_part.added', ...at, part: { type: 'output_text', text: '', annotations: [] } });
  for (const delta of words) send({ type: 'response.output_text.delta', ...at, delta });
  const content = [{ type: 'output_text', text: words.join(''), annotations: [] }];
  send({
    type: 'response.output_item.done',
    output_index: 0,
    item: { type: 'message', id: 'm', role: 'assistant', status: 'completed', content },
  });
  send({
    type: 'response.completed',
    response: { id: 'r', status: 'completed', usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 } },
  });
  response.end();
}

/**
 * Question and answer of an earlier turn as the ledger gives them; turns count from 1 and follow one another. `tokens`: what the provider
 * counted for the answer and all before it; 0 for one that did not tell.
 */
export function storedTurn(turn: number, answer: string, tokens = 2): PiEntry[] {
  const timestamp = new Date(Date.UTC(2026, 9, 8, 7, turn)).toISOString();
  const usage = {
    input: tokens,
    output: 0,
    cacheRead: 0,
    cacheWrite: 0,
    totalTokens: tokens,
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
  };
  const question = { role: 'user', content: `Question ${turn}?`, timestamp: turn };
  const content = [{ type: 'text', text: answer }];
  const answered = {
    role: 'assistant',
    content,
    api: 'openai-completions',
    provider: 'heph',
    model: 'everyday',
    stopReason: 'stop',
    timestamp: turn,
    usage,
  };
  return [
    { type: 'message', id: `q${turn}`, parentId: turn === 1 ? null : `a${turn - 1}`, timestamp, message: question },
    { type: 'message', id: `a${turn}`, parentId: `q${turn}`, timestamp, message: answered },
  ];
}

export interface StoredCall {
  readonly name: string;
  readonly args: object;
  readonly result: string;
}

/** An earlier turn in which the model called tools before it answered. Its results have the ids `r{turn}.{n}`, n from 1. */
export function storedToolTurn(turn: number, calls: readonly StoredCall[]): PiEntry[] {
  const [question, answer] = storedTurn(turn, 'Seen.') as [PiEntry, PiEntry];
  const { timestamp } = question;
  const callId = (n: number): string => `call-${turn}-${n + 1}`;
  const content = calls.map(({ name, args }, n) => ({ type: 'toolCall', id: callId(n), name, arguments: args }));
  const called = { ...(answer['message'] as object), content, stopReason: 'toolUse' };
  const results = calls.map(({ name, result }, n) => {
    const message = {
      role: 'toolResult',
      toolCallId: callId(n),
      toolName: name,
      content: [{ type: 'text', text: result }],
      isError: false,
    };
    return { type: 'message', id: `r${turn}.${n + 1}`, timestamp, message: { ...message, timestamp: turn } };
  });
  const all = [question, { type: 'message', id: `c${turn}`, timestamp, message: called }, ...results, answer];
  return all.map((entry, index) => ({ ...entry, parentId: all[index - 1]?.id ?? question.parentId }));
}

/** What the model was told, in order: role and words of each message of a request in either format. */
export function transcriptOf(call: { readonly body: unknown }): { readonly role: string; readonly text: string }[] {
  const { messages } = call.body as { messages: { role: string; content: unknown }[] };
  return messages.map(({ role, content }) => ({ role, text: textOf(content) }));
}

/** The words of the messages of one role in an end, in order. */
export function wordsIn(entries: readonly PiEntry[], role: 'assistant' | 'toolResult' | 'user' | 'system'): string[] {
  return entries.flatMap((entry) => {
    const message = entry['message'] as { role: string; content: unknown } | undefined;
    return message?.role === role ? [textOf(message.content)] : [];
  });
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.map((block: { text?: string; content?: unknown }) => block.text ?? textOf(block.content ?? '')).join('');
}

export interface TarEntry {
  readonly path: string;
  readonly data?: string;
  /** ustar's type flag: `0` file, `5` folder, `1` hard link, `2` symbolic link, `3` device, `6` pipe. */
  readonly type?: string;
  readonly linkTo?: string;
  /** Seven octal digits; `0000644` unless told. */
  readonly mode?: string;
  /** The 12 bytes of the size as they stand in the header, for one that lies. */
  readonly sizeField?: string;
}

/** A ustar archive of the entries, in order: honest ones, and ones that no packer would make. */
export function tarOf(entries: readonly TarEntry[]): Buffer {
  return Buffer.concat([...entries.map(entryOf), Buffer.alloc(2 * TAR_BLOCK)]);
}

function entryOf(entry: TarEntry): Buffer {
  const data = Buffer.from(entry.data ?? '');
  const header = Buffer.alloc(TAR_BLOCK);
  header.write(entry.path, 0, 100);
  header.write(`${entry.mode ?? '0000644'}\0`, 100);
  header.write(entry.sizeField ?? `${data.length.toString(8).padStart(11, '0')}\0`, 124, 12, 'latin1');
  header.write(' '.repeat(8), 148);
  header.write(entry.type ?? '0', 156);
  header.write(entry.linkTo ?? '', 157, 100);
  header.write('ustar\0' + '00', 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return Buffer.concat([header, data, Buffer.alloc((TAR_BLOCK - (data.length % TAR_BLOCK)) % TAR_BLOCK)]);
}
