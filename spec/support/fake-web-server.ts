/**
 * Owns: a stand-in for the server, to look at the page in each of its states without a database, a sandbox or a model.
 * Does not own: any proof. It keeps no rule of the ledger; the specs of the page run against the real server.
 * Run it with `node spec/support/fake-web-server.ts` after `npm run build`. Words in a question choose what happens to it: see `scripts`.
 */
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import { failureTexts } from '../../actors/failure-texts.ts';
import type { Session, Turn } from '../../src/contract/web.ts';
import { systemClock, type Timer } from '../../src/kernel/clock.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import { showcase } from './fake-web-answers.ts';
import { type LedgerEvent, WebLedger } from './page-ledger.ts';

export interface FakeOptions {
  /** Answered questions that are there at the start, one each nine hours. */
  history?: number;
  /** How many of their answers are new. */
  unread?: number;
  session?: Partial<Session>;
}

const contentSecurityPolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
  "manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
const types: Record<string, string> = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' };
const dist = join(import.meta.dirname, '../../dist/web');
const historyStepMs = 9 * 3_600_000;

/** What is in a question -> what happens to it. Anything else is answered with a piece of everything. */
const scripts = ['#fail', '#hold', '#retry', '#gap', '#short'] as const;
const REFUSED = {
  401: { status: 401, code: 'UNAUTHENTICATED', detail: 'You are not signed in. Sign in and load the page again.', retry: 'never' },
  403: { status: 403, code: 'FORBIDDEN', detail: 'This account belongs to no workspace. Ask for an invitation.', retry: 'never' },
} as const;
const refusals = [
  { word: '#busy', status: 503, code: 'BUSY', detail: 'Hephaestus is busy right now. Try again in a moment.' },
  {
    word: '#full',
    status: 409,
    code: 'FOLLOW_UPS_FULL',
    detail: '10 follow-up questions are waiting already. Remove one of them, or wait.',
  },
];

