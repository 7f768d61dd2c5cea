/**
 * Owns: the description of the web wire (OpenAPI 3.1), made from the contract's schemas. `GET /openapi.json` serves it, openapi.json tracks it.
 */
import { OpenAPIRegistry, OpenApiGeneratorV31, zodToOpenAPIRegistry } from '@asteasolutions/zod-to-openapi';
import { z } from 'zod';
import { idSchema, problemSchema } from '../contract/common.ts';
import { partialSchema, readSchema, STREAM_EVENTS, snapshotSchema } from '../contract/events.ts';
import { LIMITS } from '../contract/limits.ts';
import { meSchema, signOutSchema, slugSchema } from '../contract/people.ts';
import {
  aiChoiceSchema,
  conversationSchema,
  entryPageSchema,
  entrySchema,
  exportFormatSchema,
  exportSchema,
  partSchema,
  patchTurnStatusRequestSchema,
  postQuestionRequestSchema,
  postThreadRequestSchema,
  putReadRequestSchema,
  putVoteRequestSchema,
  questionResponseSchema,
  sessionSchema,
  threadListSchema,
  turnSchema,
  webSearchHitSchema,
  webSearchResponseSchema,
} from '../contract/web.ts';
import type { FaultCode } from '../kernel/faults.ts';
import { FAULT_STATUS } from './fault-status.ts';

/** Schemas that get a name of their own in the document. */
const COMPONENTS: Readonly<Record<string, z.ZodType>> = {
  Session: sessionSchema,
  Me: meSchema,
  PostQuestionRequest: postQuestionRequestSchema,
  PostThreadRequest: postThreadRequestSchema,
  ThreadList: threadListSchema,
  QuestionResponse: questionResponseSchema,
  Conversation: conversationSchema,
  EntryPage: entryPageSchema,
  Export: exportSchema,
  Entry: entrySchema,
  Part: partSchema,
  Turn: turnSchema,
  PatchTurnStatusRequest: patchTurnStatusRequestSchema,
  PutReadRequest: putReadRequestSchema,
  AiChoice: aiChoiceSchema,
  PutVoteRequest: putVoteRequestSchema,
  SearchHit: webSearchHitSchema,
  SearchResponse: webSearchResponseSchema,
  Snapshot: snapshotSchema,
  Partial: partialSchema,
  Read: readSchema,
  Problem: problemSchema,
};

interface Operation {
  readonly method: 'get' | 'post' | 'put' | 'patch' | 'delete';
  readonly path: string;
  readonly operationId: string;
  readonly summary: string;
  readonly body?: z.ZodType;
  readonly query?: z.ZodObject;
  readonly status: 200 | 201 | 202 | 303;
  readonly answer: {
    readonly description: string;
    readonly schema: z.ZodType;
    readonly mediaType?: string;
    /** Other media types that it may have. */
    readonly also?: Readonly<Record<string, z.ZodType>>;
  };
  /** Codes beside those that every operation has. */
  readonly faults: readonly FaultCode[];
}

const MENTOR = '/workspaces/{slug}/mentor';
/** Codes that any operation may answer. */
const COMMON_FAULTS: readonly FaultCode[] = [
  'UNAUTHENTICATED',
  'SIGNED_OUT',
  'SIGN_IN_UNAVAILABLE',
  'FORBIDDEN',
  'ORIGIN_REFUSED',
  'BUSY',
  'DATABASE_UNAVAILABLE',
  'INTERNAL',
];
const BODY_FAULTS: readonly FaultCode[] = ['BAD_REQUEST', 'BAD_JSON', 'BODY_TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE'];

const pageQuery = z.object({
  before: z.number().int().min(1).optional().meta({ description: 'Only entries with a smaller seq: `nextBefore` of the page before.' }),
  after: z.number().int().min(0).optional().meta({ description: 'Instead of `before`: the entries behind this seq, the oldest first.' }),
  limit: z
    .number()
    .int()
    .min(1)
    .max(LIMITS.pageMaxEntries)
    .optional()
    .meta({ description: `Default ${LIMITS.pageDefaultEntries}.` }),
});

