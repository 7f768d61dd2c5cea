/**
 * A model provider for specs, over real HTTP on loopback: the three wires of the product, each request answered by a script that can also
 * fail in every way that providers do. Requests are recorded with the headers and bytes that arrived.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { LlmApi } from '../../src/contract/agent.ts';
import { readRequestBody } from './model-request.ts';
import {
  answer,
  DEFAULT_USAGE,
  type Framing,
  type Hold,
  type Reply,
  type Script,
  type Seen,
  type Step,
  type StreamReply,
} from './model-script.ts';
import { encoderFor, type WireEncoder, type WireEvent } from './model-wires.ts';

export * from './model-script.ts';

const BODY_MAX_BYTES = 16 * 1024 * 1024;
const SEEN_MAX = 10_000;
const KEEP_ALIVE_EVERY_MS = 20;
const APIS: readonly (readonly [suffix: string, api: LlmApi])[] = [
  ['/chat/completions', 'openai-completions'],
  ['/responses', 'openai-responses'],
  ['/messages', 'anthropic-messages'],
];

export interface ModelServer {
  /** `http://127.0.0.1:port`, to be used as HEPH_LLM_BASE_URL of any API. */
  readonly url: string;
  /** Requests in order of arrival. */
  readonly seen: readonly Seen[];
  /** Replaces the script for the requests to come. */
  use(script: Script): void;
  /** The n-th request (from 1); waits for it. */
  request(n: number): Promise<Seen>;
  /** Ends all connections. */
  close(): Promise<void>;
}

/** Starts a provider on a free port of loopback. Without a script it answers each question with its own words. */
export async function startModelServer(script: Script = answer()): Promise<ModelServer> {
  const seen: Seen[] = [];
  const waiting = new Map<number, PromiseWithResolvers<Seen>>();
  let current = script;
  const server = createServer((req, res) => {
    serve(req, res).catch(() => res.destroy());
  });

  async function serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const { pathname } = new URL(req.url ?? '/', 'http://provider');
    const api = APIS.find(([suffix]) => pathname.endsWith(suffix))?.[1];
    if (!api || req.method !== 'POST' || seen.length >= SEEN_MAX) return void res.writeHead(404).end();
    const sent = Promise.withResolvers<void>();
    const request = { ...(await readRequest(req, res)), n: seen.length + 1, api, sent: sent.promise };
    seen.push(request);
    waiting.get(request.n)?.resolve(request);
    try {
      await send(res, request, await current(request, request.n));
    } finally {
      sent.resolve();
    }
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    use: (next) => {
      current = next;
    },
    request: (n) => {
      const there = seen[n - 1];
      if (there) return Promise.resolve(there);
      const waiter = waiting.get(n) ?? Promise.withResolvers<Seen>();
      waiting.set(n, waiter);
      return waiter.promise;
    },
    close: () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      return closed;
    },
  };
}

async function readRequest(req: IncomingMessage, res: ServerResponse): Promise<Omit<Seen, 'n' | 'api' | 'sent'>> {
  const aborted = Promise.withResolvers<number>();
  res.once('close', () => {
    if (!res.writableFinished) aborted.resolve(performance.now());
  });
  const chunks: Buffer[] = [];
  let total = 0;
  for await (const chunk of req as AsyncIterable<Buffer>) {
    total += chunk.length;
    if (total > BODY_MAX_BYTES) throw new Error('the request is larger than this provider takes');
    chunks.push(chunk);
  }
  const rawBody = Buffer.concat(chunks);
  const body: unknown = JSON.parse(rawBody.toString('utf8'));
  return { path: req.url ?? '', headers: req.headers, rawBody, body, aborted: aborted.promise, ...readRequestBody(body) };
}

async function send(res: ServerResponse, seen: Seen, reply: Reply): Promise<void> {
  if ('before' in reply) {
    if (await passed(res, reply.before)) await send(res, seen, reply.reply);
  } else if ('silent' in reply) {
    if (reply.silent === 'drop') res.socket?.resetAndDestroy();
  } else if ('steps' in reply) await sendStream(res, seen, reply);
  else {
    const json = typeof reply.body === 'string' ? reply.body : JSON.stringify(reply.body ?? {});
    res.writeHead(reply.status, { 'content-type': 'application/json', ...(reply.headers as Record<string, string>) }).end(json);
  }
}

