/**
 * Owns: a person behind a proxy whose servers come and go: asks and reads as a page does, with the same request again until it is answered.
 */
import { randomUUID } from 'node:crypto';
import type { QuestionResponse, Turn } from '../../src/contract/web.ts';
import { pause, systemClock } from '../../src/kernel/clock.ts';
import { hold, type Script, says } from './model-script.ts';
import { WebClient } from './person.ts';

const TRY_AGAIN_MS = 100;

export class PatientPerson {
  readonly client: WebClient;

  constructor(base: string) {
    this.client = new WebClient(base);
  }

  /** Asks, and resolves with the turn when it has ended, however it ended. */
  async answered(text: string, conversationId?: string): Promise<Turn> {
    const body = { requestId: randomUUID(), text, ...(conversationId ? { conversationId } : {}) };
    const { turn } = await this.#patiently<QuestionResponse>('POST', 'questions', body);
    for (;;) {
      const now = await this.#patiently<Turn>('GET', `turns/${turn.id}`);
      if (now.endedAt !== null) return now;
      await pause(systemClock, TRY_AGAIN_MS);
    }
  }

  async #patiently<T>(method: string, path: string, body?: unknown): Promise<T> {
    for (;;) {
      const answer = await this.client.send(method, path, body).catch(() => null);
      if (answer && answer.status < 300) return answer.body as T;
      if (answer && answer.status < 500) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
      await pause(systemClock, TRY_AGAIN_MS);
    }
  }
}

/** A provider that writes its answer for about so long. */
export function writesFor(ms: number): Script {
  return ({ question }) => {
    const middle = hold();
    void middle.arrived.then(() => systemClock.after(ms, middle.release));
    const { steps } = says(`You asked: ${question}`);
    return { steps: [...steps.slice(0, 1), { hold: middle }, ...steps.slice(1)] };
  };
}
