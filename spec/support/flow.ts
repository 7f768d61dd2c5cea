/**
 * A whole installation for flow specs: a database of its own, a scripted provider, one or more real servers, and a person.
 * Everything is ended in `close`, servers by pid.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { z } from 'zod';
import { type Database, sql } from '../../db/pool.ts';
import type { LlmApi } from '../../src/contract/agent.ts';
import type { Turn } from '../../src/contract/web.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import { freshDatabase, openTestDatabase } from './database.ts';
import { type ModelServer, type Script, startModelServer } from './model-server.ts';
import { WebClient } from './person.ts';
import { removeDataDirs, ServerProcess } from './server-process.ts';

export const PROVIDER_KEY = 'provider-key-of-the-spec';

export interface FlowOptions {
  readonly script?: Script;
  readonly api?: LlmApi;
  readonly env?: Readonly<Record<string, string>>;
}

export class Flow {
  readonly model: ModelServer;
  readonly databaseUrl: string;
  readonly db: Database;
  readonly servers: ServerProcess[] = [];
  readonly #env: Readonly<Record<string, string>>;
  readonly #drop: () => Promise<void>;

  private constructor(parts: {
    model: ModelServer;
    url: string;
    db: Database;
    env: Readonly<Record<string, string>>;
    drop: () => Promise<void>;
  }) {
    this.model = parts.model;
    this.databaseUrl = parts.url;
    this.db = parts.db;
    this.#env = parts.env;
    this.#drop = parts.drop;
  }

  static async open(options: FlowOptions = {}): Promise<Flow> {
    const fresh = await freshDatabase();
    const db = await openTestDatabase(fresh.url, 4);
    const model = await startModelServer(options.script);
    const env = {
      HEPH_DATABASE_URL: fresh.url,
      HEPH_LLM_API: options.api ?? 'openai-completions',
      HEPH_LLM_BASE_URL: model.url,
      HEPH_LLM_API_KEY: PROVIDER_KEY,
      HEPH_LLM_MODEL: 'model-of-the-spec',
      HEPH_TIME_ZONE: 'Europe/Berlin',
      ...options.env,
    };
    return new Flow({ model, url: fresh.url, db, env, drop: fresh.drop });
  }

  /** Starts one more server on the database; the same `dataDir` makes it the successor of a killed one. */
  async server(options: { dataDir?: string; env?: Readonly<Record<string, string>> } = {}): Promise<ServerProcess> {
    const { dataDir } = options;
    const server = await ServerProcess.start({ env: { ...this.#env, ...options.env }, ...(dataDir ? { dataDir } : {}) });
    this.servers.push(server);
    return server;
  }

  /** Begins to start one; `ready` of it waits. */
  launch(): ServerProcess {
    const { server } = ServerProcess.launch({ env: this.#env });
    this.servers.push(server);
    return server;
  }

  person(server: ServerProcess): WebClient {
    return new WebClient(`http://127.0.0.1:${server.port}`);
  }

  /** Conversations of the local account beside its main one: threads, made as rows. The main one must have an entry. */
  async threads(count: number): Promise<string[]> {
    const rows = await this.db.any(sql.type(
      z.object({ id: z.string(), workspace_id: z.string(), account_id: z.string(), entry_id: z.string() }),
    )`
      select c.id, c.workspace_id, c.account_id, e.id as entry_id from mentor_conversation c join mentor_entry e on e.conversation_id = c.id
      where c.parent_conversation_id is null order by e.seq limit 1`);
    const main = rows[0];
    if (!main) throw new Error('ask something in the main conversation first');
    const ids = Array.from({ length: count }, () => uuidv7());
    for (const id of ids) {
      await this.db.any(sql.type(z.object({ id: z.string() }))`
        insert into mentor_conversation (id, workspace_id, account_id, parent_conversation_id, parent_entry_id)
        values (${id}, ${main.workspace_id}, ${main.account_id}, ${main.id}, ${main.entry_id}) returning id`);
    }
    return ids;
  }

  /** From now on each commit that leaves more than `capacity` leased turns, or two in one conversation, is written down. */
  async watchRules(capacity: number): Promise<() => Promise<readonly string[]>> {
    const done = z.object({});
    await this.db.any(sql.type(done)`create table rule_violation (what text not null)`);
    await this.db.any(sql.type(done)`
      create function watch_rules() returns trigger language plpgsql as $$ begin
        insert into rule_violation select 'capacity' where (select count(*) from agent_run where state = 'LEASED' and kind = 'TURN') > (select n from watched);
        insert into rule_violation select 'two at once in ' || conversation_id from agent_run where state = 'LEASED' group by conversation_id having count(*) > 1;
        return null;
      end $$`);
    await this.db.any(sql.type(done)`create table watched (n integer not null)`);
    await this.db.any(sql.type(z.object({ n: z.number() }))`insert into watched (n) values (${capacity}) returning n`);
    await this.db.any(sql.type(done)`
      create constraint trigger watch_rules after insert or update on agent_run deferrable initially deferred
      for each row execute function watch_rules()`);
    const row = z.object({ what: z.string() });
    return async () => (await this.db.any(sql.type(row)`select what from rule_violation`)).map(({ what }) => what);
  }

  async close(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.kill()));
    await this.model.close();
    await this.db.close();
    await this.#drop();
    removeDataDirs();
  }
}

/** Pids of the sandbox runners that this server started. Linux only (reads /proc). */
export function runnerPids(serverPid: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return parentOf(pid) === serverPid && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('sandbox-runner');
      } catch {
        return false; // it ended while we looked
      }
    })
    .map(Number);
}