const searchQuery = z.object({
  q: z.string().min(1).max(LIMITS.searchQueryMaxChars).meta({
    description:
      'All words must be there, the last one may be the beginning of a word; "words in quotes" stand together, -word is not there.',
  }),
  conversationId: idSchema.optional().meta({ description: 'Only this conversation; default: all of the account.' }),
  limit: z
    .number()
    .int()
    .min(1)
    .max(LIMITS.searchHitsMax)
    .optional()
    .meta({ description: `Default ${LIMITS.searchHitsMax}.` }),
});

const exportQuery = z.object({
  format: exportFormatSchema,
  conversationId: idSchema.optional().meta({ description: 'Default: the main conversation.' }),
});

const eventText = Object.keys(STREAM_EVENTS).join(', ');

const OPERATIONS: readonly Operation[] = [
  {
    ...{ method: 'get', path: '/session', operationId: 'getSession', status: 200 },
    summary: 'The asking account, its first workspace (or the named one) and the installation.',
    query: z.object({ workspace: slugSchema.optional() }),
    answer: { description: 'The session.', schema: sessionSchema },
    faults: ['WORKSPACE_NOT_FOUND'],
  },
  {
    ...{ method: 'get', path: '/auth/me', operationId: 'getMe', status: 200 },
    summary: 'The asking account and its workspaces.',
    answer: { description: 'The account.', schema: meSchema },
    faults: [],
  },
  {
    ...{ method: 'post', path: '/auth/logout', operationId: 'signOut', status: 200 },
    summary: 'Ends the session of the browser. A form, which accepts HTML, gets a page.',
    answer: { description: 'Where to sign out at the issuer, too.', schema: signOutSchema },
    faults: ['NOT_FOUND'],
  },
  {
    ...{ method: 'get', path: '/auth/login', operationId: 'beginSignIn', status: 303 },
    summary: 'For a person to open: goes to the identity provider. Afterwards the browser is at `return`, a path of this site.',
    query: z.object({ return: z.string().optional() }),
    answer: { description: 'To the identity provider; or a small page that says why not.', schema: z.string(), mediaType: 'text/html' },
    faults: ['NOT_FOUND'],
  },
  {
    ...{ method: 'get', path: '/auth/callback', operationId: 'endSignIn', status: 303 },
    summary: 'For the identity provider to send the browser to.',
    answer: {
      description: 'To the page that was asked for; or a small page that says why not.',
      schema: z.string(),
      mediaType: 'text/html',
    },
    faults: ['NOT_FOUND'],
  },
  {
    ...{ method: 'get', path: '/auth/no-access', operationId: 'getNoAccess', status: 200 },
    summary: 'For a person who is signed in and belongs to no workspace.',
    answer: { description: 'A small page.', schema: z.string(), mediaType: 'text/html' },
    faults: ['NOT_FOUND'],
  },
  {
    ...{ method: 'post', path: `${MENTOR}/questions`, operationId: 'postQuestion', status: 202 },
    summary: 'Asks a question. It becomes a durable turn; the same requestId with the same text gives the same rows again.',
    body: postQuestionRequestSchema,
    answer: { description: 'The question and its turn.', schema: questionResponseSchema },
    faults: [
      ...BODY_FAULTS,
      ...([
        'TEXT_EMPTY',
        'TEXT_TOO_LONG',
        'REQUEST_ID_REUSED',
        'FOLLOW_UPS_FULL',
        'CONVERSATION_NOT_FOUND',
        'PERSON_ERASED',
        'DRAINING',
      ] as const),
    ],
  },
  {
    ...{ method: 'get', path: `${MENTOR}/conversation`, operationId: 'getConversation', status: 200 },
    summary: "The account's main conversation.",
    answer: { description: 'The conversation.', schema: conversationSchema },
    faults: ['CONVERSATION_NOT_FOUND'],
  },
  {
    ...{ method: 'get', path: `${MENTOR}/conversations/{conversationId}`, operationId: 'getOwnConversation', status: 200 },
    summary: 'One conversation of the account, the main one or a thread.',
    answer: { description: 'The conversation.', schema: conversationSchema },
    faults: ['CONVERSATION_NOT_FOUND'],
  },
  {
    ...{ method: 'get', path: `${MENTOR}/conversations/{conversationId}/entries`, operationId: 'getEntries', status: 200 },
    summary: 'A page of entries, the newest page first.',
    query: pageQuery,
    answer: { description: 'Entries in ascending seq, and their turns.', schema: entryPageSchema },
    faults: ['BAD_REQUEST', 'CONVERSATION_NOT_FOUND'],
  },
  {
    ...{ method: 'get', path: `${MENTOR}/threads`, operationId: 'getThreads', status: 200 },
    summary: "The account's open threads, the newest first. Their entries, questions and turns work as those of the main conversation.",
    answer: { description: 'At most 50 threads.', schema: threadListSchema },
    faults: [],
  },
  {
    ...{ method: 'post', path: `${MENTOR}/threads`, operationId: 'postThread', status: 201 },
    summary: 'Begins a thread at a message of the main conversation. The same requestId with the same message gives the same thread again.',
    body: postThreadRequestSchema,
    answer: { description: 'The thread.', schema: conversationSchema },
    faults: [...BODY_FAULTS, 'ENTRY_NOT_FOUND', 'REQUEST_ID_REUSED', 'PERSON_ERASED'],
  },
  {
    ...{ method: 'get', path: `${MENTOR}/turns/{turnId}`, operationId: 'getTurn', status: 200 },
    summary: 'One turn.',
    answer: { description: 'The turn.', schema: turnSchema },
    faults: ['TURN_NOT_FOUND'],
  },
  {
    ...{ method: 'patch', path: `${MENTOR}/turns/{turnId}/status`, operationId: 'stopTurn', status: 200 },
    summary: 'Stops a queued or running turn. Stopping a stopped turn gives it again.',
    body: patchTurnStatusRequestSchema,
    answer: { description: 'The stopped turn.', schema: turnSchema },
    faults: [...BODY_FAULTS, 'TURN_NOT_FOUND', 'TURN_ALREADY_ENDED'],
  },
  {
    ...{ method: 'put', path: `${MENTOR}/conversation/read`, operationId: 'putRead', status: 200 },
    summary: 'Moves the read marker of the main conversation forward. An earlier time changes nothing.',
    body: putReadRequestSchema,
    answer: { description: 'The conversation.', schema: conversationSchema },
    faults: [...BODY_FAULTS, 'CONVERSATION_NOT_FOUND', 'PERSON_ERASED'],
  },
  {
    ...{ method: 'put', path: `${MENTOR}/conversations/{conversationId}/read`, operationId: 'putConversationRead', status: 200 },
    summary: 'Moves the read marker of a conversation forward, of a thread for example. An earlier time changes nothing.',
    body: putReadRequestSchema,
    answer: { description: 'The conversation.', schema: conversationSchema },
    faults: [...BODY_FAULTS, 'CONVERSATION_NOT_FOUND', 'PERSON_ERASED'],
  },
  {
    ...{ method: 'put', path: `${MENTOR}/ai-choice`, operationId: 'putAiChoice', status: 200 },
    summary:
      'Says whether an AI model may work for this account in this workspace, from the next turn that starts. While it may not, turns fail.',
    body: aiChoiceSchema,
    answer: { description: 'The choice.', schema: aiChoiceSchema },
    faults: [...BODY_FAULTS, 'PERSON_ERASED'],
  },
  {
    ...{ method: 'put', path: `${MENTOR}/entries/{entryId}/vote`, operationId: 'putVote', status: 200 },
    summary: 'Votes on an answer or a digest, or takes the vote back.',
    body: putVoteRequestSchema,
    answer: { description: 'The entry.', schema: entrySchema },
    faults: [...BODY_FAULTS, 'ENTRY_NOT_FOUND', 'PERSON_ERASED'],
  },
  {
    ...{ method: 'get', path: `${MENTOR}/entries/{entryId}`, operationId: 'getEntry', status: 200 },
    summary: 'One message. An erased one is an empty place.',
    answer: { description: 'The entry.', schema: entrySchema },
    faults: ['ENTRY_NOT_FOUND'],
  },
  {
    ...{ method: 'delete', path: `${MENTOR}/entries/{entryId}`, operationId: 'deleteEntry', status: 200 },
    summary:
      'Erases one message and every copy of its words. A question that is erased stops its turn. Its answer is a message of its own.',
    answer: { description: 'The erased entry: an empty place.', schema: entrySchema },
    faults: ['ENTRY_NOT_FOUND'],
  },
  {
    ...{ method: 'get', path: `${MENTOR}/search`, operationId: 'getSearch', status: 200 },
    summary: "Finds questions, answers and digests of the account's conversations, best first.",
    query: searchQuery,
    answer: { description: 'What was found.', schema: webSearchResponseSchema },
    faults: ['BAD_REQUEST', 'CONVERSATION_NOT_FOUND'],
  },
  {
    ...{ method: 'get', path: `${MENTOR}/export`, operationId: 'getExport', status: 200 },
    summary: 'A whole conversation as a file, each question followed by its answers. Times in Markdown are in the zone of the account.',
    query: exportQuery,
    answer: {
      description: 'The conversation up to now. It is streamed: an answer that breaks off is not complete.',
      schema: exportSchema,
      also: { 'text/markdown': z.string() },
    },
    faults: ['BAD_REQUEST', 'CONVERSATION_NOT_FOUND'],
  },
  {
    ...{ method: 'get', path: `${MENTOR}/events`, operationId: 'getEvents', status: 200 },
    summary: `Server-sent events (${eventText}). Each connection begins with a snapshot; there is no replay: after a gap, connect again.`,
    answer: {
      description: `A stream. The name of an event tells the schema of its data: ${Object.keys(STREAM_EVENTS).join(', ')}. Comments are pings.`,
      schema: z.union([snapshotSchema, turnSchema, entrySchema, partialSchema, readSchema]),
      mediaType: 'text/event-stream',
    },
    faults: ['TOO_MANY_STREAMS', 'DRAINING'],
  },
  {
    ...{ method: 'get', path: '/openapi.json', operationId: 'getOpenApi', status: 200 },
    summary: 'This document.',
    answer: { description: 'An OpenAPI 3.1 document.', schema: z.looseObject({ openapi: z.string() }) },
    faults: [],
  },
];

