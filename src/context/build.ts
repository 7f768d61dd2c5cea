/**
 * Owns: what `GET context` answers: the path, the prompt, the system prompt, the situation, the model and the documents of one attempt.
 * Nothing is cached: each attempt is built from rows. Does not own: the fence (the caller judges it).
 */
import { readPath, readTurnFacts } from '../../db/context/read-path.ts';
import { readContextRequest } from '../../db/context/read-request.ts';
import type { Database } from '../../db/pool.ts';
import type { ContextResponse } from '../contract/agent.ts';
import type { RunId } from '../kernel/ids.ts';
import { buildPath, questionText } from './path.ts';
import type { ContextRegistry } from './registry.ts';
import { situation } from './situation.ts';
import { systemPrompt } from './system-prompt.ts';
import { tar } from './tar.ts';

export interface ContextOptions {
  readonly assistantName: string;
  readonly registry: ContextRegistry;
}

/** null: the run has no turn (any more), its turn was not admitted, or its account is no member any more. */
export async function buildContext(db: Database, runId: RunId, options: ContextOptions): Promise<ContextResponse | null> {
  const files = readContextRequest(db, runId).then((request) => request && options.registry.files(request));
  const [facts, rows, documents] = await Promise.all([readTurnFacts(db, runId), readPath(db, runId), files]);
  if (!facts?.admission || documents === null) return null;
  const { model: id, api, contextTokens, outputTokens } = facts.admission;
  const current = rows.find((row) => row.id === facts.questionEntryId);
  if (!current) return null;
  return {
    conversationId: facts.conversationId,
    turnId: facts.turnId,
    questionEntryId: facts.questionEntryId,
    entries: buildPath(
      rows.filter((row) => row !== current),
      facts.timeZone,
    ),
    prompt: questionText(current, facts.timeZone),
    systemPrompt: systemPrompt(options.assistantName),
    situation: situation(facts),
    model: { id, api, contextTokens, outputTokens },
    documents: tar(documents).toString('base64'),
  };
}
