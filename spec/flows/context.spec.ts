/**
 * What the provider receives, from real servers and real runners: the path byte for byte, the situation last, threads with their own path.
 * rule: R13
 */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { z } from 'zod';
import { sql } from '../../db/pool.ts';
import type { Conversation } from '../../src/contract/web.ts';
import { Flow } from '../support/flow.ts';
import { answer, hold, type Seen, type StreamReply, says } from '../support/model-server.ts';

interface WireMessage {
  readonly role: string;
  readonly content: unknown;
}

describe('what a provider receives', function () {
  this.timeout(120_000);
  let flow: Flow;
  afterEach(() => flow.close());

  const messagesOf = (seen: Seen) => seen.body.messages as WireMessage[];
  const words = ({ content }: WireMessage) =>
    typeof content === 'string' ? content : ((content ?? []) as { text?: string }[]).map(({ text }) => text ?? '').join('');

  /** The request without the situation, which must be its last message and nowhere else. */
  function stored(seen: Seen): WireMessage[] {
    const messages = messagesOf(seen);
    const at = messages.flatMap((message, index) => (message.role === 'user' && words(message).includes('<situation>') ? [index] : []));
    expect(at, 'the situation is the last message').to.deep.equal([messages.length - 1]);
    return messages.slice(0, -1);
  }

  /** Ids of the tool calls whose results were replaced by notes. */
  async function notedCalls(): Promise<Set<string>> {
    const rows = await flow.db.any(sql.type(z.object({ call: z.string() }))`
      select t.payload->'message'->>'toolCallId' as call from mentor_entry e join mentor_entry t on t.id = (e.payload->>'targetId')::uuid
      where e.kind = 'EDIT'`);
    return new Set(rows.map(({ call }) => call));
  }

  it('starts each request with exactly the bytes of the one before, up to the first result that a note replaced', async () => {
    const model = answer((question) => `You asked: ${question}`, { withTools: true });
    const usage = { input: 10, output: 5, cacheRead: 90, cacheWrite: 3 };
    flow = await Flow.open({ script: async (seen, n) => ({ usage, ...((await model(seen, n)) as StreamReply) }) });
    const server = await flow.server();
    const person = flow.person(server);
    for (const question of ['one', 'two', 'three', 'four', 'five', 'six']) {
      const { turn } = await person.ask(question);
      expect((await person.waitForTurn(turn.id)).status).to.equal('DONE');
    }
    const requests = flow.model.seen.map(stored);
    expect(requests).to.have.length(12);
    const noted = await notedCalls();
    for (const [at, later] of requests.entries()) {
      const earlier = requests[at - 1] ?? [];
      const broken = earlier.findIndex((message, index) => JSON.stringify(message) !== JSON.stringify(later[index]));
      const { tool_call_id: callId } = (earlier[broken] ?? {}) as { tool_call_id?: string };
      if (broken >= 0) expect(noted, `request ${at + 1} differs at message ${broken}`).to.include(callId);
      expect(later.length).to.be.greaterThan(earlier.length);
    }
    const tools = flow.model.seen.map((seen) => JSON.stringify(seen.body.tools));
    expect(new Set(tools).size, 'the tools are the same for each request').to.equal(1);
    const metrics = await (await fetch(`http://127.0.0.1:${server.opsPort}/metrics`)).text();
    expect(metrics).to.include('heph_path_breaks_total{part="path"} 0').and.include('heph_path_breaks_total{part="system"} 0');
    const used = (kind: string) =>
      metrics.match(new RegExp(`^heph_model_tokens_total\\{model="[^"]+",kind="${kind}"\\} (\\d+)$`, 'm'))?.[1];
    expect([used('input'), used('cache_read'), used('output')], 'the hit rate of the cache').to.deep.equal(['120', '1080', '60']);
  });

  it('answers main conversation and thread at the same time; the thread has the main conversation up to its parent, then its own', async () => {
    flow = await Flow.open();
    const server = await flow.server();
    const person = flow.person(server);
    const said = async (question: string, conversationId?: string) => {
      const { turn } = await person.ask(question, conversationId ? { conversationId } : {});
      await person.waitForTurn(turn.id);
      return turn;
    };
    const first = await said('What is the plan?');
    const parent = (await person.entries(first.conversationId)).at(-1);
    await said('Something later');
    const begun = await person.send('POST', 'threads', { requestId: randomUUID(), parentEntryId: parent?.id });
    const thread = begun.body as Conversation;
    await said('What does that mean?', thread.id);
    const [inMain, inThread] = [hold(), hold()];
    flow.model.use((seen) => {
      const pause = seen.question.includes('meanwhile') ? inMain : inThread;
      return { before: pause, reply: says(`You asked: ${seen.question}`) };
    });
    const mainTurn = (await person.ask('And meanwhile?')).turn;
    const threadTurn = (await person.ask('And then?', { conversationId: thread.id })).turn;
    await Promise.all([inMain.arrived, inThread.arrived]);
    expect((await person.turn(mainTurn.id)).status).to.equal('RUNNING');
    expect((await person.turn(threadTurn.id)).status).to.equal('RUNNING');
    inThread.release();
    expect((await person.waitForTurn(threadTurn.id)).status).to.equal('DONE');
    inMain.release();
    expect((await person.waitForTurn(mainTurn.id)).status).to.equal('DONE');
    const request = flow.model.seen.find(({ question }) => question.includes('And then?')) as Seen;
    const path = stored(request).filter(({ role }) => role !== 'system');
    const lines = path.map((message) => `${message.role}: ${words(message).replace(/^\[[^\]]*\]\n/, '')}`);
    expect(lines).to.deep.equal([
      'user: What is the plan?',
      'assistant: You asked: What is the plan?',
      'user: What does that mean?',
      'assistant: You asked: What does that mean?',
      'user: And then?',
    ]);
    const situation = words(messagesOf(request).at(-1) as WireMessage);
    expect(situation).to.include('This is a thread.').and.include('Messages in the main conversation since this thread began');
  });

  it('after a stop has no half of a call and no empty answer: the next question is answered (E1, E4)', async () => {
    const [inCall, beforeWords] = [hold(), hold()];
    const piece = { index: 0, id: 'call_half', type: 'function', function: { name: 'read', arguments: '{"pa' } };
    const half = JSON.stringify({ id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta: { tool_calls: [piece] } }] });
    flow = await Flow.open({
      script: (seen, n) => {
        if (n === 1) return { steps: [{ text: 'Let me look.' }, { raw: `data: ${half}\n\n` }, { hold: inCall }] };
        if (n === 2) return { steps: [{ hold: beforeWords }] };
        return says(`You asked: ${seen.question}`);
      },
    });
    const server = await flow.server();
    const person = flow.person(server);
    for (const [question, at, words] of [['one', inCall, 'Let me look.'] as const, ['two', beforeWords, ''] as const]) {
      const { turn } = await person.ask(question);
      await at.arrived;
      if (words !== '') await person.waitForWords(turn.id, words);
      await person.stop(turn.id);
      at.release();
    }
    const { turn } = await person.ask('three');
    expect((await person.waitForTurn(turn.id)).status).to.equal('DONE');
    const path = stored(await flow.model.request(3)).filter(({ role }) => role !== 'system');
    const lines = path.map((message) => `${message.role}: ${words(message).replace(/^\[[^\]]* [^\]]*\]\n/, '')}`);
    expect(lines).to.deep.equal(['user: one', 'assistant: Let me look.\n\n[stopped by the developer]', 'user: two', 'user: three']);
    expect(JSON.stringify(path)).to.not.include('call_half');
  });
});