/** The document, as plain JSON values. */
export function buildOpenApi(): object {
  const registry = new OpenAPIRegistry();
  for (const [refId, schema] of Object.entries(COMPONENTS)) zodToOpenAPIRegistry.add(schema, { _internal: { refId } });
  for (const operation of OPERATIONS) registry.registerPath(describe(operation));
  return new OpenApiGeneratorV31(registry.definitions).generateDocument({
    openapi: '3.1.0',
    info: {
      title: 'Heph',
      version: '1',
      description: 'The web wire of Heph. Every error is a problem document (RFC 9457) with a stable `code`.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
  });
}

function describe(operation: Operation): Parameters<OpenAPIRegistry['registerPath']>[0] {
  const { method, path, operationId, summary, body, query, answer } = operation;
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
  const params = z.object(Object.fromEntries(names.map((name) => [name, name === 'slug' ? z.string() : idSchema])));
  const ok = { description: answer.description, content: contentOf(answer) };
  return {
    ...{ method, path, operationId, summary },
    request: {
      ...(names.length > 0 ? { params } : {}),
      ...(query ? { query } : {}),
      ...(body ? { body: { required: true, content: { 'application/json': { schema: body } } } } : {}),
    },
    responses: { [operation.status]: ok, ...problemResponses(path, operation.faults) },
  };
}

function contentOf({ mediaType = 'application/json', schema, also = {} }: Operation['answer']): Record<string, { schema: z.ZodType }> {
  return Object.fromEntries(Object.entries({ [mediaType]: schema, ...also }).map(([type, of]) => [type, { schema: of }]));
}

/** One response per status, which names the codes that it may carry. */
function problemResponses(path: string, faults: readonly FaultCode[]): Parameters<OpenAPIRegistry['registerPath']>[0]['responses'] {
  const scoped: readonly FaultCode[] = path.includes('{slug}') ? ['WORKSPACE_NOT_FOUND'] : [];
  const codes = [...new Set([...faults, ...scoped, ...COMMON_FAULTS])];
  const byStatus = Map.groupBy(codes, (code) => FAULT_STATUS[code].status);
  const content = { 'application/problem+json': { schema: problemSchema } };
  return Object.fromEntries([...byStatus].map(([status, same]) => [status, { description: same.sort().join(', '), content }]));
}
