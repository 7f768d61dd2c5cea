/**
 * Owns: the sandboxes of a bench: one process that serves every conversation the way a runner does, over real HTTP with kept connections:
 * pull, context, model calls, one partial, the end. It runs no Pi, so what is left is the server's part of a turn.
 * It notes when each step of a turn was through.
 */
import { Agent, request } from 'undici';
import type { AgentRun, ContextResponse } from '../src/contract/agent.ts';
import { LIMITS } from '../src/contract/limits.ts';
import type { Assignment } from './server-child.ts';
import { nowMs } from './support/clock.ts';
import { serveParent, tellParent } from './support/parent.ts';
import { lastQuestionIn } from './support/question.ts';
import { endOf, modelRequest } from './support/stub-turn.ts';

/** Moments of one turn as its runner saw them (support/clock.ts). */
export interface RunnerTimes {
  readonly question: number;
  /** The pull was answered with the run. */
  readonly pulledMs: number;
  /** The context was there; the first model call leaves. */
  readonly contextMs: number;
  /** The last model call was answered. */
  readonly answeredMs: number;
  readonly partialMs: number;
  /** The end was taken. */
  readonly endedMs: number;
}

interface Settings {
  readonly gateway: string;
  readonly modelCalls: number;
}

const agent = new Agent({ headersTimeout: 0, bodyTimeout: 0 });
const stopping = new AbortController();
const times: RunnerTimes[] = [];
let settings: Settings = { gateway: '', modelCalls: 1 };

type Call = { readonly path: string; readonly headers: Readonly<Record<string, string>>; readonly body?: unknown };

/** One call; its answer as text, null for none. Throws on anything but success. */
async function call({ path, headers, body }: Call): Promise<string | null> {
  const response = await request(settings.gateway + path, {
    dispatcher: agent,
    method: body === undefined ? 'GET' : 'POST',
    headers: body === undefined ? headers : { ...headers, 'content-type': 'application/json' },
    body: body === undefined ? null : JSON.stringify(body),
    signal: stopping.signal,
  });
  const text = await response.body.text();
  if (response.statusCode >= 300) throw new Error(`${path} answered ${response.statusCode}: ${text.slice(0, 300)}`);
  return response.statusCode === 204 ? null : text;
}

/** Serves one conversation until the bench ends. */
async function serve({ credential }: Assignment): Promise<void> {
  const headers = { authorization: `Bearer ${credential}` };
  while (!stopping.signal.aborted) {
    const pulled = await call({ path: '/internal/agent/next', headers, body: { waitMs: LIMITS.pullWaitMaxMs } });
    if (pulled === null) continue;
    const { run } = JSON.parse(pulled) as { run: AgentRun };
    times.push(await runTurn(run, { ...headers, 'x-agent-run': run.id, 'x-agent-epoch': String(run.epoch) }));
  }
}

async function runTurn(run: AgentRun, headers: Readonly<Record<string, string>>): Promise<RunnerTimes> {
  const pulledMs = nowMs();
  const base = `/internal/agent/runs/${run.id}`;
  const context = JSON.parse((await call({ path: `${base}/context`, headers })) ?? '') as ContextResponse;
  const contextMs = nowMs();
  for (let nth = 0; nth < settings.modelCalls; nth++) {
    await call({ path: '/internal/llm/v1/chat/completions', headers, body: modelRequest(context) });
  }
  const answeredMs = nowMs();
  const end = endOf(context, settings.modelCalls);
  await call({ path: `${base}/turn/partial`, headers, body: { offset: 0, ...end.lastPartial } });
  const partialMs = nowMs();
  await call({ path: `${base}/turn/end`, headers, body: end });
  return { question: lastQuestionIn(context.prompt), pulledMs, contextMs, answeredMs, partialMs, endedMs: nowMs() };
}

const commands = {
  set: (given: Settings): void => {
    settings = given;
  },
  assign: (assignment: Assignment): void => {
    serve(assignment).catch((error: unknown) => {
      if (!stopping.signal.aborted) tellParent('failed', error instanceof Error ? error.message : String(error));
    });
  },
  /** The turns that have ended since the last time. */
  collect: (): RunnerTimes[] => times.splice(0),
  stop: async (): Promise<void> => {
    stopping.abort();
    await agent.destroy();
  },
};
export type RunnerCommands = typeof commands;

serveParent(commands, null);
