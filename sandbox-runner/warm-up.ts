/**
 * Owns: making the first question as fast as the second: one dummy turn per API, inside this process, through the same code as a real
 * one. It loads Pi's adapters and undici's parser, and compiles what they need.
 * Does not own: anything of a conversation. No byte leaves the process: the gateway is a stream in memory.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Duplex } from 'node:stream';
import { Agent, type buildConnector } from 'undici';
import { type AgentRun, type ContextResponse, LLM_APIS, type LlmApi } from '../src/contract/agent.ts';
import { SMALLEST_MODEL } from '../src/contract/limits.ts';
import { systemClock } from '../src/kernel/clock.ts';
import { uuidv7 } from '../src/kernel/ids.ts';
import { GatewayClient } from './gateway-client.ts';
import type { Protocol } from './protocol.ts';
import { runTurn } from './turn.ts';

const MINUTE_MS = 60_000;

const ANSWERS: Record<LlmApi, readonly object[]> = {
  'openai-completions': [
    { id: 'c', choices: [{ index: 0, delta: { role: 'assistant', content: 'Ready.' }, finish_reason: null }] },
    { id: 'c', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
  ],
  'openai-responses': [
    { type: 'response.created', response: { id: 'r' } },
    { type: 'response.output_item.added', output_index: 0, item: { type: 'message', id: 'm', role: 'assistant', content: [] } },
    { type: 'response.content_part.added', output_index: 0, item_id: 'm', content_index: 0, part: { type: 'output_text', text: '' } },
    { type: 'response.output_text.delta', output_index: 0, item_id: 'm', content_index: 0, delta: 'Ready.' },
    { type: 'response.completed', response: { id: 'r', status: 'completed' } },
  ],
  'anthropic-messages': [
    { type: 'message_start', message: { id: 'm', role: 'assistant', content: [], usage: { input_tokens: 1, output_tokens: 1 } } },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Ready.' } },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 1 } },
    { type: 'message_stop' },
  ],
};

const silent: Protocol = { report: () => undefined, log: () => undefined };

/**
 * Runs the dummy turns in a folder of their own: a turn empties its folder. Returns how many were answered; one that fails costs
 * speed only.
 */
export async function warmUp(): Promise<number> {
  const workDir = await mkdtemp(join(tmpdir(), 'heph-warm-'));
  let answered = 0;
  for (const api of LLM_APIS) answered += (await askDummy(api, workDir)) ? 1 : 0;
  await rm(workDir, { recursive: true, force: true });
  return answered;
}

async function askDummy(api: LlmApi, workDir: string): Promise<boolean> {
  let answered = false;
  const onRequest = (request: string): void => {
    answered ||= request.includes('/turn/end') && request.includes('"outcome":"DONE"');
  };
  // undici must not be called back from within its own call.
  const connect: buildConnector.connector = (_options, connected) =>
    queueMicrotask(() => connected(null, new MemoryGateway(api, onRequest) as never));
  const transport = { origin: 'http://localhost', dispatcher: new Agent({ connect }) };
  const gateway = new GatewayClient({ transport, credential: 'none', clock: systemClock });
  const run: AgentRun = { id: uuidv7(), kind: 'TURN', epoch: 1, leaseTtlMs: MINUTE_MS, renewEveryMs: MINUTE_MS, deadlineMs: MINUTE_MS };
  const drain = new AbortController().signal;
  await runTurn(run, { gateway, transport, workDir, drain, clock: systemClock, protocol: silent, bash: false, setprivPath: null });
  await transport.dispatcher.close();
  return answered;
}

/** The other end of a connection: answers each request with what a gateway would. */
class MemoryGateway extends Duplex {
  readonly #api: LlmApi;
  readonly #onRequest: (request: string) => void;
  #received = '';

  constructor(api: LlmApi, onRequest: (request: string) => void) {
    super();
    this.#api = api;
    this.#onRequest = onRequest;
  }

  // undici asks these of a socket.
  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  override _read(): void {
    // Everything is pushed as soon as a request is complete.
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.#received += chunk.toString('latin1');
    const headEnd = this.#received.indexOf('\r\n\r\n');
    const bodyBytes = Number(/\r\ncontent-length: (\d+)/i.exec(this.#received)?.[1] ?? 0);
    if (headEnd >= 0 && this.#received.length >= headEnd + 4 + bodyBytes) {
      const path = this.#received.split(' ', 2)[1] ?? '';
      this.#onRequest(this.#received);
      this.#received = '';
      this.push(this.#answer(path));
    }
    done();
  }

  override _final(done: () => void): void {
    this.push(null);
    done();
  }

  #answer(path: string): string {
    if (path.startsWith('/internal/llm/')) return httpText('text/event-stream', ANSWERS[this.#api].map(eventText).join(''));
    return httpText('application/json', JSON.stringify(path.endsWith('/context') ? contextFor(this.#api) : {}));
  }
}

function eventText(event: object): string {
  return `${'type' in event ? `event: ${String(event.type)}\n` : ''}data: ${JSON.stringify(event)}\n\n`;
}

function httpText(type: string, body: string): string {
  return `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
}

function contextFor(api: LlmApi): ContextResponse {
  return {
    conversationId: uuidv7(),
    turnId: uuidv7(),
    questionEntryId: uuidv7(),
    entries: [],
    prompt: 'Are you ready?',
    systemPrompt: 'Warm up.',
    situation: 'Nobody has asked yet.',
    model: { id: 'warm-up', api, ...SMALLEST_MODEL },
    timeZone: 'UTC',
    documents: '',
  };
}
