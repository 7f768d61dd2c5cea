/**
 * A rolling restart under load: three servers behind one address, stopped and started again one after the other while people ask and read.
 * HEPH_TEST_FAULTS=all asks 200 questions; without it fewer do, because each restarted server starts its sandboxes anew.
 */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { QuestionResponse, Turn } from '../../src/contract/web.ts';
import { Flow } from '../support/flow.ts';
import { LoadBalancer } from '../support/load-balancer.ts';
import { hold, says } from '../support/model-server.ts';
import { WebClient } from '../support/person.ts';
import { newDataDir, type ServerProcess } from '../support/server-process.ts';
import { StreamReader } from '../support/stream-reader.ts';

const ALL = process.env['HEPH_TEST_FAULTS'] === 'all';
const CONVERSATIONS = ALL ? 10 : 3;
/** At least; questions go on until the last server is back. */
const QUESTIONS_EACH = ALL ? 20 : 3;
const READERS = 3;
/** The provider writes for about this long, so that a restart finds answers half written. */
const WRITING_MS = 300;
const TRY_AGAIN_MS = 100;

const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

describe('a rolling restart of three servers under load', function () {
  this.timeout(ALL ? 900_000 : 240_000);
  let flow: Flow;
  let front: LoadBalancer;
  const readers: StreamReader[] = [];

  before(async () => {
    front = await LoadBalancer.open();
    flow = await Flow.open({ env: { HEPH_SANDBOX_WARM: '0', HEPH_SHUTDOWN_GRACE: '20s' } });
    flow.model.use(({ question }) => {
      const middle = hold();
      void middle.arrived.then(() => setTimeout(middle.release, WRITING_MS));
      const { steps } = says(`You asked: ${question}`);
      return { steps: [...steps.slice(0, 1), { hold: middle }, ...steps.slice(1)] };
    });
  });
  after(async () => {
    await Promise.all(readers.map((reader) => reader.close()));
    await flow.close();
    await front.close();
  });

  async function serve(dataDir: string): Promise<ServerProcess> {
    const server = await flow.server({ dataDir });
    front.add({ port: server.port, opsPort: server.opsPort });
    return server;
  }

  /** As a page does: the same request again until it is answered. */
  async function patiently<T>(person: WebClient, [method, path, body]: readonly [string, string, unknown?]): Promise<T> {
    for (;;) {
      const answer = await person.send(method, path, body).catch(() => null);
      if (answer && answer.status < 300) return answer.body as T;
      if (answer && answer.status < 500) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
      await wait(TRY_AGAIN_MS);
    }
  }

  async function answered(person: WebClient, text: string, conversationId?: string): Promise<Turn> {
    const body = { requestId: randomUUID(), text, ...(conversationId ? { conversationId } : {}) };
    const { turn } = await patiently<QuestionResponse>(person, ['POST', 'questions', body]);
    for (;;) {
      const now = await patiently<Turn>(person, ['GET', `turns/${turn.id}`]);
      if (now.endedAt !== null) return now;
      await wait(TRY_AGAIN_MS);
    }
  }

  it('fails no turn, loses no partial stream, and answers each question once', async () => {
    const dataDirs = [newDataDir(), newDataDir(), newDataDir()];
    const servers = [await serve(dataDirs[0] as string), await serve(dataDirs[1] as string), await serve(dataDirs[2] as string)];
    const person = new WebClient(front.url);
    await answered(person, 'the first one');
    const conversations = await flow.threads(CONVERSATIONS);
    for (let n = 0; n < READERS; n++) readers.push(new StreamReader(front.url));

    let restarted = false;
    const load = conversations.map(async (conversationId, c) => {
      const turns: Turn[] = [];
      for (let n = 0; n < QUESTIONS_EACH || !restarted; n++) turns.push(await answered(person, `question ${n} of ${c}`, conversationId));
      return turns;
    });
    for (const [at, server] of servers.entries()) {
      expect(await server.stop(), 'it drained').to.equal(0);
      await serve(dataDirs[at] as string);
    }
    restarted = true;
    const asked = await Promise.all(load);

    expect(asked.flat().length).to.be.at.least(CONVERSATIONS * QUESTIONS_EACH);
    expect(asked.flat().filter(({ status }) => status !== 'DONE')).to.deep.equal([]);
    for (const [c, conversationId] of conversations.entries()) {
      const said = (await person.entries(conversationId)).filter(({ kind }) => kind === 'answer').map(({ text }) => text);
      expect(said).to.deep.equal((asked[c] ?? []).map((_, n) => `You asked: question ${n} of ${c}`));
    }
    for (const reader of readers) {
      while (reader.shown.size > 0) await wait(TRY_AGAIN_MS);
      expect(reader.gaps).to.deep.equal([]);
      expect(reader.seen.size, 'it saw answers while they were written').to.be.above(0);
      expect(reader.hints, 'each stream that a server ended says when to come back').to.not.include(null);
    }
    expect(readers.flatMap(({ hints }) => hints), 'and readers lost their servers').to.not.be.empty;
  });
});
