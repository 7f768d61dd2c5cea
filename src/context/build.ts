/**
 * Owns: what `GET context` answers: the path, the prompt, the system prompt, the situation, the model and the documents of one attempt.
 * Nothing is cached: each attempt is built from rows. Does not own: the fence (the caller judges it).
 */
import { type ContextFacts, readTurnFacts } from '../../db/context/read-facts.ts';
import { readPath } from '../../db/context/read-path.ts';
import type { MentorContextRequest } from '../../db/context/read-request.ts';
import type { Database } from '../../db/pool.ts';
import type { ContextResponse } from '../contract/agent.ts';
import { LIMITS } from '../contract/limits.ts';
import type { RunId } from '../kernel/ids.ts';
import { renderPath } from './path.ts';
import type { PathWatch } from './path-watch.ts';
import type { ContextRegistry } from './registry.ts';
import { questionText } from './render.ts';
import { situation } from './situation.ts';
import { systemPrompt } from './system-prompt.ts';
import { tar } from './tar.ts';

export interface ContextOptions {
  readonly assistantName: string;
  /** Builds the documents; without one, there are none. */
  readonly registry?: ContextRegistry;
  /** Longest path, in bytes of what is stored; default LIMITS.pathMaxBytes. */
  readonly pathMaxBytes?: number;
  /** Told of each path; without one, nobody compares. */
  readonly watch?: PathWatch;
}

/**
 * null: the run has no turn (any more), its turn was not admitted, or its account is no member any more.
 * `too-long`: nothing of it is given out.
 */
export async function buildContext(db: Database, runId: RunId, options: ContextOptions): Promise<ContextResponse | 'too-long' | null> {
  const maxBytes = options.pathMaxBytes ?? LIMITS.pathMaxBytes;
  const known = readTurnFacts(db, runId);
  const files = known.then((facts) => (facts?.isMember ? (options.registry?.files(requestOf(facts)) ?? []) : null));
  const [facts, read, documents] = await Promise.all([known, readPath(db, runId, maxBytes), files]);
  if (!facts?.admission || documents === null) return null;
  if (read.kind === 'too-long') return 'too-long';
  const { model: id, api, contextTokens, outputTokens } = facts.admission;
  const current = read.rows.find((row) => row.id === facts.questionEntryId);
  if (!current) return null;
  const path = renderPath(read.rows, facts.timeZone);
  const prompt = systemPrompt(options.assistantName);
  options.watch?.note({ facts, path, systemPrompt: prompt });
  return {
    conversationId: facts.conversationId,
    turnId: facts.turnId,
    questionEntryId: facts.questionEntryId,
    entries: path.entries.flatMap(({ entry }) => (entry.id === current.id ? [] : [entry])),
    prompt: questionText(current, facts.timeZone),
    systemPrompt: prompt,
    situation: situation(facts),
    model: { id, api, contextTokens, outputTokens },
    timeZone: facts.timeZone,
    documents: tar(documents).toString('base64'),
  };
}

/** What sources are asked with: the same facts. */
function requestOf(facts: ContextFacts): MentorContextRequest {
  const { workspaceId, accountId, conversationId, turnId, questionEntryId, now } = facts;
  return {
    workspace: { id: workspaceId, name: facts.workspaceName, slug: facts.workspaceSlug },
    account: { id: accountId, displayName: facts.displayName, timeZone: facts.timeZone },
    ...{ conversationId, turnId, questionEntryId, now },
  };
}
