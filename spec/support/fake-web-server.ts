/**
 * Owns: a stand-in for the server, to look at the page in each of its states without a database, a sandbox or a model.
 * Does not own: any proof. It keeps no rule of the ledger; the specs of the page run against the real server.
 * Run it with `node spec/support/fake-web-server.ts` after `npm run build`. Words in a question choose what happens to it: see `scripts`.
 */
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import type { Entry, Session, Turn } from '../../src/contract/web.ts';
import { systemClock, type Timer } from '../../src/kernel/clock.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import { showcase } from './fake-web-answers.ts';

export interface FakeOptions {
  port?: number;
  /** Answered questions that are there at the start. */
  history?: number;
  session?: Partial<Session>;
  /** Folder of the built page. */
  dist?: string;
}

const contentSecurityPolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
  "manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
const types: Record<string, string> = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' };
const pageEntries = 20;

/** What is in a question -> what happens to it. Anything else is answered with a piece of everything. */
const scripts = ['#fail', '#hold', '#wait', '#retry', '#gap', '#short'] as const;
const refusals = [
  { word: '#busy', status: 503, code: 'BUSY', detail: 'Hephaestus is busy right now. Try again in a moment.' },
  {
    word: '#full',
    status: 409,
    code: 'FOLLOW_UPS_FULL',
    detail: '10 follow-up questions are waiting already. Remove one of them, or wait.',
  },
];
type Script = (typeof scripts)[number] | 'answer';

export class FakeWebServer {
  readonly session: Session;
  /** While true every request is answered with 502, as a proxy does when the server is away. */
  down = false;
  readonly #conversationId = uuidv7();
  readonly #entries: Entry[] = [];
  readonly #turns: Turn[] = [];
  readonly #partials = new Map<string, { epoch: number; text: string; stage: string | null }>();
  readonly #streams = new Set<ServerResponse>();
  readonly #dist: string;
  readonly #http = createServer((request, response) => void this.#serve(request, response));
  #running: Timer | null = null;

  constructor(options: FakeOptions = {}) {
    this.#dist = options.dist ?? join(import.meta.dirname, '../../dist/web');
    this.session = {
      assistantName: 'Hephaestus',
      account: { id: uuidv7(), displayName: 'Ada', timeZone: 'Europe/Berlin' },
      workspace: { id: uuidv7(), slug: 'home', name: 'Home' },
      demoModel: false,
      warnings: [],
      limits: { questionMaxChars: 32_000, maxFollowUps: 10 },
      ...options.session,
    };
    for (let index = options.history ?? 0; index > 0; index--) this.#remember(index);
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

  async close(): Promise<void> {
    this.#running?.cancel();
    this.#http.closeAllConnections();
    await new Promise((resolve) => this.#http.close(resolve));
  }

  #remember(daysAgo: number): void {
    const at = new Date(Date.now() - daysAgo * 9 * 3_600_000).toISOString();
    const turn = this.#newTurn(`#short Question ${daysAgo} of the past: how does a lease end?`, uuidv7(), at);
    Object.assign(turn, { status: daysAgo % 7 === 3 ? 'STOPPED' : 'DONE', startedAt: at, endedAt: at, attempt: 1 });
    if (daysAgo % 7 === 5) {
      const text = "Hephaestus's AI model stopped responding, so Hephaestus could not finish this reply. Try again in a moment.";
      Object.assign(turn, { status: 'FAILED', error: { code: 'STALLED', text } });
    } else this.#addEntry(turn, 'answer', `Answer ${daysAgo}. ${showcase.short}`, at);
  }

  #newTurn(text: string, requestId: string, at: string): Turn {
    const turn: Turn = {
      id: uuidv7(),
      conversationId: this.#conversationId,
      questionEntryId: '',
      requestId,
      status: 'QUEUED',
      attempt: 0,
      waitingFor: text.includes('#wait') ? 'FREE_HEPH' : null,
      position: text.includes('#wait') ? 3 : null,
      stage: null,
      error: null,
      createdAt: at,
      startedAt: null,
      endedAt: null,
    };
    turn.questionEntryId = this.#addEntry(turn, 'question', text, at).id;
    this.#turns.push(turn);
    return turn;
  }

