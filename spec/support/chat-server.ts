/**
 * Owns: the server behind the pages of a `describe`: one installation with a scripted provider, quiet again after each test.
 * All tests of a `describe` share its one conversation, so each uses words of its own.
 */
import { Flow, type FlowOptions } from './flow.ts';
import { answer, type Reply, type Script } from './model-server.ts';
import type { WebClient } from './person.ts';
import type { ServerProcess } from './server-process.ts';

const OPEN = new Set(['QUEUED', 'RUNNING']);
const START_LIMIT_MS = 60_000;

/** One sandbox is enough for one conversation. */
const ENV = { HEPH_SANDBOX_WARM: '1' };

/** A provider that answers these questions so, the n-th time with the n-th reply (then with the last), and any other with its own words. */
export function scripted(replies: Readonly<Record<string, Reply | readonly Reply[]>>): Script {
  const asked = new Map<string, number>();
  return (seen, n) => {
    const reply = replies[seen.question];
    if (reply === undefined) return answer()(seen, n);
    const list: readonly Reply[] = Array.isArray(reply) ? reply : [reply as Reply];
    const times = asked.get(seen.question) ?? 0;
    asked.set(seen.question, times + 1);
    return list[Math.min(times, list.length - 1)] as Reply;
  };
}

/** Stops what waits or runs, so that the next test finds an idle conversation. */
async function settle(person: WebClient): Promise<void> {
  const conversation = await person.conversation().catch(() => null); // there is none before the first question
  const open = (conversation?.turns ?? []).filter(({ status }) => OPEN.has(status)).reverse();
  for (const { id } of open) await person.send('PATCH', `turns/${id}/status`, { status: 'STOPPED' });
  await Promise.all(open.map(({ id }) => person.waitForTurn(id)));
}

export interface ChatServer {
  readonly flow: Flow;
  readonly server: ServerProcess;
  readonly person: WebClient;
  /** The page's address. */
  readonly url: string;
}

/** Registers mocha hooks that start and end the server of the surrounding `describe`. */
export function useChatServer(options: FlowOptions = {}): ChatServer {
  let started: { flow: Flow; server: ServerProcess; person: WebClient } | undefined;
  const needed = () => {
    if (started === undefined) throw new Error('the server is there only inside of hooks and tests');
    return started;
  };
  before('starts a server', async function () {
    this.timeout(START_LIMIT_MS);
    const flow = await Flow.open({ ...options, env: { ...ENV, ...options.env } });
    try {
      const server = await flow.server();
      started = { flow, server, person: flow.person(server) };
    } catch (error) {
      await flow.close();
      throw error;
    }
  });
  afterEach('leaves an idle conversation', async function () {
    this.timeout(START_LIMIT_MS);
    const { flow, person } = needed();
    flow.model.use(answer());
    await settle(person);
  });
  after('ends the server', async () => {
    await started?.flow.close();
  });
  return {
    get flow() {
      return needed().flow;
    },
    get server() {
      return needed().server;
    },
    get person() {
      return needed().person;
    },
    get url() {
      return needed().server.url('/');
    },
  };
}
