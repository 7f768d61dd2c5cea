/**
 * Owns: a stand-in for the server, to look at the page in each of its states without a database, a sandbox or a model.
 * Does not own: any proof. It keeps no rule of the ledger; the specs of the page run against the real server.
 * Run it with `node spec/support/fake-web-server.ts` after `npm run build`. Words in a question choose what happens to it: see `scripts` in fake-web-conversation.ts.
 */
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import type { Me } from '../../src/contract/people.ts';
import type { Entry, Session, Turn } from '../../src/contract/web.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import { showcase } from './fake-web-answers.ts';
import { FakeConversation, findWords } from './fake-web-conversation.ts';
import type { WebLedger } from './page-ledger.ts';

export interface FakeOptions {
  /** Answered questions that are there at the start, one each nine hours. */
  history?: number;
  /** How many of their answers are new. */
  unread?: number;
  session?: Partial<Session>;
  /** What `GET /auth/me` says about where the person is. */
  me?: Partial<Me>;
  /** Origins of pages that may show the panel. */
  embedOrigins?: readonly string[];
}

const contentSecurityPolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
  "manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors ";
const types: Record<string, string> = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' };
const dist = join(import.meta.dirname, '../../dist/web');
const historyStepMs = 9 * 3_600_000;

const REFUSED = {
  401: {
    status: 401,
    code: 'SIGNED_OUT',
    detail: 'Nobody is signed in here, or the session has ended. Sign in.',
    retry: 'never',
    signInUrl: '/auth/login',
  },
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

const noEntry = { status: 404, code: 'ENTRY_NOT_FOUND', detail: 'There is no such message.' };

/** Members of the requests that change something. */
interface Given {
  text?: string;
  requestId?: string;
  conversationId?: string;
  parentEntryId?: string;
  lastReadAt?: string;
  allowed?: boolean;
  vote?: Entry['vote'];
}

export class FakeWebServer {
  readonly session: Session;
  /** While true every request is answered with 502, as a proxy does when the server is away. */
  down = false;
  /** Status with which every request but the page's own files is refused; null: none. */
  refuseWith: 401 | 403 | null = null;
  /** Pages of entries are answered when it resolves. */
  pagesAfter: Promise<void> = Promise.resolve();
  /** The next request that changes a message is refused. */
  refuseWish = false;
  readonly me: Me;
  readonly #main = new FakeConversation((event, data) => this.#say(event, data));
  readonly #threads: FakeConversation[] = [];
  readonly #streams = new Set<ServerResponse>();
  readonly #http = createServer((request, response) => void this.#serve(request, response));

  readonly #embedOrigins: readonly string[];

  constructor({ history = 0, unread = 0, session = {}, me = {}, embedOrigins = [] }: FakeOptions = {}) {
    this.#embedOrigins = embedOrigins;
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
    const here = { slug: workspace.slug, name: workspace.name, role: 'operator' as const };
    this.me = { account, workspaces: [here], signOutUrl: null, ...me };
    for (let ago = history; ago > 0; ago--) this.#remember(ago);
    const read = this.ledger.entries.filter((entry) => entry.kind === 'answer').at(-1 - unread);
    if (read !== undefined) this.ledger.read(read.createdAt);
    this.#main.keepQuiet();
  }

  get ledger(): WebLedger {
    return this.#main.ledger;
  }

  /** Begins a thread at a message of the main conversation. */
  beginThread(entry: Entry): FakeConversation {
    const parent = { conversationId: this.ledger.conversationId, entry };
    const thread = new FakeConversation((event, data) => this.#say(event, data), parent);
    this.#threads.unshift(thread);
    return thread;
  }

  /** The n-th thread, the newest is 0. */
  thread(n: number): FakeConversation {
    const thread = this.#threads[n];
    if (thread === undefined) throw new Error(`there is no thread ${n}`);
    return thread;
  }

  /** Tells the streams what was done to the ledger by hand. */
  tell(): void {
    for (const conversation of this.#all()) conversation.tell();
  }

  #all(): FakeConversation[] {
    return [this.#main, ...this.#threads];
  }

  #say(event: string, data: object): void {
    for (const stream of this.#streams) stream.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
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
    for (const conversation of this.#all()) conversation.close();
    this.#http.closeAllConnections();
    await new Promise((resolve) => this.#http.close(resolve));
  }

  #remember(ago: number): void {
    this.#main.nowMs = Date.now() - ago * historyStepMs;
    const { turn } = this.ledger.ask(uuidv7(), `Question ${ago} of the past: how does a lease end?`);
    this.ledger.claim();
    if (ago % 7 === 5) this.ledger.end('FAILED', []);
    else if (ago % 7 === 3) {
      this.ledger.stop(this.#main.turn(turn.id) as Turn);
      this.ledger.endStopped(`Answer ${ago}. A lease ends when`);
    } else this.ledger.end('DONE', [`Answer ${ago}. ${showcase.short}`]);
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://fake');
    const mentor = url.pathname.match(/^\/workspaces\/[^/]+\/mentor\/(.*)$/)?.[1];
    if (this.down) return reply(response, 502, 'away');
    const isWire = ['/session', '/auth/me'].includes(url.pathname) || mentor !== undefined;
    // Who belongs to no workspace is still somebody.
    const isMe = url.pathname === '/auth/me' && this.refuseWith === 403;
    if (this.refuseWith !== null && isWire && !isMe) return problem(response, REFUSED[this.refuseWith]);
    if (url.pathname === '/session') return reply(response, 200, this.session);
    if (url.pathname === '/auth/me') return reply(response, 200, this.me);
    if (url.pathname === this.me.signOutUrl) {
      this.refuseWith = 401;
      return reply(response, 200, { issuerSignOutUrl: null });
    }
    if (mentor === undefined) return serveFile(url.pathname, this.#embedOrigins, response);
    if (mentor === 'events') return this.#stream(response);
    if (mentor.endsWith('/entries')) return this.#entries(mentor, url.searchParams, response);
    if (mentor === 'search') return reply(response, 200, findWords(this.#all(), url.searchParams.get('q') ?? '', 20));
    if (mentor === 'threads' && request.method === 'GET')
      return reply(response, 200, { threads: this.#threads.map((one) => one.describe()) });
    const text = await body(request);
    this.#write(mentor, { method: request.method ?? 'GET', given: text === '' ? {} : JSON.parse(text) }, response);
  }

  async #entries(mentor: string, query: URLSearchParams, response: ServerResponse): Promise<void> {
    await this.pagesAfter;
    const asked = this.#all().find(({ ledger }) => mentor === `conversations/${ledger.conversationId}/entries`);
    if (asked === undefined)
      return problem(response, { status: 404, code: 'CONVERSATION_NOT_FOUND', detail: 'There is no such conversation.' });
    const [before, after, limit] = [query.get('before'), query.get('after'), Number(query.get('limit') ?? 50)];
    const place = after === null ? { before: before === null ? null : Number(before) } : { after: Number(after) };
    reply(response, 200, asked.ledger.pageOf({ ...place, limit }));
  }

  /** Everything that changes something, and one turn. */
  #write(mentor: string, { method, given }: { method: string; given: Given }, response: ServerResponse) {
    if (mentor === 'questions') return this.#ask(given, response);
    if (mentor === 'ai-choice') return reply(response, 200, { allowed: given.allowed });
    if (mentor === 'threads') {
      const parent = this.#main.entry(given.parentEntryId);
      return parent === undefined ? problem(response, noEntry) : reply(response, 201, this.beginThread(parent).describe());
    }
    if (mentor === 'conversation/read') return this.#conversation(this.ledger.conversationId, given.lastReadAt ?? '', response);
    const [, conversationId, isRead] = mentor.match(/^conversations\/([^/]+)(\/read)?$/) ?? [];
    if (conversationId !== undefined) return this.#conversation(conversationId, isRead ? (given.lastReadAt ?? '') : null, response);
    const [, kind, id] = mentor.match(/^(entries|turns)\/([^/]+)/) ?? [];
    const owner = this.#all().find((one) => one.turn(id) ?? one.entry(id));
    if (kind === 'entries') return this.#wish(owner, { id, method, vote: given.vote ?? null }, response);
    const turn = owner?.turn(id);
    if (turn === undefined) return problem(response, { status: 404, code: 'TURN_NOT_FOUND', detail: 'There is no such turn.' });
    if (method === 'PATCH') owner?.ledger.stop(turn);
    this.tell();
    return reply(response, 200, turn);
  }

  /** One conversation, read up to this time; null: it is only looked at. */
  #conversation(id: string, lastReadAt: string | null, response: ServerResponse) {
    const one = this.#all().find(({ ledger }) => ledger.conversationId === id);
    if (one === undefined)
      return problem(response, { status: 404, code: 'CONVERSATION_NOT_FOUND', detail: 'There is no such conversation.' });
    if (lastReadAt !== null) one.ledger.read(lastReadAt);
    this.tell();
    return reply(response, 200, one.describe());
  }

  #wish(
    owner: FakeConversation | undefined,
    wish: { id: string | undefined; method: string; vote: Entry['vote'] },
    response: ServerResponse,
  ) {
    const entry = owner?.entry(wish.id);
    if (owner === undefined || entry === undefined) return problem(response, noEntry);
    if (wish.method === 'GET') return reply(response, 200, entry);
    if (this.refuseWish) {
      this.refuseWish = false;
      return problem(response, { status: 503, code: 'BUSY', detail: 'Hephaestus is busy right now. Try again in a moment.' });
    }
    if (wish.method === 'DELETE') owner.ledger.erase(entry);
    else owner.ledger.vote(entry, wish.vote);
    reply(response, 200, entry);
    this.tell();
  }

  #ask({ text = '', requestId = '', conversationId }: Given, response: ServerResponse) {
    const refusal = refusals.find(({ word }) => text.includes(word));
    if (refusal !== undefined) return problem(response, refusal);
    const conversation = this.#all().find(({ ledger }) => ledger.conversationId === conversationId) ?? this.#main;
    conversation.nowMs = Date.now();
    const isNew = !conversation.ledger.turns.some((turn) => turn.requestId === requestId);
    const rows = conversation.ledger.ask(requestId, text);
    if (text.includes('#wait')) conversation.ledger.wait(rows.turn.id, 3);
    // The write happened and its answer is lost: the page must not show or ask it twice.
    if (text.includes('#lost') && isNew) response.destroy();
    else reply(response, 202, rows);
    conversation.work();
  }

  #stream(response: ServerResponse): void {
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    this.#streams.add(response);
    response.on('close', () => this.#streams.delete(response));
    response.write(`event: snapshot\ndata: ${JSON.stringify(this.ledger.snapshot(...this.#threads.map(({ ledger }) => ledger)))}\n\n`);
  }
}

async function serveFile(path: string, embedOrigins: readonly string[], response: ServerResponse): Promise<void> {
  const name = { '/': '/index.html', '/embed': '/embed/index.html' }[path] ?? path;
  const content = await readFile(join(dist, name)).catch(() => null);
  if (content === null) return reply(response, 404, 'not found');
  const type = types[extname(name)] ?? 'application/octet-stream';
  const ancestors = path === '/embed' && embedOrigins.length > 0 ? embedOrigins.join(' ') : "'none'";
  response.writeHead(200, { 'content-type': type, 'content-security-policy': contentSecurityPolicy + ancestors });
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
  signInUrl?: string;
}

function problem(response: ServerResponse, { retry = 'later', ...refusal }: Refusal): void {
  reply(response, refusal.status, { type: `urn:heph:${refusal.code}`, title: refusal.code, retry, ...refusal });
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
