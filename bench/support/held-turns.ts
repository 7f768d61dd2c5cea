/**
 * Owns: turns that are claimed and then held, so that model calls can be made in their name for as long as a measurement takes.
 * Does not own: the calls (gateway.ts).
 */
import { Agent, request } from 'undici';
import type { BenchRows } from '../../db/bench/rows.ts';
import type { AgentRun } from '../../src/contract/agent.ts';
import type { QuestionResponse } from '../../src/contract/web.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import type { Assignment, ServerCommands, ServerPorts } from '../server-child.ts';
import type { Child } from './child.ts';

/** What a model call of a held turn carries. */
export type AttemptHeaders = Readonly<Record<string, string>>;

const WEB = '/workspaces/home/mentor';
/** Pulls and questions at once while turns are gathered. */
const GATHER_AT_ONCE = 8;
const ATTEMPTS = 40;

export class HeldTurns {
  readonly #server: Child<ServerCommands, ServerPorts>;
  readonly #rows: BenchRows;
  readonly #agent = new Agent({ headersTimeout: 0, bodyTimeout: 0 });
  readonly #credentials = new Map<string, string>();

  constructor(server: Child<ServerCommands, ServerPorts>, rows: BenchRows) {
    this.#server = server;
    this.#rows = rows;
    server.on('assigned', ({ conversationId, credential }: Assignment) => void this.#credentials.set(conversationId, credential));
  }

  /** Asks in `count` conversations and claims each turn. */
  async gather(count: number): Promise<AttemptHeaders[]> {
    const first = await this.#ask(null);
    const attempts = [await this.#claim(first.entry.conversationId)];
    const parent = { ...(await this.#rows.localMember()), conversationId: first.entry.conversationId, entryId: first.entry.id };
    const ids: string[] = await this.#rows.threads(parent, count - 1);
    const lane = async (): Promise<void> => {
      for (let id = ids.shift(); id !== undefined; id = ids.shift()) {
        await this.#ask(id);
        attempts.push(await this.#claim(id));
      }
    };
    await Promise.all(Array.from({ length: GATHER_AT_ONCE }, lane));
    return attempts;
  }

  /** The turns end as their runs do: nobody answers them. */
  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  async #ask(conversationId: string | null): Promise<QuestionResponse> {
    const body = { requestId: `held-${uuidv7()}`, text: 'Hold on, please.', ...(conversationId === null ? {} : { conversationId }) };
    const text = await this.#call(`http://127.0.0.1:${this.#server.greeting.web}${WEB}/questions`, {}, body);
    return JSON.parse(text) as QuestionResponse;
  }

  async #claim(conversationId: string): Promise<AttemptHeaders> {
    for (let nth = 0; nth < ATTEMPTS; nth++) {
      const credential = this.#credentials.get(conversationId);
      const headers = { authorization: `Bearer ${credential ?? 'none-yet-for-this-one'}` };
      const url = `http://127.0.0.1:${this.#server.greeting.agent}/internal/agent/next`;
      const text = credential === undefined ? '' : await this.#call(url, headers, { waitMs: 1_000 });
      if (text !== '') {
        const { run } = JSON.parse(text) as { run: AgentRun };
        return { ...headers, 'x-agent-run': run.id, 'x-agent-epoch': String(run.epoch) };
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`the turn of ${conversationId} was not claimed`);
  }

  async #call(url: string, headers: Record<string, string>, body: object): Promise<string> {
    const options = { dispatcher: this.#agent, method: 'POST' as const, headers: { 'content-type': 'application/json', ...headers } };
    const response = await request(url, { ...options, body: JSON.stringify(body) });
    const text = await response.body.text();
    if (response.statusCode >= 300) throw new Error(`${url} answered ${response.statusCode}: ${text.slice(0, 300)}`);
    return text;
  }
}
