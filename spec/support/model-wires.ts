/**
 * Owns: how a scripted provider speaks each wire: the events of an answer, and the question in a request.
 * Written from the wires, not from src/gateway: it is the other side of what the specs prove.
 */
import type { LlmApi } from '../../src/contract/agent.ts';
import type { ModelUsage, ToolCall } from './model-script.ts';

export interface WireEvent {
  readonly event?: string;
  readonly data: unknown;
}

/** Encodes one answer; it keeps the indexes of what it has sent. */
export interface WireEncoder {
  start(): WireEvent[];
  text(text: string): WireEvent[];
  tool(call: ToolCall): WireEvent[];
  ping(): WireEvent[] | null;
  error(type: string, message: string): WireEvent[];
  finish(reason: string | undefined, usage: ModelUsage | null): WireEvent[];
}

export function encoderFor(api: LlmApi, model: string, usage: ModelUsage | null): WireEncoder {
  if (api === 'openai-completions') return new ChatEncoder(model);
  if (api === 'openai-responses') return new ResponsesEncoder(model);
  return new AnthropicEncoder(model, usage);
}

let toolCalls = 0;
const nextCallId = (call: ToolCall) => call.id ?? `call_${++toolCalls}`;

function openAiUsage(usage: ModelUsage, [input, output, details]: readonly [string, string, string]) {
  const all = usage.input + (usage.cacheRead ?? 0) + (usage.cacheWrite ?? 0);
  const cached = {
    cached_tokens: usage.cacheRead ?? 0,
    ...(usage.cacheWrite === undefined ? {} : { cache_write_tokens: usage.cacheWrite }),
  };
  return { [input]: all, [output]: usage.output, total_tokens: all + usage.output, [details]: cached };
}

class ChatEncoder implements WireEncoder {
  readonly #model: string;
  #tools = 0;

  constructor(model: string) {
    this.#model = model;
  }

  #chunk(members: object): WireEvent {
    return { data: { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: this.#model, ...members } };
  }

  #delta(delta: object, finish: string | null = null): WireEvent {
    return this.#chunk({ choices: [{ index: 0, delta, finish_reason: finish }] });
  }

