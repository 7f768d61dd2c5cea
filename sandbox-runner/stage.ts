/**
 * Owns: every label of a turn's stage (seed 000, "The stage"). The only place that holds them.
 * Rule: a stage never contains a tool name, a path, a command or a repository name, because the model selects them.
 */

const THINKING = 'Thinking…';
const REPOSITORY = 'Reading the repository…';

/** Context documents, by what their path contains. */
const DOCUMENTS: readonly (readonly [RegExp, string])[] = [
  [/\b(prepared_conversation_feedback|delivered_feedback)\b/, 'Reading your practice feedback…'],
  [/\b(practice_catalog|practice_profile)\b/, 'Reading your practices…'],
  [/\bweekly_digest\b/, 'Reading your weekly digest…'],
  [/\b(results_history|review_attempts)\b/, 'Reading your review results…'],
  [/\b(recent_authored_work|activity)\b/, 'Reading your recent work…'],
  [/\b(merge_readiness|issue)[/.]/, 'Reading your open work…'],
  [/\bslack_conversations\b/, 'Reading your Slack conversations…'],
  [/\boutline_docs\b/, 'Reading the documents…'],
  [/\b(user|workspace)\.json\b/, 'Reading about your workspace…'],
  [/\bINDEX\.md\b/, 'Looking at what there is to read…'],
];
const RUNS_GIT = /(^|[\s;&|(`/])git(\s|$)/;
const NAMES_REPOSITORY = /(^|[^\w-])repos\//;

/** Where documents are, for a call that names a repository, too. */
const IN_DOCUMENTS = /inputs\/context\/\S+/g;

/** The stage while no tool is in progress. */
export const idleStage = THINKING;

/** The stage while one tool call is in progress. `args` is what the model wrote: anything at all. */
export function turnStage(tool: string, args: unknown): string {
  if (tool === 'load_context') return 'Loading the repository…';
  if (tool === 'search_conversation') return 'Looking back through this conversation…';
  if (tool !== 'read' && tool !== 'bash') return THINKING;
  const named = namedIn(args, tool === 'read' ? 'path' : 'command');
  const isRepository = NAMES_REPOSITORY.test(named);
  // A file of a repository can have the name of a document.
  const documents = isRepository ? (named.match(IN_DOCUMENTS)?.join(' ') ?? '') : named;
  for (const [document, label] of DOCUMENTS) {
    if (document.test(documents)) return label;
  }
  return isRepository || (tool === 'bash' && RUNS_GIT.test(named)) ? REPOSITORY : THINKING;
}

function namedIn(args: unknown, field: 'path' | 'command'): string {
  const value = typeof args === 'object' && args !== null ? (args as Record<string, unknown>)[field] : undefined;
  return typeof value === 'string' ? value : '';
}
