/**
 * Owns: every limit that more than one process must agree on. A number lives here once; its unit is in its name.
 */
export const LIMITS = {
  /** A question's words, in Unicode code points after normalisation. */
  questionMaxChars: 32_000,
  /** Body of a web request. Larger than the longest question in UTF-8 (4 bytes a code point), escaped. */
  webBodyMaxBytes: 512 * 1024,
  /** Body of an agent request except model calls and ends. */
  agentBodyMaxBytes: 512 * 1024,
  /** Body of a model call and of an end at the gateway. */
  gatewayBodyMaxBytes: 4 * 1024 * 1024,
  /** What an embedding page says about itself (the `page` of a question), in UTF-16 units. */
  pageUrlMaxChars: 2_000,
  pageTitleMaxChars: 300,
  pageSelectionMaxChars: 2_000,
  /** A client's own name for a question. */
  requestIdMaxChars: 128,
  /**
   * The path of a turn, in bytes of what is stored. Far above a conversation that is shortened in time; a runner takes 96 MiB, documents
   * included. A longer one fails its turn (`context_overflow`) and is never cut.
   */
  pathMaxBytes: 24 * 1024 * 1024,
  /** Entries that one end may carry. */
  entriesPerEndMax: 500,
  /** Entries on one page. */
  pageMaxEntries: 200,
  pageDefaultEntries: 50,
  /** Longest time that a pull for the next run waits at the server. */
  pullWaitMaxMs: 25_000,
  /** How often the driver renews its lease, at least; a shorter lease is renewed earlier. */
  renewEveryMs: 25_000,
  /** How often the loop reports what it has written. */
  partialEveryMs: 250,
  /** Words of one answer that are published while it is written, in UTF-16 units. A longer answer arrives whole at its end. */
  partialMaxChars: 1_000_000,
  /** How long a loop may still end its attempt after a stop or a deadline. */
  stopGraceMs: 30_000,
  /** Attempts of one turn (rule R9). */
  attemptsMax: 2,
  /** Model calls of one turn over all of its attempts, retries and summaries included. */
  modelCallsMax: 40,
  /** One command of the bash tool. */
  bashTimeoutMs: 60_000,
  /** What a person or the model looks for, in UTF-16 units. */
  searchQueryMaxChars: 500,
  /** Hits of one search. */
  searchHitsMax: 20,
  /** The words around a match, in Unicode code points. */
  searchExcerptMaxChars: 300,
  /** A path of the context folder, in UTF-16 units. */
  documentPathMaxChars: 500,
  /** One context document, UTF-8. */
  documentMaxBytes: 256 * 1024,
  /** Repositories (heavy items) that one attempt may load. */
  loadsPerAttemptMax: 5,
  /** Files of a tree that can be loaded. */
  loadFilesMax: 50_000,
  /** Loads that one server prepares at once. */
  loadsAtOnceMax: 2,
  /** Events that wait for one reader before it gets a fresh snapshot instead. */
  streamQueueMaxEvents: 256,
  /** Stage text. */
  stageMaxChars: 120,
} as const;

/** Context the smallest usable conversation model has, in tokens. */
export const SMALLEST_MODEL = { contextTokens: 32_768, outputTokens: 4_096 } as const;
