/**
 * Owns: the web wire (DESIGN section 6): requests and DTOs of `/workspaces/{slug}/mentor/…`.
 * Both sides parse with these schemas: the server its input, the browser its answers.
 */
import { z } from 'zod';
import { idSchema, surfaceSchema, timeSchema, turnStatusSchema } from './common.ts';
import { LIMITS } from './limits.ts';
import { roleSchema } from './people.ts';

/** Visible ASCII only, so that an id looks the same in a log, a header and a URL. */
export const requestIdSchema = z
  .string()
  .min(1)
  .max(LIMITS.requestIdMaxChars)
  .regex(/^[\x21-\x7e]+$/, 'must be 1 to 128 visible ASCII characters without spaces');

/** The page that the person looks at, sent by an embedding page. `selection`: the words that they have marked there. */
export const pageContextSchema = z.object({
  url: z.string().max(LIMITS.pageUrlMaxChars),
  title: z.string().max(LIMITS.pageTitleMaxChars),
  selection: z.string().max(LIMITS.pageSelectionMaxChars).optional(),
});
export type PageContext = z.infer<typeof pageContextSchema>;

export const postQuestionRequestSchema = z.object({
  requestId: requestIdSchema,
  text: z.string(),
  conversationId: idSchema.optional(),
  page: pageContextSchema.optional(),
});
export type PostQuestionRequest = z.infer<typeof postQuestionRequestSchema>;

/** `parentEntryId`: a message of the main conversation that the account sees. */
export const postThreadRequestSchema = z.object({ requestId: requestIdSchema, parentEntryId: idSchema });
export type PostThreadRequest = z.infer<typeof postThreadRequestSchema>;

export const patchTurnStatusRequestSchema = z.object({ status: z.literal('STOPPED') });
export const putReadRequestSchema = z.object({ lastReadAt: timeSchema });

/** null takes the vote back. */
export const putVoteRequestSchema = z.object({ vote: z.enum(['up', 'down']).nullable() });

export const turnErrorSchema = z.object({ code: z.string(), text: z.string() });
export const turnSchema = z.object({
  id: idSchema,
  conversationId: idSchema,
  questionEntryId: idSchema,
  requestId: z.string(),
  status: turnStatusSchema,
  /** Attempts that were claimed so far: 0 while the question waits for the first time. */
  attempt: z.number().int(),
  /** `FREE_HEPH`: a server may start the turn and every slot is taken. null: no known reason. */
  waitingFor: z.literal('FREE_HEPH').nullable(),
  /** Rank among the turns that wait for a free slot, from 1; else null. */
  position: z.number().int().nullable(),
  /** What the assistant does right now, for a person; null when the turn does not run. */
  stage: z.string().nullable(),
  error: turnErrorSchema.nullable(),
  createdAt: timeSchema,
  startedAt: timeSchema.nullable(),
  endedAt: timeSchema.nullable(),
});
export type Turn = z.infer<typeof turnSchema>;

export const partSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text'), text: z.string() }),
  z.object({ type: z.literal('card'), kind: z.string(), id: z.string(), title: z.string(), url: z.string().nullable(), text: z.string() }),
]);
export type Part = z.infer<typeof partSchema>;

export const entrySchema = z.object({
  id: idSchema,
  conversationId: idSchema,
  seq: z.number().int(),
  turnId: idSchema.nullable(),
  kind: z.enum(['question', 'answer', 'digest']),
  surface: surfaceSchema,
  /** All words of the entry; empty when it was erased. */
  text: z.string(),
  parts: z.array(partSchema),
  createdAt: timeSchema,
  erasedAt: timeSchema.nullable(),
  vote: z.enum(['up', 'down']).nullable(),
});
export type Entry = z.infer<typeof entrySchema>;

export const questionResponseSchema = z.object({ entry: entrySchema, turn: turnSchema });
export type QuestionResponse = z.infer<typeof questionResponseSchema>;