export class FakeWebServer {
  readonly session: Session;
  /** While true every request is answered with 502, as a proxy does when the server is away. */
  down = false;
  /** Status with which every request but the page's own files is refused; null: none. */
  refuseWith: 401 | 403 | null = null;
  /** Pages of entries are answered when it resolves. */
  pagesAfter: Promise<void> = Promise.resolve();
  #nowMs = Date.now();
  readonly ledger = new WebLedger(() => new Date(this.#nowMs).toISOString());
  readonly #streams = new Set<ServerResponse>();
  readonly #http = createServer((request, response) => void this.#serve(request, response));
  #told = 0;
  #loop: Timer | null = null;

  constructor({ history = 0, unread = 0, session = {} }: FakeOptions = {}) {
    const limits = { questionMaxChars: 32_000, maxFollowUps: 10 };
    const account = { id: uuidv7(), displayName: 'Ada', timeZone: 'Europe/Berlin' };
    const workspace = { id: uuidv7(), slug: 'home', name: 'Home' };
    this.session = {
      assistantName: 'Hephaestus',
      account,
      workspace,
      role: 'operator',
      demoModel: false,
      aiAllowed: true,
      warnings: [],
      limits,
      ...session,
    };
    for (let ago = history; ago > 0; ago--) this.#remember(ago);
    const read = this.ledger.entries.filter((entry) => entry.kind === 'answer').at(-1 - unread);
    if (read !== undefined) this.ledger.read(read.createdAt);
    this.#told = this.ledger.log.length;
  }

  /** Resolves with the address, for example `http://127.0.0.1:8090`. */
  async listen(port = 0): Promise<string> {
    await new Promise<void>((resolve) => this.#http.listen(port, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(this.#http.address() as AddressInfo).port}`;
  }

  /** Streams that are open now. */
  get streams(): number {
    return this.#streams.size;
  }

  dropStreams(): void {
    for (const stream of this.#streams) stream.destroy();
  }

  /** Breaks every stream inside of an event, and inside of a character. */
  tearStreams(): void {
    const torn = Buffer.from('event: partial\ndata: {"text":"\u{1F525}').subarray(0, -2);
    for (const stream of this.#streams) stream.write(torn, () => stream.destroy());
  }

  async close(): Promise<void> {
    this.#loop?.cancel();
    this.#http.closeAllConnections();
    await new Promise((resolve) => this.#http.close(resolve));
  }

  #remember(ago: number): void {
    this.#nowMs = Date.now() - ago * historyStepMs;
    const { turn } = this.ledger.ask(uuidv7(), `Question ${ago} of the past: how does a lease end?`);
    this.ledger.claim();
    if (ago % 7 === 5) this.ledger.end('FAILED', []);
    else if (ago % 7 === 3) {
      this.ledger.stop(this.#turn(turn.id) as Turn);
      this.ledger.endStopped(`Answer ${ago}. A lease ends when`);
    } else this.ledger.end('DONE', [`Answer ${ago}. ${showcase.short}`]);
  }

  #turn(id: string | undefined): Turn | undefined {
    return this.ledger.turns.find((turn) => turn.id === id);
  }

  /** Tells every stream what the ledger has logged since the last time. */
  #tell(): void {
    for (; this.#told < this.ledger.log.length; this.#told++) {
      const event = this.ledger.log[this.#told];
      if (event === undefined) return;
      const data = dataOf(event);
      for (const stream of this.#streams) stream.write(`event: ${event.type}\ndata: ${JSON.stringify(data)}\n\n`);
    }
  }

  /** Runs the next question, if none runs, and writes its answer little by little. */
  #work(): void {
    this.#nowMs = Date.now();
    this.ledger.claim();
    this.#tell();
    const turn = this.ledger.running;
    if (turn === undefined || this.#loop !== null) return;
    const question = this.ledger.entries.find((entry) => entry.id === turn.questionEntryId)?.text ?? '';
    const script = scripts.find((word) => question.includes(word));
    const words = (script === '#short' ? showcase.short : showcase.everything).match(/\S+\s*|\n/g) ?? [];
    let tick = 0;
    const done = (change: () => void) => {
      this.#loop?.cancel();
      this.#loop = null;
      this.#nowMs = Date.now();
      change();
      this.#tell();
      systemClock.after(1_000, () => this.#work());
    };
    this.#loop = systemClock.every(90, () => {
      tick += 1;
      const stage = tick >= 8 && tick < 14 ? 'Reading the repository…' : 'Thinking…';
      if (turn.status !== 'RUNNING') return done(() => this.ledger.endStopped(words.slice(0, (tick - 14) * 4).join('') || null));
      this.ledger.write(tick < 14 ? '' : words.slice((tick - 14) * 4, (tick - 13) * 4).join(''), stage);
      // One report that never reaches the viewers.
      if (script === '#gap' && tick === 25) this.#told = this.ledger.log.length;
      this.#tell();
      if (script === '#fail' && tick === 24) return done(() => this.ledger.end('FAILED', [], failureOf(question)));
      if (script === '#retry' && tick === 30 && turn.attempt === 1) return done(() => this.ledger.requeue('lost'));
      const finished = (tick - 14) * 4 > words.length && script !== '#hold';
      if (finished) done(() => this.ledger.end('DONE', [words.join('')]));
    });
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://fake');
    const mentor = url.pathname.match(/^\/workspaces\/[^/]+\/mentor\/(.*)$/)?.[1];
    if (this.down) return reply(response, 502, 'away');
    const isWire = url.pathname === '/session' || mentor !== undefined;
    if (this.refuseWith !== null && isWire) return problem(response, REFUSED[this.refuseWith]);
    if (url.pathname === '/session') return reply(response, 200, this.session);
    if (mentor === undefined) return serveFile(url.pathname, response);
    if (mentor === 'events') return this.#stream(response);
    if (mentor === 'questions') return this.#ask(JSON.parse(await body(request)), response);
    if (mentor.endsWith('/entries')) {
      await this.pagesAfter;
      const before = Number(url.searchParams.get('before') ?? Number.POSITIVE_INFINITY);
      return reply(response, 200, this.ledger.page(before, Number(url.searchParams.get('limit') ?? 50)));
    }
    if (mentor === 'conversation/read') {
      this.ledger.read((JSON.parse(await body(request)) as { lastReadAt: string }).lastReadAt);
      this.#tell();
      return reply(response, 200, this.ledger.snapshot().conversations[0]);
    }
    const turn = this.#turn(mentor.match(/^turns\/([^/]+)/)?.[1]);
    if (turn === undefined) return problem(response, { status: 404, code: 'TURN_NOT_FOUND', detail: 'There is no such turn.' });
    if (request.method === 'PATCH') this.ledger.stop(turn);
    this.#tell();
    return reply(response, 200, turn);
  }

  #ask({ text, requestId }: { text: string; requestId: string }, response: ServerResponse): void {
    const refusal = refusals.find(({ word }) => text.includes(word));
    if (refusal !== undefined) {
      problem(response, refusal);
      return;
    }
    this.#nowMs = Date.now();
    const isNew = !this.ledger.turns.some((turn) => turn.requestId === requestId);
    const rows = this.ledger.ask(requestId, text);
    if (text.includes('#wait')) this.ledger.wait(rows.turn.id, 3);
    // The write happened and its answer is lost: the page must not show or ask it twice.
    if (text.includes('#lost') && isNew) response.destroy();
    else reply(response, 202, rows);
    this.#work();
  }

  #stream(response: ServerResponse): void {
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    this.#streams.add(response);
    response.on('close', () => this.#streams.delete(response));
    response.write(`event: snapshot\ndata: ${JSON.stringify(this.ledger.snapshot())}\n\n`);
  }
}

/** `#fail BUDGET` fails as a spent budget does; without a code it is a fault of the reply. */
function failureOf(question: string): { code: string; text: string } {
  const { refusals, ...failures } = failureTexts('Hephaestus');
  const all = [...Object.values(failures), ...Object.entries(refusals).map(([code, text]) => ({ code, text }))];
  return all.find(({ code }) => question.includes(`#fail ${code}`)) ?? failures.error;
}

function dataOf(event: LedgerEvent): object {
  switch (event.type) {
    case 'turn':
      return event.turn;
    case 'entry':
      return event.entry;
    case 'partial':
      return event.partial;
    case 'read':
      return { conversationId: event.conversationId, lastReadAt: event.lastReadAt };
  }
}

async function serveFile(path: string, response: ServerResponse): Promise<void> {
  const name = path === '/' ? '/index.html' : path;
  const content = await readFile(join(dist, name)).catch(() => null);
  if (content === null) return reply(response, 404, 'not found');
  const type = types[extname(name)] ?? 'application/octet-stream';
  response.writeHead(200, { 'content-type': type, 'content-security-policy': contentSecurityPolicy });
  response.end(content);
}

function reply(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'content-type': status < 400 ? 'application/json' : 'application/problem+json' });
  response.end(JSON.stringify(value));
}

interface Refusal {
  status: number;
  code: string;
  detail: string;
  retry?: string;
}

function problem(response: ServerResponse, { status, code, detail, retry = 'later' }: Refusal): void {
  reply(response, status, { type: `urn:heph:${code}`, title: code, status, code, detail, retry });
}

async function body(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  return text;
}

if (import.meta.main) {
  const server = new FakeWebServer({ history: 40, session: { demoModel: true } });
  console.log(await server.listen(Number(process.argv[2] ?? 8090)));
}
