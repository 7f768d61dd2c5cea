/**
 * Conversations that are too long for the smallest model, for specs of the runner: their turns, and a model that is asked for summaries.
 */
import type { ServerResponse } from 'node:http';
import type { PiEntry } from '../../src/contract/agent.ts';
import { storedTurn, streamWords } from './agent-scripts.ts';
import type { FakeAgentServer, SeenCall } from './fake-agent-server.ts';

type Answer = (response: ServerResponse) => void | Promise<void>;

export const SUMMARY = '## Goal\nThey talked about practices.';
/** Text of so many tokens, by Pi's rule of four characters. */
export const words = (tokens: number): string => 'tale'.repeat(tokens);
/** The question of a turn of `history`. */
export const asked = (turn: number): string => `Question ${turn}? ${words(2_000)}`;

/** Turns of 3,000 tokens each, two thirds of them the question's; the provider counted `tokens` for all of it. */
export function history(turns: number, tokens: number): PiEntry[] {
  return Array.from({ length: turns }, (_, index) => {
    const [question, answer] = storedTurn(index + 1, words(1_000), index + 1 === turns ? tokens : 0) as [PiEntry, PiEntry];
    return [{ ...question, message: { role: 'user', content: asked(index + 1), timestamp: index + 1 } }, answer];
  }).flat();
}

/** Whether a model call asks for a summary. */
export function isSummary(call: SeenCall): boolean {
  return JSON.stringify(call.body).includes('context summarization assistant');
}

export function compactionOf(entries: readonly PiEntry[]): PiEntry | undefined {
  return entries.find((entry) => entry.type === 'compaction');
}

/** The model of one fake server: how it answers summaries and questions, and what it was asked. */
export class SummarisingModel {
  readonly #fake: FakeAgentServer;

  constructor(fake: FakeAgentServer) {
    this.#fake = fake;
  }

  use(
    summary: Answer = (response) => streamWords(response, [SUMMARY]),
    question: Answer = (response) => streamWords(response, ['Here you are.']),
  ): void {
    this.#fake.on('model', (call, response) => (isSummary(call) ? summary(response) : question(response)));
  }

  get summaries(): SeenCall[] {
    return this.#fake.named('model').filter(isSummary);
  }

  get questions(): SeenCall[] {
    return this.#fake.named('model').filter((call) => !isSummary(call));
  }
}