/**
 * Entries in ascending `seq`; the first page is the newest one. `nextBefore` is the next page's `before`, null at the beginning.
 * A page that was asked for with `after` leads on to newer entries instead: `nextAfter` is null at the end, and is there on such a page only.
 * `turns` are the turns of the page's entries, so that a page can say why a question has no answer.
 */
export const entryPageSchema = z.object({
  entries: z.array(entrySchema),
  nextBefore: z.number().int().nullable(),
  nextAfter: z.number().int().nullable().optional(),
  turns: z.array(turnSchema),
});
export type EntryPage = z.infer<typeof entryPageSchema>;

export const exportFormatSchema = z.enum(['json', 'markdown']);
export type ExportFormat = z.infer<typeof exportFormatSchema>;

/** `GET export?format=json`: a whole conversation, each question followed by its answers. */
export const exportSchema = z.object({
  assistantName: z.string(),
  workspace: z.string(),
  account: z.object({ displayName: z.string(), timeZone: z.string() }),
  conversation: z.object({ id: idSchema, createdAt: timeSchema }),
  exportedAt: timeSchema,
  /** `turn` is how the turn of an entry ended; null for an entry without one. */
  entries: z.array(entrySchema.extend({ turn: z.object({ status: turnStatusSchema, error: turnErrorSchema.nullable() }).nullable() })),
});
export type Export = z.infer<typeof exportSchema>;

export const conversationSchema = z.object({
  id: idSchema,
  parentConversationId: idSchema.nullable(),
  parentEntryId: idSchema.nullable(),
  /** Of a thread: the first words of its parent; empty when they were erased. The main conversation has none. */
  title: z.string().optional(),
  latestSeq: z.number().int(),
  lastAnswerAt: timeSchema.nullable(),
  lastReadAt: timeSchema.nullable(),
  createdAt: timeSchema,
  /** Turns that are queued or running, and the newest ended one, in order of their questions. */
  turns: z.array(turnSchema),
});
export type Conversation = z.infer<typeof conversationSchema>;

/** Whether an AI model may work for this person in this workspace. While it may not, each turn fails with the refusal AI_CHOICE. */
export const aiChoiceSchema = z.object({ allowed: z.boolean() });
export type AiChoice = z.infer<typeof aiChoiceSchema>;
/** A question, an answer or a digest that was found. `matches` are parts of `excerpt`, in UTF-16 units, in order and apart from each other. */
export const webSearchHitSchema = z.object({
  entryId: idSchema,
  conversationId: idSchema,
  kind: z.enum(['question', 'answer', 'digest']),
  createdAt: timeSchema,
  excerpt: z.string(),
  matches: z.array(z.object({ start: z.number().int(), end: z.number().int() })),
});
/** Best first. `truncated`: there are more than were asked for. */
export const webSearchResponseSchema = z.object({ hits: z.array(webSearchHitSchema).max(LIMITS.searchHitsMax), truncated: z.boolean() });
export type WebSearchResponse = z.infer<typeof webSearchResponseSchema>;
/** Open threads, newest first. */
export const threadListSchema = z.object({ threads: z.array(conversationSchema) });
export type ThreadList = z.infer<typeof threadListSchema>;

/** What the page must know about the installation before it can draw itself. */
export const sessionSchema = z.object({
  assistantName: z.string(),
  account: z.object({ id: idSchema, displayName: z.string(), timeZone: z.string() }),
  workspace: z.object({ id: idSchema, slug: z.string(), name: z.string() }),
  /** What the account may do in this workspace. */
  role: roleSchema,
  /** True while no provider is configured and the built-in demo model answers. */
  demoModel: z.boolean(),
  /** The person's choice in this workspace: `PUT …/mentor/ai-choice`. */
  aiAllowed: z.boolean(),
  /** Warnings that a person must see, for example that sandboxes are not isolated. */
  warnings: z.array(z.string()),
  limits: z.object({ questionMaxChars: z.number().int(), maxFollowUps: z.number().int() }),
});
export type Session = z.infer<typeof sessionSchema>;
