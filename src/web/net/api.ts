/**
 * Owns: the requests of the web chat: same origin, JSON, each answer parsed with the contract's schemas.
 * Does not own: when to ask (chat/), or the words for a failure (strings.ts).
 */
import type { z } from 'zod';
import { type Problem, problemSchema } from '../../contract/common.ts';
import {
  type Conversation,
  conversationSchema,
  type EntryPage,
  entryPageSchema,
  type PostQuestionRequest,
  type QuestionResponse,
  questionResponseSchema,
  type Session,
  sessionSchema,
  type Turn,
  turnSchema,
} from '../../contract/web.ts';

/** `unreachable`: no answer came, so a write may or may not have happened. `problem`: the server said no. `garbled`: not our server's answer. */
export type ApiFailure = { kind: 'unreachable' } | { kind: 'problem'; problem: Problem } | { kind: 'garbled'; status: number };
export type ApiResult<T> = { ok: true; value: T } | { ok: false; failure: ApiFailure };

/** After this time without an answer a request counts as lost. Longer than the server's own bounds. */
const requestTimeoutMs = 30_000;

export interface ChatApi {
  session(): Promise<ApiResult<Session>>;
  entries(conversationId: string, query: { before: number | null; limit: number }): Promise<ApiResult<EntryPage>>;
  turn(turnId: string): Promise<ApiResult<Turn>>;
  ask(request: PostQuestionRequest): Promise<ApiResult<QuestionResponse>>;
  stop(turnId: string): Promise<ApiResult<Turn>>;
  /** Moves the read marker of the main conversation forward to this time. */
  read(lastReadAt: string): Promise<ApiResult<Conversation>>;
}

interface Call<T> {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH';
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

/** Where the main conversation can be downloaded from. */
export function exportUrl(slug: string, format: 'json' | 'markdown'): string {
  return `/workspaces/${encodeURIComponent(slug)}/mentor/export?format=${format}`;
}

/** The session, which names the workspace that every other request needs. */
export function readSession(): Promise<ApiResult<Session>> {
  return call({ method: 'GET', path: '/session', schema: sessionSchema });
}

export function createApi(slug: string): ChatApi {
  const mentor = `/workspaces/${encodeURIComponent(slug)}/mentor`;
  return {
    session: readSession,
    entries(conversationId, { before, limit }) {
      const query = new URLSearchParams({ limit: String(limit), ...(before === null ? {} : { before: String(before) }) });
      return call({ method: 'GET', path: `${mentor}/conversations/${conversationId}/entries?${query}`, schema: entryPageSchema });
    },
    turn: (turnId) => call({ method: 'GET', path: `${mentor}/turns/${turnId}`, schema: turnSchema }),
    ask: (body) => call({ method: 'POST', path: `${mentor}/questions`, schema: questionResponseSchema, body }),
    stop: (turnId) => call({ method: 'PATCH', path: `${mentor}/turns/${turnId}/status`, schema: turnSchema, body: { status: 'STOPPED' } }),
    read: (lastReadAt) => call({ method: 'PUT', path: `${mentor}/conversation/read`, schema: conversationSchema, body: { lastReadAt } }),
  };
}
