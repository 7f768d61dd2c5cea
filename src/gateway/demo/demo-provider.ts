/**
 * Owns: the model that answers when no provider is configured. It speaks the openai-completions wire in this process: no socket, no key, the
 * same way through the gateway as any provider. First it reads INDEX.md with the loop's own tool, then it answers, so that a fresh
 * installation shows a tool call, a stream, a stop and a follow-up.
 */
import type { LlmApi } from '../../contract/agent.ts';
import { type Clock, pause } from '../../kernel/clock.ts';
import { uuidv7 } from '../../kernel/ids.ts';
import { DEMO_API, DEMO_MODEL } from '../model-config.ts';
import type { Provider, ProviderReply, ProviderRequest } from '../provider.ts';
import { DEMO_SUMMARY, demoAnswer } from './demo-answer.ts';
import { type DemoRequest, readDemoRequest } from './demo-request.ts';

/** Between two pieces: slow enough to see, fast enough to wait for. */
const PIECE_EVERY_MS = 30;
const CHARS_PER_TOKEN = 4;

/** A generator that nobody reads does nothing. */
const discard = () => undefined;

type Delta = Readonly<Record<string, unknown>>;

export class DemoProvider implements Provider {
  readonly api: LlmApi = DEMO_API;
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async send({ json, signal }: ProviderRequest): Promise<ProviderReply> {
    if (json['stream'] !== true) {
      const error = { type: 'invalid_request_error', message: 'The demo model only streams: set "stream" to true.' };
      return { status: 400, headers: { 'content-type': 'application/json' }, body: onlyPiece(JSON.stringify({ error })), discard };
    }
    const body = this.#stream(readDemoRequest(json), signal);
    return { status: 200, headers: { 'content-type': 'text/event-stream' }, body, discard };
  }

  retire(): void {
    // nothing is open
  }

  async close(): Promise<void> {
    // nothing is open
  }

  async *#stream(request: DemoRequest, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    const id = `chatcmpl-${uuidv7()}`;
    const event = (members: object) =>
      Buffer.from(`data: ${JSON.stringify({ id, object: 'chat.completion.chunk', created: 0, model: DEMO_MODEL, ...members })}\n\n`);
    const chunk = (delta: Delta, finish: string | null) => event({ choices: [{ index: 0, delta, finish_reason: finish }] });
    const reads = request.hasReadTool && request.toolResult === null;
    let completionChars = 0;
    yield chunk({ role: 'assistant', content: '' }, null);
    for (const delta of reads ? [readCall()] : textDeltas(request)) {
      await pause(this.#clock, PIECE_EVERY_MS, signal);
      signal.throwIfAborted();
      completionChars += JSON.stringify(delta).length;
      yield chunk(delta, null);
    }
    yield chunk({}, reads ? 'tool_calls' : 'stop');
    yield event({ choices: [], usage: estimate(request.promptChars, completionChars) });
    yield Buffer.from('data: [DONE]\n\n');
  }
}

function textDeltas(request: DemoRequest): readonly Delta[] {
  const pieces = request.wantsSummary ? [DEMO_SUMMARY] : demoAnswer(request.question, request.toolResult);
  return pieces.map((content) => ({ content }));
}

function readCall(): Delta {
  const call = { name: 'read', arguments: JSON.stringify({ path: 'INDEX.md' }) };
  return { tool_calls: [{ index: 0, id: `call_${uuidv7()}`, type: 'function', function: call }] };
}

function estimate(promptChars: number, completionChars: number) {
  const prompt = Math.ceil(promptChars / CHARS_PER_TOKEN);
  const completion = Math.ceil(completionChars / CHARS_PER_TOKEN);
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
}

async function* onlyPiece(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
}
