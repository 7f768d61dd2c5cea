/**
 * Owns: the requests of the web chat: same origin, JSON, each answer parsed with the contract's schemas.
 * Does not own: when to ask (chat/), or the words for a failure (strings.ts).
 */
import type { z } from 'zod';
import { type Problem, problemSchema } from '../../contract/common.ts';
import { type Me, meSchema, type SignOut, signOutSchema } from '../../contract/people.ts';
import {
  type AiChoice,
  aiChoiceSchema,
  type Conversation,
  conversationSchema,
  type Entry,
  type EntryPage,
  entryPageSchema,
  entrySchema,
  type PostQuestionRequest,
  type QuestionResponse,
  questionResponseSchema,
  type Session,
  sessionSchema,
  type ThreadList,
  type Turn,
  threadListSchema,
  turnSchema,
  type WebSearchResponse,
  webSearchResponseSchema,
} from '../../contract/web.ts';

/** `unreachable`: no answer came, so a write may or may not have happened. `problem`: the server said no. `garbled`: not our server's answer. */
export type ApiFailure = { kind: 'unreachable' } | { kind: 'problem'; problem: Problem } | { kind: 'garbled'; status: number };
export type ApiResult<T> = { ok: true; value: T } | { ok: false; failure: ApiFailure };

/** After this time without an answer a request counts as lost. Longer than the server's own bounds. */
const requestTimeoutMs = 30_000;

/** The newest page (`before` null), the page above `before`, or the page behind `after`. */
export type PageQuery = { readonly limit: number } & ({ readonly before: number | null } | { readonly after: number });

/** What the chat needs of the server. */
export interface ChatApi {
  entries(conversationId: string, query: PageQuery): Promise<ApiResult<EntryPage>>;
  /** One message, whether or not it is loaded. */
  entry(entryId: string): Promise<ApiResult<Entry>>;
  /** One conversation, however many threads there are. */
  conversation(conversationId: string): Promise<ApiResult<Conversation>>;
  turn(turnId: string): Promise<ApiResult<Turn>>;
  ask(request: PostQuestionRequest): Promise<ApiResult<QuestionResponse>>;
  stop(turnId: string): Promise<ApiResult<Turn>>;
  /**
   * Moves a read marker forward to this time.
   * @param threadId null: the main conversation's
   */
  read(threadId: string | null, lastReadAt: string): Promise<ApiResult<Conversation>>;
  threads(): Promise<ApiResult<ThreadList>>;
  beginThread(request: { requestId: string; parentEntryId: string }): Promise<ApiResult<Conversation>>;
  vote(entryId: string, vote: Entry['vote']): Promise<ApiResult<Entry>>;
  erase(entryId: string): Promise<ApiResult<Entry>>;
}

/** What the page needs beside the chat. */
export interface PageApi extends ChatApi {
  /** @param words 1 to 500 characters */
  search(words: string): Promise<ApiResult<WebSearchResponse>>;
  chooseAi(allowed: boolean): Promise<ApiResult<AiChoice>>;
}

interface Call<T> {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  path: string;
  schema: z.ZodType<T>;
  body?: unknown;
}

async function readAnswer<T>(response: Response, schema: z.ZodType<T>): Promise<ApiResult<T>> {
  const json: unknown = await response.json().catch(() => undefined);
  if (response.ok) {
    const parsed = schema.safeParse(json);
    return parsed.success ? { ok: true, value: parsed.data } : { ok: false, failure: { kind: 'garbled', status: response.status } };
  }
  const problem = problemSchema.safeParse(json);
  const failure: ApiFailure = problem.success ? { kind: 'problem', problem: problem.data } : { kind: 'garbled', status: response.status };
  return { ok: false, failure };
}

/** Never rejects: a failure is a value. */
async function call<T>({ method, path, schema, body }: Call<T>): Promise<ApiResult<T>> {
  try {
    const response = await fetch(path, {
      method,
      headers: { accept: 'application/json', 'content-type': 'application/json' },
      credentials: 'same-origin',
      cache: 'no-store',
      signal: AbortSignal.timeout(requestTimeoutMs),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return await readAnswer(response, schema);
  } catch {
    return { ok: false, failure: { kind: 'unreachable' } };
  }
}

export function eventsUrl(slug: string): string {
  return `/workspaces/${encodeURIComponent(slug)}/mentor/events`;
}

/**
 * Where a conversation can be downloaded from.
 * @param threadId null: the main one
 */
export function exportUrl(slug: string, format: 'json' | 'markdown', threadId: string | null): string {
  const query = new URLSearchParams({ format, ...(threadId === null ? {} : { conversationId: threadId }) });
  return `/workspaces/${encodeURIComponent(slug)}/mentor/export?${query}`;
}

/**
 * The session, which names the workspace that every other request needs.
 * @param slug null: the account's first workspace
 */
export function readSession(slug: string | null): Promise<ApiResult<Session>> {
  const query = slug === null ? '' : `?${new URLSearchParams({ workspace: slug })}`;
  return call({ method: 'GET', path: `/session${query}`, schema: sessionSchema });
}

/** Who is signed in, and where. */
export function readMe(): Promise<ApiResult<Me>> {
  return call({ method: 'GET', path: '/auth/me', schema: meSchema });
}

export function signOut(url: string): Promise<ApiResult<SignOut>> {
  return call({ method: 'POST', path: url, schema: signOutSchema });
}

export function createApi(slug: string): PageApi {
  const mentor = `/workspaces/${encodeURIComponent(slug)}/mentor`;
  return {
    entries(conversationId, { limit, ...place }) {
      const from = Object.entries(place).flatMap(([name, seq]) => (seq === null ? [] : [[name, String(seq)]]));
      const query = new URLSearchParams({ limit: String(limit), ...Object.fromEntries(from) });
      return call({ method: 'GET', path: `${mentor}/conversations/${conversationId}/entries?${query}`, schema: entryPageSchema });
    },
    entry: (entryId) => call({ method: 'GET', path: `${mentor}/entries/${entryId}`, schema: entrySchema }),
    conversation: (id) => call({ method: 'GET', path: `${mentor}/conversations/${id}`, schema: conversationSchema }),
    turn: (turnId) => call({ method: 'GET', path: `${mentor}/turns/${turnId}`, schema: turnSchema }),
    ask: (body) => call({ method: 'POST', path: `${mentor}/questions`, schema: questionResponseSchema, body }),
    stop: (turnId) => call({ method: 'PATCH', path: `${mentor}/turns/${turnId}/status`, schema: turnSchema, body: { status: 'STOPPED' } }),
    read(threadId, lastReadAt) {
      const which = threadId === null ? 'conversation' : `conversations/${threadId}`;
      return call({ method: 'PUT', path: `${mentor}/${which}/read`, schema: conversationSchema, body: { lastReadAt } });
    },
    threads: () => call({ method: 'GET', path: `${mentor}/threads`, schema: threadListSchema }),
    beginThread: (body) => call({ method: 'POST', path: `${mentor}/threads`, schema: conversationSchema, body }),
    vote: (entryId, vote) => call({ method: 'PUT', path: `${mentor}/entries/${entryId}/vote`, schema: entrySchema, body: { vote } }),
    erase: (entryId) => call({ method: 'DELETE', path: `${mentor}/entries/${entryId}`, schema: entrySchema }),
    search: (words) =>
      call({ method: 'GET', path: `${mentor}/search?${new URLSearchParams({ q: words })}`, schema: webSearchResponseSchema }),
    chooseAi: (allowed) => call({ method: 'PUT', path: `${mentor}/ai-choice`, schema: aiChoiceSchema, body: { allowed } }),
  };
}
