/**
 * Owns: the runner's calls to the agent listener, except model calls, and what is repeated when the server cannot answer:
 *
 * | call        | repeated                                             | when that does not help                         |
 * |-------------|------------------------------------------------------|-------------------------------------------------|
 * | next        | for ever, 100 ms to 2 s apart (driver loop)          | the runner waits for its server                 |
 * | context     | after 1, 2, 4 s                                      | the turn ends FAILED, `context_unavailable`     |
 * | lease       | every 2 s until the lease is over (lease.ts)         | the attempt is lost, without a call             |
 * | partial     | never: the next one carries everything (partial.ts)  | readers see the answer at its end               |
 * | turn/search, turn/sandbox/document | after 1, 2, 4 s: they only read | the tool says so, the model goes on |
 * | turn/sandbox/load | never: the server counts loads                 | the tool says so, the model may ask again       |
 * | turn/end    | after 1, 2, 4 s; a repeat that got through answers 409 | the reaper takes the attempt back             |
 * | end         | after 1, 2, 4 s                                      | the reaper takes the attempt back               |
 *
 * Does not own: what an answer means for the attempt (fate.ts, turn.ts).
 * Rule R5: each call of a run carries its run and epoch, and none leaves after the lease is lost.
 */
import {
  AGENT_EPOCH_HEADER,
  AGENT_RUN_HEADER,
  type AgentRun,
  type ContextResponse,
  contextResponseSchema,
  type DocumentResponse,
  documentResponseSchema,
  type LeaseResponse,
  LOAD_HEADER,
  type LoadManifest,
  leaseResponseSchema,
  loadManifestSchema,
  nextResponseSchema,
  type PartialRequest,
  type PartialResponse,
  partialResponseSchema,
  type RunEndRequest,
  type SearchRequest,
  type SearchResponse,
  searchResponseSchema,
  type TurnEndRequest,
} from '../src/contract/agent.ts';
import { type Clock, pause } from '../src/kernel/clock.ts';
import { RUNNER } from './config.ts';
import { type CallOptions, call, openCall, parseJson, type Refusal, type Reply, readRefusal, type Transport } from './transport.ts';

export type CallResult<T> =
  | { readonly kind: 'ok'; readonly value: T }
  | ({ readonly kind: 'refused' } & Refusal)
  | { readonly kind: 'unreachable' }
  | { readonly kind: 'cancelled' };

/** An archive on its way. Reading the body may throw. */
export interface OpenLoad {
  readonly manifest: LoadManifest;
  readonly archive: AsyncIterable<Buffer>;
  /** Call it when done, whether all of the archive was read or not. */
  readonly close: () => void;
}

type Shape<T> = { safeParse(value: unknown): { success: true; data: T } | { success: false } };
type Timing = { readonly timeoutMs: number; readonly maxBytes: number; readonly signal: AbortSignal };

export interface GatewayOptions {
  readonly transport: Transport;
  readonly credential: string;
  readonly clock: Clock;
}

export class GatewayClient {
  readonly #options: GatewayOptions;

  constructor(options: GatewayOptions) {
    this.#options = options;
  }

