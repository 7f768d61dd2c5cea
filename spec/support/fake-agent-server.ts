/**
 * Owns: a small real HTTP server that plays the agent listener for the runner's specs: runs to pull, a context, and answers that a
 * spec scripts call by call, model calls included.
 * Does not own: the fault-injecting model server of the gateway's specs (model-server.ts), and the rules of the real listener.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { AgentRun, ContextResponse, TurnEndRequest } from '../../src/contract/agent.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import { streamWords } from './agent-scripts.ts';

/** `model` is any model call; the others are the last part of the path of a run's call. */
export type CallName = 'next' | 'context' | 'lease' | 'turn/partial' | 'turn/end' | 'end' | 'model';

export interface SeenCall {
  readonly name: CallName;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: unknown;
  /** The caller closed the connection before it had the whole answer. */
  aborted: boolean;
}

export type Responder = (call: SeenCall, response: ServerResponse) => void | Promise<void>;

const CONTEXT_TOKENS = 32_768;
const OUTPUT_TOKENS = 4_096;
const LEASE = { leaseTtlMs: 60_000, renewEveryMs: 25_000, deadlineMs: 300_000 };

export class FakeAgentServer {
  readonly calls: SeenCall[] = [];
  readonly #server: Server;
  #gateway = '';
  #context: ContextResponse = exampleContext({});
  readonly #runs: AgentRun[] = [];
  readonly #parked = new Set<ServerResponse>();
  readonly #responders = new Map<CallName, Responder>();
  readonly #waiting = new Set<() => void>();

  private constructor() {
    this.#server = createServer((request, response) => void this.#serve(request, response));
  }

  /** Listens on a free loopback port, or on a unix socket. */
  static async start(at: { readonly socketPath?: string; readonly port?: number } = {}): Promise<FakeAgentServer> {
    const fake = new FakeAgentServer();
    if (at.socketPath === undefined) fake.#server.listen(at.port ?? 0, '127.0.0.1');
    else fake.#server.listen(at.socketPath);
    await once(fake.#server, 'listening');
    fake.#gateway = at.socketPath === undefined ? `http://127.0.0.1:${fake.port}` : `unix:${at.socketPath}`;
    return fake;
  }

  get gateway(): string {
    return this.#gateway;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Serves a connection that came another way. */
  take(socket: Socket): void {
    this.#server.emit('connection', socket);
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  /** Forgets calls and scripts, so that each spec starts clean. Parked pulls stay parked. */
  reset(): void {
    this.calls.length = 0;
    this.#responders.clear();
  }

  /** Scripts every further call of this name. */
  on(name: CallName, responder: Responder): void {
    this.#responders.set(name, responder);
  }

  /** A new run for the next pull. */
  giveRun(
    context: Partial<ContextResponse> = {},
    run: Partial<AgentRun> = {},
  ): { readonly run: AgentRun; readonly context: ContextResponse } {
    this.#context = exampleContext(context);
    const given: AgentRun = { id: uuidv7(), kind: 'TURN', epoch: 1, ...LEASE, ...run };
    this.#runs.push(given);
    const [pull] = this.#parked;
    if (pull !== undefined) this.#grant(pull);
    return { run: given, context: this.#context };
  }

  /** Waits until `find` finds something; it is asked again after each call and each closed connection. */
  until<T>(find: () => T | undefined): Promise<T> {
    return new Promise((resolve) => {
      const look = (): void => {
        const found = find();
        if (found === undefined) return;
        this.#waiting.delete(look);
        resolve(found);
      };
      this.#waiting.add(look);
      look();
    });
  }

  /** The n-th call of a name (from 1), as soon as it has arrived. */
  call(name: CallName, nth = 1): Promise<SeenCall> {
    return this.until(() => this.named(name)[nth - 1]);
  }

  named(name: CallName): SeenCall[] {
    return this.calls.filter((call) => call.name === name);
  }

  /** The end of the turn, as soon as it has arrived. */
  async end(nth = 1): Promise<TurnEndRequest> {
    return (await this.call('turn/end', nth)).body as TurnEndRequest;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks = await Array.fromAsync(request as AsyncIterable<Buffer>).catch(() => null);
    if (chunks === null) return;
    const text = Buffer.concat(chunks).toString('utf8');
    const path = request.url ?? '';
    const call: SeenCall = {
      name: nameOf(path),
      path,
      headers: request.headers,
      body: text === '' ? null : JSON.parse(text),
      aborted: false,
    };
    this.calls.push(call);
    response.on('close', () => {
      call.aborted = !response.writableFinished;
      this.#parked.delete(response);
      this.#look();
    });
    await (this.#responders.get(call.name) ?? this.#byDefault(call.name))(call, response);
    this.#look();
  }

  #byDefault(name: CallName): Responder {
    switch (name) {
      case 'next':
        return (_call, response) => this.#park(response);
      case 'context':
        return (_call, response) => reply(response, 200, this.#context);
      case 'lease':
        return (_call, response) => reply(response, 200, { leaseTtlMs: LEASE.leaseTtlMs, deadlineMs: LEASE.deadlineMs });
      case 'model':
        return (_call, response) => streamWords(response, ['It ', 'works.']);
      default:
        return (_call, response) => reply(response, 200, {});
    }
  }

  #park(response: ServerResponse): void {
    this.#parked.add(response);
    if (this.#runs.length > 0) this.#grant(response);
  }

  #grant(response: ServerResponse): void {
    this.#parked.delete(response);
    reply(response, 200, { run: this.#runs.shift() });
  }

  #look(): void {
    for (const look of [...this.#waiting]) look();
  }
}

function nameOf(path: string): CallName {
  if (path.startsWith('/internal/llm/')) return 'model';
  return path.replace(/^\/internal\/agent\/(runs\/[^/]+\/)?/, '') as CallName;
}

export function exampleContext(changes: Partial<ContextResponse>): ContextResponse {
  return {
    conversationId: uuidv7(),
    turnId: uuidv7(),
    questionEntryId: uuidv7(),
    entries: [],
    prompt: '[Thu 2026-10-08 09:12 UTC] Does it work?',
    systemPrompt: 'You are Hephaestus.',
    situation: 'The time now: 09:12.',
    model: { id: 'everyday', api: 'openai-completions', contextTokens: CONTEXT_TOKENS, outputTokens: OUTPUT_TOKENS },
    documents: '',
    ...changes,
  };
}

export function reply(response: ServerResponse, status: number, body: unknown): void {
  if (response.destroyed) return;
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

/** A refusal as the real listener writes it. */
export function problem(response: ServerResponse, status: number, members: Readonly<Record<string, string>>): void {
  reply(response, status, { type: 'about:blank', title: 'Refused', status, detail: 'Refused.', retry: 'never', ...members });
}