  #addEntry(turn: Turn, kind: Entry['kind'], text: string, at: string): Entry {
    const card = { type: 'card' as const, kind: 'link', id: 'a', title: 'Leases and retries', url: 'https://example.org/leases', text: '' };
    const entry: Entry = {
      id: uuidv7(),
      conversationId: this.#conversationId,
      seq: this.#entries.length + 1,
      turnId: turn.id,
      kind,
      surface: 'app',
      text,
      parts: kind === 'question' ? [] : [{ type: 'text', text }, ...(text.includes('card') ? [card] : [])],
      createdAt: at,
      erasedAt: null,
      vote: null,
    };
    this.#entries.push(entry);
    return entry;
  }

  #send(event: string, data: unknown): void {
    for (const stream of this.#streams) stream.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  }

  #snapshot(): unknown {
    const latest = this.#turns.findLast((turn) => turn.endedAt !== null);
    const turns = this.#turns.filter((turn) => turn === latest || turn.status === 'QUEUED' || turn.status === 'RUNNING');
    const ids = { id: this.#conversationId, parentConversationId: null, parentEntryId: null };
    const times = { lastAnswerAt: null, lastReadAt: null, createdAt: new Date(0).toISOString() };
    const partials = [...this.#partials].map(([turnId, partial]) => ({
      conversationId: this.#conversationId,
      turnId,
      offset: 0,
      ...partial,
    }));
    return { conversations: this.#entries.length === 0 ? [] : [{ ...ids, ...times, latestSeq: this.#entries.length, turns }], partials };
  }

  #page(before: number, limit: number): unknown {
    const older = this.#entries.filter((entry) => entry.seq < before);
    const entries = older.slice(-Math.min(limit, pageEntries));
    const first = entries[0];
    const nextBefore = first !== undefined && older.length > entries.length ? first.seq : null;
    return { entries, nextBefore, turns: this.#turns.filter((turn) => entries.some((entry) => entry.turnId === turn.id)) };
  }

  #startNext(): void {
    if (this.#running !== null) return;
    const turn = this.#turns.find((candidate) => candidate.status === 'QUEUED' && candidate.waitingFor === null);
    if (turn === undefined) return;
    const question = this.#entries.find((entry) => entry.id === turn.questionEntryId)?.text ?? '';
    this.#attempt(turn, scripts.find((script) => question.includes(script)) ?? 'answer');
  }

  #attempt(turn: Turn, script: Script): void {
    const epoch = turn.attempt + 1;
    Object.assign(turn, { status: 'RUNNING', attempt: epoch, startedAt: new Date().toISOString() });
    this.#send('turn', turn);
    const text = script === '#short' ? showcase.short : showcase.everything;
    const words = text.match(/\S+\s*|\n/g) ?? [];
    let tick = 0;
    let written = '';
    this.#running = systemClock.every(90, () => {
      tick += 1;
      const stage = tick < 8 ? 'Thinking…' : tick < 14 ? 'Reading the repository…' : 'Thinking…';
      const delta = tick < 14 ? '' : words.splice(0, 4).join('');
      const offset = script === '#gap' && tick === 30 ? written.length + 500 : written.length;
      written += delta;
      this.#partials.set(turn.id, { epoch, text: written, stage });
      this.#send('partial', { conversationId: turn.conversationId, turnId: turn.id, epoch, offset, text: delta, stage });
      if (script === '#fail' && tick === 24) this.#end(turn, 'FAILED', '');
      else if (script === '#retry' && tick === 30 && epoch === 1) this.#requeue(turn);
      else if (words.length === 0 && script !== '#hold') this.#end(turn, 'DONE', text);
    });
  }

  #requeue(turn: Turn): void {
    this.#running?.cancel();
    this.#running = null;
    this.#partials.delete(turn.id);
    Object.assign(turn, { status: 'QUEUED' });
    this.#send('turn', turn);
    systemClock.after(1_500, () => this.#startNext());
  }

  #end(turn: Turn, status: Turn['status'], text: string): void {
    if (turn.status === 'RUNNING') {
      this.#running?.cancel();
      this.#running = null;
    }
    const written = this.#partials.get(turn.id)?.text ?? '';
    this.#partials.delete(turn.id);
    const error = { code: 'ERROR', text: 'Hephaestus could not finish this reply. Try again.' };
    Object.assign(turn, { status, endedAt: new Date().toISOString(), error: status === 'FAILED' ? error : null, waitingFor: null });
    this.#send('turn', turn);
    const answer = status === 'STOPPED' ? written : text;
    if (answer !== '') this.#send('entry', this.#addEntry(turn, 'answer', answer, new Date().toISOString()));
    this.#startNext();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://fake');
    if (this.down) return reply(response, 502, 'away');
    if (url.pathname === '/session') return reply(response, 200, this.session);
    const mentor = url.pathname.match(/^\/workspaces\/[^/]+\/mentor\/(.*)$/)?.[1];
    if (mentor === undefined) return this.#file(url.pathname, response);
    if (mentor === 'events') return this.#stream(response);
    if (mentor.endsWith('/entries')) {
      const before = Number(url.searchParams.get('before') ?? Number.POSITIVE_INFINITY);
      return reply(response, 200, this.#page(before, Number(url.searchParams.get('limit') ?? 50)));
    }
    const turnId = mentor.match(/^turns\/([^/]+)/)?.[1];
    const turn = this.#turns.find((candidate) => candidate.id === turnId);
    if (mentor === 'questions') return this.#ask(JSON.parse(await body(request)), response);
    if (turn === undefined) return problem(response, { status: 404, code: 'TURN_NOT_FOUND', detail: 'There is no such turn.' });
    if (request.method === 'PATCH') this.#end(turn, 'STOPPED', '');
    return reply(response, 200, turn);
  }

  #ask({ text, requestId }: { text: string; requestId: string }, response: ServerResponse): void {
    const refusal = refusals.find(({ word }) => text.includes(word));
    if (refusal !== undefined) {
      problem(response, refusal);
      return;
    }
    const known = this.#turns.find((candidate) => candidate.requestId === requestId);
    const turn = known ?? this.#newTurn(text, requestId, new Date().toISOString());
    const entry = this.#entries.find((candidate) => candidate.id === turn.questionEntryId);
    // The write happened and its answer is lost: the page must not show or ask it twice.
    if (text.includes('#lost') && known === undefined) response.destroy();
    else reply(response, 202, { entry, turn });
    this.#send('turn', turn);
    this.#send('entry', entry);
    this.#startNext();
  }

  #stream(response: ServerResponse): void {
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    this.#streams.add(response);
    response.on('close', () => this.#streams.delete(response));
    response.write(`event: snapshot\ndata: ${JSON.stringify(this.#snapshot())}\n\n`);
  }

  async #file(path: string, response: ServerResponse): Promise<void> {
    const name = path === '/' ? '/index.html' : path;
    const content = await readFile(join(this.#dist, name)).catch(() => null);
    if (content === null) return reply(response, 404, 'not found');
    response.writeHead(200, {
      'content-type': types[extname(name)] ?? 'application/octet-stream',
      'content-security-policy': contentSecurityPolicy,
    });
    response.end(content);
  }
}

function reply(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'content-type': status < 400 ? 'application/json' : 'application/problem+json' });
  response.end(JSON.stringify(value));
}

function problem(response: ServerResponse, { status, code, detail }: { status: number; code: string; detail: string }): void {
  reply(response, status, { type: `urn:heph:${code}`, title: code, status, code, detail, retry: 'later' });
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