async function sendStream(res: ServerResponse, seen: Seen, reply: StreamReply): Promise<void> {
  const usage = reply.usage === undefined ? DEFAULT_USAGE : reply.usage;
  const encoder = encoderFor(seen.api, seen.body.model, usage);
  const out = new Output(res, reply);
  res.writeHead(200, { 'content-type': 'text/event-stream', ...(reply.headers as Record<string, string>) });
  res.flushHeaders();
  await out.events(encoder.start());
  for (const step of reply.steps) {
    if ('hold' in step) {
      if (!(await passed(res, step.hold))) return;
    } else await out.step(encoder, step);
  }
  const end = reply.end ?? 'finish';
  if (end === 'finish' || end === 'linger') await out.events(encoder.finish(reply.finishReason, usage));
  if (end === 'finish' || end === 'fin') res.end();
  else if (end === 'drop') res.socket?.resetAndDestroy();
  else if (end === 'keep-alive') keepAlive(res);
}

function keepAlive(res: ServerResponse): void {
  const timer = setInterval(() => res.write(': keep-alive\n\n'), KEEP_ALIVE_EVERY_MS);
  res.once('close', () => clearInterval(timer));
}

/** False: the caller hung up while the spec held the answer. */
async function passed(res: ServerResponse, hold: Hold): Promise<boolean> {
  const closed = new Promise<void>((resolve) => res.once('close', resolve));
  await Promise.race([hold.pass(), closed]);
  return !res.destroyed;
}

/** Frames events as the reply wants it and cuts the bytes where it wants it. */
class Output {
  readonly #res: ServerResponse;
  readonly #framing: Framing;
  readonly #cutBytes: number;

  constructor(res: ServerResponse, reply: StreamReply) {
    this.#res = res;
    this.#framing = reply.framing ?? {};
    this.#cutBytes = reply.cutBytes ?? Number.POSITIVE_INFINITY;
  }

  step(encoder: WireEncoder, step: Exclude<Step, { hold: Hold }>): Promise<void> {
    if ('text' in step) return this.events(encoder.text(step.text));
    if ('tool' in step) return this.events(encoder.tool(step.tool));
    if ('error' in step) return this.events(encoder.error(step.error.type, step.error.message));
    if ('comment' in step) return this.#comment(step.comment);
    if ('raw' in step) return this.#write(Buffer.from(step.raw));
    const ping = encoder.ping();
    return ping ? this.events(ping) : this.#comment('ping');
  }

  events(events: readonly WireEvent[]): Promise<void> {
    return this.#write(Buffer.from(events.map((event) => this.#frame(event)).join('')));
  }

  #comment(text: string): Promise<void> {
    const { eol = '\n' } = this.#framing;
    return this.#write(Buffer.from(`: ${text}${eol}${eol}`));
  }

  #frame({ event, data }: WireEvent): string {
    const { eol = '\n', noSpace = false, multiline = false } = this.#framing;
    const text = typeof data === 'string' ? data : JSON.stringify(data, null, multiline ? 1 : undefined);
    const fields = [...(event === undefined ? [] : [['event', event]]), ...text.split('\n').map((line) => ['data', line])];
    return fields.map(([name, value]) => `${name}:${noSpace ? '' : ' '}${value}${eol}`).join('') + eol;
  }

  async #write(bytes: Uint8Array): Promise<void> {
    for (let from = 0; from < bytes.length; from += this.#cutBytes) {
      if (this.#res.destroyed) return;
      const roomLeft = this.#res.write(bytes.subarray(from, Math.min(bytes.length, from + this.#cutBytes)));
      if (!roomLeft) await drained(this.#res);
      else if (Number.isFinite(this.#cutBytes)) await new Promise<void>((resolve) => setImmediate(resolve));
    }
  }
}

function drained(res: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      res.off('drain', done);
      res.off('close', done);
      resolve();
    };
    res.on('drain', done);
    res.on('close', done);
  });
}