  start(): WireEvent[] {
    return [this.#delta({ role: 'assistant', content: '' })];
  }

  text(content: string): WireEvent[] {
    return [this.#delta({ content })];
  }

  tool(call: ToolCall): WireEvent[] {
    const index = this.#tools++;
    const open = { index, id: nextCallId(call), type: 'function', function: { name: call.name, arguments: '' } };
    const args = (JSON.stringify(call.args).match(/[\s\S]{1,8}/g) ?? []).map((piece) => ({ index, function: { arguments: piece } }));
    return [open, ...args].map((tool) => this.#delta({ tool_calls: [tool] }));
  }

  ping(): null {
    return null;
  }

  error(type: string, message: string): WireEvent[] {
    return [{ data: { error: { type, message, code: type } } }];
  }

  finish(reason: string | undefined, usage: ModelUsage | null): WireEvent[] {
    const counts = usage && openAiUsage(usage, ['prompt_tokens', 'completion_tokens', 'prompt_tokens_details']);
    const usageChunk = counts ? [this.#chunk({ choices: [], usage: counts })] : [];
    return [this.#delta({}, reason ?? (this.#tools > 0 ? 'tool_calls' : 'stop')), ...usageChunk, { data: '[DONE]' }];
  }
}

class ResponsesEncoder implements WireEncoder {
  readonly #model: string;
  #index = -1;
  #words: string | null = null;
  #sequence = 0;

  constructor(model: string) {
    this.#model = model;
  }

  #event(type: string, members: object): WireEvent {
    return { event: type, data: { type, sequence_number: this.#sequence++, ...members } };
  }

  #response(status: string, members: object = {}) {
    return { response: { id: 'resp_1', object: 'response', model: this.#model, status, output: [], ...members } };
  }

  start(): WireEvent[] {
    return [this.#event('response.created', this.#response('in_progress'))];
  }

  text(delta: string): WireEvent[] {
    const events: WireEvent[] = [];
    if (this.#words === null) {
      this.#index += 1;
      this.#words = '';
      events.push(this.#event('response.output_item.added', { output_index: this.#index, item: this.#message('in_progress') }));
    }
    this.#words += delta;
    events.push(this.#event('response.output_text.delta', { output_index: this.#index, content_index: 0, item_id: 'msg_1', delta }));
    return events;
  }

  #message(status: string) {
    const content = status === 'completed' ? [{ type: 'output_text', text: this.#words, annotations: [] }] : [];
    return { type: 'message', id: `msg_${this.#index}`, role: 'assistant', status, content };
  }

  #closeText(): WireEvent[] {
    if (this.#words === null) return [];
    const done = this.#event('response.output_item.done', { output_index: this.#index, item: this.#message('completed') });
    this.#words = null;
    return [done];
  }

  tool(call: ToolCall): WireEvent[] {
    const closed = this.#closeText();
    this.#index += 1;
    const at = { output_index: this.#index };
    const args = JSON.stringify(call.args);
    const item = { type: 'function_call', id: `fc_${this.#index}`, call_id: nextCallId(call), name: call.name, arguments: '' };
    return [
      ...closed,
      this.#event('response.output_item.added', { ...at, item }),
      this.#event('response.function_call_arguments.delta', { ...at, item_id: item.id, delta: args }),
      this.#event('response.function_call_arguments.done', { ...at, item_id: item.id, arguments: args }),
      this.#event('response.output_item.done', { ...at, item: { ...item, arguments: args, status: 'completed' } }),
    ];
  }

  ping(): WireEvent[] {
    return [this.#event('keepalive', {})];
  }

  error(code: string, message: string): WireEvent[] {
    return [this.#event('error', { code, message, param: null })];
  }

  finish(reason: string | undefined, usage: ModelUsage | null): WireEvent[] {
    const status = reason ?? 'completed';
    const counts = usage && openAiUsage(usage, ['input_tokens', 'output_tokens', 'input_tokens_details']);
    return [...this.#closeText(), this.#event(`response.${status}`, this.#response(status, counts ? { usage: counts } : {}))];
  }
}

class AnthropicEncoder implements WireEncoder {
  readonly #model: string;
  readonly #usage: ModelUsage | null;
  #index = -1;
  #inText = false;
  #tools = 0;

  constructor(model: string, usage: ModelUsage | null) {
    this.#model = model;
    this.#usage = usage;
  }

  #event(type: string, members: object): WireEvent {
    return { event: type, data: { type, ...members } };
  }

  start(): WireEvent[] {
    const usage = {
      input_tokens: this.#usage?.input ?? 0,
      output_tokens: 1,
      cache_read_input_tokens: this.#usage?.cacheRead ?? 0,
      cache_creation_input_tokens: this.#usage?.cacheWrite ?? 0,
    };
    const message = { id: 'msg_1', type: 'message', role: 'assistant', model: this.#model, content: [], stop_reason: null };
    return [this.#event('message_start', { message: { ...message, ...(this.#usage ? { usage } : { usage: {} }) } })];
  }

  text(text: string): WireEvent[] {
    const events = this.#inText ? [] : [this.#open({ type: 'text', text: '' })];
    this.#inText = true;
    return [...events, this.#event('content_block_delta', { index: this.#index, delta: { type: 'text_delta', text } })];
  }

  #open(block: object): WireEvent {
    this.#index += 1;
    return this.#event('content_block_start', { index: this.#index, content_block: block });
  }

  #close(): WireEvent {
    this.#inText = false;
    return this.#event('content_block_stop', { index: this.#index });
  }

  tool(call: ToolCall): WireEvent[] {
    this.#tools += 1;
    const before = this.#inText ? [this.#close()] : [];
    const opened = this.#open({ type: 'tool_use', id: nextCallId(call), name: call.name, input: {} });
    const delta = { type: 'input_json_delta', partial_json: JSON.stringify(call.args) };
    return [...before, opened, this.#event('content_block_delta', { index: this.#index, delta }), this.#close()];
  }

  ping(): WireEvent[] {
    return [this.#event('ping', {})];
  }

  error(type: string, message: string): WireEvent[] {
    return [this.#event('error', { error: { type, message } })];
  }

  finish(reason: string | undefined, usage: ModelUsage | null): WireEvent[] {
    const delta = { stop_reason: reason ?? (this.#tools > 0 ? 'tool_use' : 'end_turn'), stop_sequence: null };
    const end = this.#event('message_delta', { delta, usage: usage ? { output_tokens: usage.output } : {} });
    return [...(this.#inText ? [this.#close()] : []), end, this.#event('message_stop', {})];
  }
}