  /** Waits at most `waitMs` for the next run of the conversation; null when there is none. */
  async next(waitMs: number, signal: AbortSignal): Promise<CallResult<AgentRun | null>> {
    const reply = await call(this.#options.transport, {
      method: 'POST',
      path: '/internal/agent/next',
      headers: this.headers(),
      body: { waitMs },
      timeoutMs: waitMs + RUNNER.callTimeoutMs,
      maxBytes: RUNNER.replyMaxBytes,
      signal,
    });
    if (reply.kind === 'answered' && reply.status === 204) return { kind: 'ok', value: null };
    const result = toResult(reply, nextResponseSchema);
    return result.kind === 'ok' ? { kind: 'ok', value: result.value.run } : result;
  }

  /** The calls of one run. `lost` cancels what is under way and keeps any further call from leaving. */
  forRun(run: AgentRun, lost: AbortSignal): RunClient {
    return new RunClient(this, { run, lost, ...this.#options });
  }

  headers(): Record<string, string> {
    return { authorization: `Bearer ${this.#options.credential}` };
  }
}

/** The calls of one attempt. */
export class RunClient {
  readonly #gateway: GatewayClient;
  readonly #options: GatewayOptions & { readonly run: AgentRun; readonly lost: AbortSignal };

  constructor(gateway: GatewayClient, options: GatewayOptions & { readonly run: AgentRun; readonly lost: AbortSignal }) {
    this.#gateway = gateway;
    this.#options = options;
  }

  /** What proves a call of this attempt; model calls carry it too. */
  headers(): Record<string, string> {
    const { run } = this.#options;
    const traced = run.traceparent === undefined ? {} : { traceparent: run.traceparent };
    return { ...this.#gateway.headers(), ...traced, [AGENT_RUN_HEADER]: run.id, [AGENT_EPOCH_HEADER]: String(run.epoch) };
  }

  async context(decided: AbortSignal): Promise<CallResult<ContextResponse>> {
    const timing = { timeoutMs: RUNNER.contextTimeoutMs, maxBytes: RUNNER.contextMaxBytes, signal: decided };
    return toResult(await this.#repeated('GET', 'context', timing), contextResponseSchema);
  }

  async lease(): Promise<CallResult<LeaseResponse>> {
    return toResult(await this.#once('POST', 'lease', { ...this.#timing(), body: {} }), leaseResponseSchema);
  }

  async partial(body: PartialRequest): Promise<CallResult<PartialResponse>> {
    const reply = await this.#once('POST', 'turn/partial', { ...this.#timing(), body });
    if (reply.kind === 'answered' && reply.status === 204) return { kind: 'ok', value: {} };
    return toResult(reply, partialResponseSchema);
  }

  async search(body: SearchRequest, signal: AbortSignal): Promise<CallResult<SearchResponse>> {
    const timing = { ...this.#timing(), signal: this.#while(signal) };
    return toResult(await this.#repeated('POST', 'turn/search', { ...timing, body }), searchResponseSchema);
  }

  async document(path: string, signal: AbortSignal): Promise<CallResult<DocumentResponse>> {
    const timing = { ...this.#timing(), maxBytes: RUNNER.documentReplyMaxBytes, signal: this.#while(signal) };
    return toResult(await this.#repeated('POST', 'turn/sandbox/document', { ...timing, body: { path } }), documentResponseSchema);
  }

  /** The server takes as long as it needs; the turn's deadline ends it. */
  async load(path: string, signal: AbortSignal): Promise<CallResult<OpenLoad>> {
    const rest = { headers: this.headers(), maxBytes: RUNNER.replyMaxBytes, signal: this.#while(signal), body: { path } };
    const reply = await openCall(this.#options.transport, { method: 'POST', path: this.#path('turn/sandbox/load'), ...rest });
    if (reply.kind !== 'open') return toResult(reply, nothing);
    const header = Buffer.from(reply.header(LOAD_HEADER) ?? '', 'base64url').toString('utf8');
    const manifest = loadManifestSchema.safeParse(parseJson(header));
    if (manifest.success) return { kind: 'ok', value: { manifest: manifest.data, archive: reply.body, close: reply.close } };
    reply.close();
    return { kind: 'unreachable' };
  }

  async endTurn(body: TurnEndRequest): Promise<CallResult<unknown>> {
    return toResult(await this.#repeated('POST', 'turn/end', { ...this.#timing(RUNNER.endTimeoutMs), body }), anything);
  }

  async end(body: RunEndRequest): Promise<CallResult<unknown>> {
    return toResult(await this.#repeated('POST', 'end', { ...this.#timing(RUNNER.endTimeoutMs), body }), anything);
  }

  #timing(timeoutMs: number = RUNNER.callTimeoutMs): Timing {
    return { timeoutMs, maxBytes: RUNNER.replyMaxBytes, signal: this.#options.lost };
  }

  /** While the caller wants it and the lease is held. */
  #while(signal: AbortSignal): AbortSignal {
    return AbortSignal.any([signal, this.#options.lost]);
  }

  #path(name: string): string {
    return `/internal/agent/runs/${this.#options.run.id}/${name}`;
  }

  #once(method: CallOptions['method'], name: string, rest: Timing & { readonly body?: unknown }): Promise<Reply> {
    return call(this.#options.transport, { method, path: this.#path(name), headers: this.headers(), ...rest });
  }

  async #repeated(method: CallOptions['method'], name: string, rest: Timing & { readonly body?: unknown }): Promise<Reply> {
    for (const delayMs of RUNNER.retryDelaysMs) {
      const reply = await this.#once(method, name, rest);
      if (reply.kind !== 'unreachable') return reply;
      await pause(this.#options.clock, delayMs, rest.signal);
    }
    return this.#once(method, name, rest);
  }
}

const nothing: Shape<never> = { safeParse: () => ({ success: false }) };
const anything: Shape<unknown> = { safeParse: (data) => ({ success: true, data }) };

/** An answer that does not have the agreed shape is as good as none. */
function toResult<T>(reply: Reply, shape: Shape<T>): CallResult<T> {
  if (reply.kind !== 'answered') return reply;
  if (reply.status >= 400) return { kind: 'refused', ...readRefusal(reply.status, reply.text) };
  const parsed = shape.safeParse(parseJson(reply.text));
  return parsed.success ? { kind: 'ok', value: parsed.data } : { kind: 'unreachable' };
}
