/**
 * The main job with real processes: a server, its sandboxes, a scripted provider. Each question is answered exactly once, in order.
 * cases: A9, C6, C10, L1
 */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { type Asked, askInEach, expectedPage, Flow, PROVIDER_KEY, runnerPids, settle } from '../support/flow.ts';
import { answer, hold } from '../support/model-server.ts';

const CAPACITY = 4;

function expectAllAnsweredOnce(asked: readonly Asked[], outcome: Awaited<ReturnType<typeof settle>>): void {
  expect(outcome.turns.map((turn) => turn.error?.text ?? turn.status)).to.deep.equal(asked.map(() => 'DONE'));
  for (const [conversationId, page] of outcome.pages) {
    expect([...page].sort()).to.deep.equal(expectedPage(asked, conversationId));
    const answers = page.filter((line) => line.startsWith('answer: '));
    const order = asked.filter((one) => one.conversationId === conversationId).map((one) => `answer: You asked: ${one.text}`);
    expect(answers, 'the order of the questions is the order of the answers').to.deep.equal(order);
  }
}

describe('turns with real processes', function () {
  this.timeout(180_000);
  let flow: Flow;
  afterEach(() => flow.close());

  async function withThreads(count: number) {
    flow = await Flow.open({ script: answer(undefined, { withTools: true }) });
    const server = await flow.server();
    const person = flow.person(server);
    const { turn } = await person.ask('the first one');
    await person.waitForTurn(turn.id);
    return { server, person, conversations: await flow.threads(count) };
  }

  it('answers 3 questions in each of 20 conversations exactly once, in order, never more than 4 at a time', async () => {
    // rule: R1, R4
    const { person, conversations } = await withThreads(20);
    const violations = await flow.watchRules(CAPACITY);
    const asked = await askInEach(person, conversations);
    expectAllAnsweredOnce(asked, await settle(person, asked));
    expect(await violations()).to.deep.equal([]);
  });

  it('answers on the second attempt, once, when the sandbox is killed in the middle of an answer', async () => {
    flow = await Flow.open();
    const pause = hold();
    flow.model.use((_seen, n) =>
      n === 1 ? { steps: [{ text: 'half of ' }, { hold: pause }, { text: 'an answer' }] } : answer()(_seen, n),
    );
    const server = await flow.server();
    const person = flow.person(server);
    const { turn } = await person.ask('Will you survive?');
    await pause.arrived;
    for (const pid of runnerPids(server.pid)) process.kill(pid, 'SIGKILL');
    const done = await person.waitForTurn(turn.id);
    pause.release();
    expect(done).to.include({ status: 'DONE', attempt: 2 });
    const entries = await person.entries(turn.conversationId);
    expect(entries.map((entry) => entry.text)).to.deep.equal(['Will you survive?', 'You asked: Will you survive?']);
  });

  it('loses nothing when the server is killed in the middle of turns and started again', async () => {
    const { server, person, conversations } = await withThreads(6);
    const pause = hold();
    flow.model.use(async (seen, n) => ({ before: pause, reply: await answer()(seen, n) }));
    const asked = await askInEach(person, conversations);
    await pause.arrived;
    await server.kill();
    pause.release();
    flow.model.use(answer());
    const again = await flow.server();
    person.base = flow.person(again).base;
    expectAllAnsweredOnce(asked, await settle(person, asked));
  });

  it('goes on with the other server when one of two is killed', async () => {
    const { server, person, conversations } = await withThreads(6);
    const violations = await flow.watchRules(CAPACITY);
    const other = flow.person(await flow.server());
    const pause = hold();
    let held = 0;
    flow.model.use(async (seen, n) => (++held <= 2 ? { before: pause, reply: await answer()(seen, n) } : answer()(seen, n)));
    const asked = [...(await askInEach(person, conversations.slice(0, 3))), ...(await askInEach(other, conversations.slice(3)))];
    await pause.arrived;
    await server.kill();
    pause.release();
    const outcome = await settle(other, asked);
    expect(outcome.turns.map((turn) => turn.status)).to.deep.equal(asked.map(() => 'DONE'));
    for (const page of outcome.pages.values()) expect(page).to.have.length(6);
    expect(await violations()).to.deep.equal([]);
  });

  it('shows, stores and sends the same text where PostgreSQL or UTF-8 cannot hold what was typed', async () => {
    flow = await Flow.open();
    const person = flow.person(await flow.server());
    const { turn, entry } = await person.ask("what's the \u0000 weather \ud83d");
    const shown = "what's the \ufffd weather \ufffd";
    expect(entry.text).to.equal(shown);
    await person.waitForTurn(turn.id);
    expect(flow.model.seen[0]?.question).to.equal(shown);
    expect((await person.entries(turn.conversationId)).map(({ text }) => text)).to.deep.equal([shown, `You asked: ${shown}`]);
  });

  it('keeps what waits when the running turn is stopped, and closes the upstream call', async () => {
    flow = await Flow.open();
    const pause = hold();
    flow.model.use((seen, n) => (n === 1 ? { steps: [{ text: 'half' }, { hold: pause }] } : answer()(seen, n)));
    const person = flow.person(await flow.server());
    const first = await person.ask('the first');
    await pause.arrived;
    const waiting = [await person.ask('the second'), await person.ask('the third')];
    await person.waitForWords(first.turn.id, 'half');
    expect(await person.stop(first.turn.id)).to.include({ status: 'STOPPED' });
    await flow.model.seen[0]?.aborted; // the upstream call is closed
    for (const { turn } of waiting) expect(await person.waitForTurn(turn.id)).to.include({ status: 'DONE' });
    const answers = (await person.entries(first.turn.conversationId)).filter(({ kind }) => kind === 'answer').map(({ text }) => text);
    expect(answers).to.deep.equal(['half', 'You asked: the second', 'You asked: the third']);
    const last = JSON.stringify(flow.model.seen.at(-1)?.body);
    expect(last, 'the model sees the cut-off answer and its mark').to.include('[stopped by the developer]');
  });

  it('gives two tabs on two servers the same turn for the same requestId', async () => {
    // rule: R2
    flow = await Flow.open();
    const people = [flow.person(await flow.server()), flow.person(await flow.server())];
    for (let round = 0; round < 10; round++) {
      const requestId = randomUUID();
      const answers = await Promise.all(
        [...people, ...people].map((person) => person.send('POST', 'questions', { requestId, text: 'Same?' })),
      );
      expect(answers.map(({ status }) => status)).to.deep.equal([202, 202, 202, 202]);
      const ids = answers.map(({ body }) => (body as { turn: { id: string } }).turn.id);
      expect(new Set(ids).size).to.equal(1);
      await people[0]?.waitForTurn(ids[0] as string);
    }
  });
});