/** A process and all that it started, parents first. Linux only (reads /proc). */
export function withDescendants(pid: number): number[] {
  const children = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && parentOf(name) === pid)
    .map(Number);
  return [pid, ...children.flatMap(withDescendants)];
}

function parentOf(pid: string): number | null {
  try {
    return Number(/\) \S (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1]);
  } catch {
    return null; // it ended while we looked
  }
}

export interface Asked {
  readonly text: string;
  readonly turnId: string;
  readonly conversationId: string;
}

/** Asks three questions, one after the other, in each conversation; all conversations at the same time. */
export async function askInEach(person: WebClient, conversationIds: readonly string[], each = 3): Promise<Asked[]> {
  const perConversation = conversationIds.map(async (conversationId, c) => {
    const asked: Asked[] = [];
    for (let q = 0; q < each; q++) {
      const text = `question ${q} of conversation ${c}`;
      const { turn } = await person.ask(text, { conversationId });
      asked.push({ text, turnId: turn.id, conversationId });
    }
    return asked;
  });
  return (await Promise.all(perConversation)).flat();
}

export interface Outcome {
  readonly turns: readonly Turn[];
  /** `question | answer` pairs per conversation, in the order of the page. */
  readonly pages: ReadonlyMap<string, readonly string[]>;
}

/** Waits for all turns and reads what was stored. */
export async function settle(person: WebClient, asked: readonly Asked[]): Promise<Outcome> {
  const turns = await Promise.all(asked.map(({ turnId }) => person.waitForTurn(turnId)));
  const pages = new Map<string, readonly string[]>();
  for (const conversationId of new Set(asked.map((one) => one.conversationId))) {
    const entries = await person.entries(conversationId);
    pages.set(
      conversationId,
      entries.map((entry) => `${entry.kind}: ${entry.text}`),
    );
  }
  return { turns, pages };
}

/** What a page must hold when each question was answered exactly once, in groups by turn and in order. */
export function expectedPage(asked: readonly Asked[], conversationId: string): string[] {
  const texts = asked.filter((one) => one.conversationId === conversationId).map((one) => one.text);
  return [...texts.map((text) => `question: ${text}`), ...texts.map((text) => `answer: You asked: ${text}`)].sort();
}
