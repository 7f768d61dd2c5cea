/**
 * Owns: a Slack for specs that speaks the real wire: form-encoded calls with JSON inside, messages with metadata, history, and every way in
 * which a call can go wrong. `messages` is what people would see.
 */
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { text as readText } from 'node:stream/consumers';

/**
 * What becomes of one call. `hang` and `drop`: nothing is done, and no answer comes (the connection stays, or is cut). With `Accepted` the call
 * has been done all the same.
 */
export type Fate =
  | 'ok'
  | 'hang'
  | 'hangAccepted'
  | 'drop'
  | 'dropAccepted'
  | { readonly status: number; readonly accepted?: boolean }
  | { readonly limitedS: number | null }
  | { readonly error: string };

export interface FakeMessage {
  readonly channel: string;
  readonly ts: string;
  readonly threadTs: string | null;
  readonly text: string;
  readonly metadata: { readonly event_type: string; readonly event_payload: Record<string, unknown> } | null;
  readonly fields: Readonly<Record<string, string>>;
}

export interface FakeCall {
  readonly method: string;
  readonly token: string;
  readonly fields: Readonly<Record<string, string>>;
}

/** Longer than any time-out of a spec. */
const PAGE_MAX = 100;

export class FakeSlack {
  readonly messages: FakeMessage[] = [];
  readonly calls: FakeCall[] = [];
  /** Decides each call; default: it goes well. */
  fate: (call: FakeCall) => Fate = () => 'ok';
  teamId = 'T0TEAM';
  /** What the token may do, as a header of each answer says. */
  scopes = 'chat:write,im:history';
  #count = 0;
  readonly #server: http.Server;

  private constructor() {
    this.#server = http.createServer((request, response) => void this.#serve(request, response));
  }

  static async start(): Promise<FakeSlack> {
    const fake = new FakeSlack();
    fake.#server.listen(0, '127.0.0.1');
    await once(fake.#server, 'listening');
    return fake;
  }

  get apiUrl(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/api/`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  callsOf(method: string): readonly FakeCall[] {
    return this.calls.filter((call) => call.method === method);
  }

  /** How often each action is to be seen. */
  seen(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    for (const { metadata } of this.messages) {
      const action = String(metadata?.event_payload['action']);
      counts.set(action, (counts.get(action) ?? 0) + 1);
    }
    return counts;
  }

  async #serve(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const body = await readText(request).catch(() => '');
    const method = (request.url ?? '').replace('/api/', '');
    if (request.headers['content-type'] !== 'application/x-www-form-urlencoded') return void response.writeHead(400).end('not a form');
    const fields = Object.fromEntries(new URLSearchParams(body));
    const call = { method, fields, token: (request.headers.authorization ?? '').replace('Bearer ', '') };
    this.calls.push(call);
    const fate = this.fate(call);
    if (fate === 'hang') return;
    if (fate === 'drop') return void request.socket.destroy();
    if (typeof fate === 'object' && 'limitedS' in fate) {
      response.writeHead(429, fate.limitedS === null ? {} : { 'retry-after': String(fate.limitedS) }).end();
      return;
    }
    response.setHeader('x-oauth-scopes', this.scopes);
    if (typeof fate === 'object' && 'error' in fate) return answer(response, { ok: false, error: fate.error });
    if (typeof fate === 'object' && !fate.accepted) return void response.writeHead(fate.status).end('no');
    const result = this.#do(call);
    if (fate === 'hangAccepted') return;
    if (fate === 'dropAccepted') return void request.socket.destroy();
    if (typeof fate === 'object') return void response.writeHead(fate.status).end('no');
    answer(response, result);
  }

  #do({ method, fields }: FakeCall): Record<string, unknown> {
    switch (method) {
      case 'auth.test':
        return { ok: true, team_id: this.teamId, team: 'Team', user_id: 'U0BOT', bot_id: 'B0BOT', url: 'https://team.example.com/' };
      case 'oauth.v2.access':
        return this.#grant(fields);
      case 'chat.postMessage':
        return this.#post(fields);
      case 'conversations.replies':
        return this.#replies(fields);
      case 'conversations.history':
        return this.#history(fields);
      default:
        return { ok: false, error: 'unknown_method' };
    }
  }

  #grant({ code, client_id: clientId, client_secret: clientSecret }: Readonly<Record<string, string>>): Record<string, unknown> {
    if (code !== 'code-of-the-spec' || clientId !== 'client-id' || clientSecret !== 'client-secret')
      return { ok: false, error: 'invalid_code' };
    const installed = { app_id: 'A0APP', token_type: 'bot', access_token: 'xoxb-granted', bot_user_id: 'U0BOT', scope: this.scopes };
    return {
      ok: true,
      ...installed,
      team: { id: this.teamId, name: 'Team' },
      enterprise: null,
      authed_user: { id: 'U0ADA' },
      is_enterprise_install: false,
    };
  }

  #post(fields: Readonly<Record<string, string>>): Record<string, unknown> {
    const { channel = '', text = '', thread_ts: threadTs = null, metadata } = fields;
    if (text === '') return { ok: false, error: 'no_text' };
    this.#count += 1;
    const ts = `${Math.floor(Date.now() / 1_000)}.${String(this.#count).padStart(6, '0')}`;
    this.messages.push({ channel, ts, threadTs, text, metadata: metadata === undefined ? null : JSON.parse(metadata), fields });
    return { ok: true, channel, ts, message: { text, ts } };
  }

  #replies(fields: Readonly<Record<string, string>>): Record<string, unknown> {
    const { channel, ts: root = '', oldest = '0' } = fields;
    if (root === '') return { ok: false, error: 'invalid_arguments' };
    const inThread = this.messages.filter((message) => message.channel === channel && message.threadTs === root && message.ts > oldest);
    return page(inThread, fields, [{ type: 'message', ts: root, thread_ts: root, user: 'U0ADA', text: 'a question' }]);
  }

  /** Messages that are in no thread, newest first. */
  #history(fields: Readonly<Record<string, string>>): Record<string, unknown> {
    const { channel, oldest = '0' } = fields;
    const roots = this.messages.filter((message) => message.channel === channel && message.threadTs === null && message.ts > oldest);
    return page(roots.reverse(), fields);
  }
}

/** One page of messages as Slack lists them; `first` stands before each page. */
function page(
  all: readonly FakeMessage[],
  { include_all_metadata: withMetadata, limit = '100', cursor = '0' }: Readonly<Record<string, string>>,
  first: readonly Record<string, unknown>[] = [],
): Record<string, unknown> {
  const [from, count] = [Number(cursor), Math.min(Number(limit), PAGE_MAX)];
  const more = all.length > from + count;
  const messages = all.slice(from, from + count).map(({ ts, text, threadTs, metadata }) => ({
    ...{ type: 'message', ts, text, bot_id: 'B0BOT', ...(threadTs === null ? {} : { thread_ts: threadTs }) },
    ...(withMetadata === 'true' && metadata ? { metadata } : {}),
  }));
  return {
    ok: true,
    messages: [...first, ...messages],
    has_more: more,
    response_metadata: { next_cursor: more ? String(from + count) : '' },
  };
}

function answer(response: http.ServerResponse, body: Record<string, unknown>): void {
  response.writeHead(200, { 'content-type': 'application/json; charset=utf-8' }).end(JSON.stringify(body));
}
