/**
 * A rolling update as an orchestrator does it: a new server is ready, then an old one gets SIGTERM; people ask all the while, at whichever server
 * takes them, as behind a proxy.
 */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { type Asked, expectedPage, Flow, settle } from '../support/flow.ts';
import { answer, hold } from '../support/model-server.ts';
import { WebClient } from '../support/person.ts';
import type { ServerProcess } from '../support/server-process.ts';
import { SseClient } from '../support/sse-client.ts';

const CAPACITY = 2;

describe('a rolling update', function () {
  this.timeout(180_000);
  let flow: Flow;
  before(async () => {
    flow = await Flow.open({
      env: { HEPH_AGENT_CAPACITY_TURNS: String(CAPACITY), HEPH_SANDBOX_WARM: '0', HEPH_SANDBOX_ISOLATION: 'off' },
    });
  });
  after(() => flow.close());

  const client = (server: ServerProcess) => new WebClient(`http://127.0.0.1:${server.port}`);

  /** Asks the first server that takes it; a question that nobody takes fails the spec. */
  async function ask(servers: readonly ServerProcess[], text: string, conversationId?: string): Promise<Asked> {
    const requestId = randomUUID();
    const refusals: unknown[] = [];
    for (const server of servers) {
      try {
        const { turn } = await client(server).ask(text, { requestId, ...(conversationId ? { conversationId } : {}) });
        return { text, turnId: turn.id, conversationId: turn.conversationId };
      } catch (error) {
        refusals.push(error);
      }
    }
    throw new AggregateError(refusals, `nobody took "${text}"`);
  }

  it('loses no question, no answer and no attempt, and sends streams to the servers that stay', async () => {
    // rule: R9
    const pause = hold();
    flow.model.use((seen, n) => (n === 1 ? { steps: [{ text: 'half' }, { hold: pause }] } : answer()(seen, n)));
    const old = [await flow.server(), await flow.server()];
    const asked = [await ask(old, 'question 0 of conversation 0')];
    await pause.arrived;
    const conversations = [asked[0]?.conversationId ?? '', ...(await flow.threads(2))];
    const broken = await flow.watchRules(CAPACITY);
    const streams = await Promise.all(old.map((server) => SseClient.connect(`${client(server).base}/workspaces/home/mentor/events`)));
    let serving = [...old];
    for (const [at, server] of old.entries()) {
      const added = await flow.server();
      serving = [...serving, added];
      const stopped = server.stop();
      // The orchestrator may still lead people to the one that goes: it is asked first.
      const questions = conversations.map((id, c) => ask(serving, `question ${at + 1} of conversation ${c}`, id));
      asked.push(...(await Promise.all(questions)));
      expect(await stopped, 'it drained').to.equal(0);
      serving = serving.filter((one) => one !== server);
      await streams[at]?.ended;
      expect(streams[at]?.retryMs, 'when to come back').to.be.within(1_000, 3_000);
    }
    pause.release();
    const { turns, pages } = await settle(client(serving[0] as ServerProcess), asked);
    expect(turns.map(({ status, attempt }) => ({ status, attempt }))).to.deep.equal(asked.map(() => ({ status: 'DONE', attempt: 1 })));
    for (const id of conversations) expect([...(pages.get(id) ?? [])].sort()).to.deep.equal(expectedPage(asked, id));
    expect(await broken()).to.deep.equal([]);
  });
});