for (const api of ['openai-completions', 'openai-responses', 'anthropic-messages'] as const) {
  describe(`what the provider receives over ${api}`, function () {
    this.timeout(60_000);
    let flow: Flow;
    after(() => flow.close());

    it('is the system prompt, the tools, the dated question, the situation last, with the provider’s key and nothing of the sandbox', async () => {
      flow = await Flow.open({ api, script: answer(undefined, { withTools: true }) });
      const person = flow.person(await flow.server());
      const { turn } = await person.ask('What do you see?');
      expect(await person.waitForTurn(turn.id)).to.include({ status: 'DONE' });
      const [first, second] = flow.model.seen;
      const sent = JSON.stringify(first?.body);
      expect(sent).to.include('You are Hephaestus');
      for (const tool of ['read', 'bash']) expect(sent).to.match(new RegExp(`"name":"${tool}"`));
      expect(sent).to.match(/\[(Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d{4}-\d\d-\d\d \d\d:\d\d Europe\/Berlin\]\\nWhat do you see\?/);
      expect(sent.lastIndexOf('<situation>')).to.be.greaterThan(sent.lastIndexOf('What do you see?'));
      expect(first?.body.model).to.equal('model-of-the-spec');
      const headers = first?.headers ?? {};
      const key = api === 'anthropic-messages' ? headers['x-api-key'] : headers.authorization;
      expect(key).to.equal(api === 'anthropic-messages' ? PROVIDER_KEY : `Bearer ${PROVIDER_KEY}`);
      expect(Object.keys(headers).filter((name) => /^x-agent|^cookie/.test(name))).to.deep.equal([]);
      expect(second?.toolResults.join('\n'), 'the tool result is what INDEX.md says').to.include('What this turn can read');
      const [entry] = (await person.entries(turn.conversationId)).filter(({ kind }) => kind === 'answer');
      expect(entry?.text).to.equal('You asked: What do you see?');
    });
  });
}
