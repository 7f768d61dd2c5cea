/**
 * The built-in demo model, as a sandbox meets it: through the gateway, without any provider. rule: R15
 */
import { expect } from 'chai';
import { type SeededAttempt, seedAttempt, usageRows } from '../support/model-attempt.ts';
import { type GatewayRig, readBody, readUntil, settled, until, useGateway } from '../support/model-gateway.ts';

interface Chunk {
  readonly choices: readonly {
    readonly delta: { readonly content?: string; readonly tool_calls?: readonly ToolCall[] };
    readonly finish_reason: string | null;
  }[];
  readonly usage?: { readonly prompt_tokens: number; readonly completion_tokens: number };
}
interface ToolCall {
  readonly id: string;
  readonly function: { readonly name: string; readonly arguments: string };
}

const tools = [{ type: 'function', function: { name: 'read', parameters: {} } }];
const situation = { role: 'user', content: [{ type: 'text', text: '<situation>\nNow: Thu 2026-10-08\n</situation>' }] };
const asked = (words: string) => ({ role: 'user', content: `[Thu 2026-10-08 09:12 Europe/Berlin · Slack] ${words}` });
const readDone = [
  {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'c1', type: 'function', function: { name: 'read', arguments: '{"path":"INDEX.md"}' } }],
  },
  {
    role: 'tool',
    tool_call_id: 'c1',
    content: '# Files\n- inputs/context/user.json: who you are\n- inputs/context/workspace.json: where\n- INDEX.md',
  },
];

describe('the demo model', () => {
  const suite = useGateway();
  let rig: GatewayRig;
  let attempt: SeededAttempt;

  beforeEach(async () => {
    ({ rig, attempt } = await suite.open({ config: 'demo' }));
  });

  async function ask(messages: readonly unknown[], more: object = { tools }) {
    const response = await rig.call(attempt, { model: 'heph-demo', stream: true, messages, ...more });
    expect(response.headers.get('content-type')).to.include('text/event-stream');
    const body = readBody(response);
    const inFlight = () => rig.gateway.stats().inFlight > 0;
    while (inFlight()) await rig.clock.advanceAsync(30);
    const { text, broken } = await body;
    expect(broken).to.equal(false);
    const data = text
      .split('\n\n')
      .filter(Boolean)
      .map((event) => event.replace(/^data: /, ''));
    expect(data.pop()).to.equal('[DONE]');
    const chunks = data.map((json) => JSON.parse(json) as Chunk);
    const deltas = chunks.flatMap((chunk) => chunk.choices);
    return {
      pieces: deltas.flatMap(({ delta }) => (delta.content ? [delta.content] : [])),
      tools: deltas.flatMap(({ delta }) => delta.tool_calls ?? []).map((call) => call.function),
      finish: deltas.at(-1)?.finish_reason,
      usage: chunks.at(-1)?.usage,
    };
  }

  it('first reads INDEX.md, without a word', async () => {
    const { pieces, tools: called, finish } = await ask([{ role: 'system', content: 'You are X.' }, asked('why?'), situation]);
    expect(called).to.deep.equal([{ name: 'read', arguments: '{"path":"INDEX.md"}' }]);
    expect({ pieces, finish }).to.deep.equal({ pieces: [], finish: 'tool_calls' });
  });

  it('then says what it is, what was asked, which files there are, and how to configure a real one', async () => {
    const { pieces, tools: called, finish, usage } = await ask([asked('Why is the sky\nblue? `x` 🟢'), ...readDone, situation]);
    const words = pieces.join('');
    expect(words).to.include('demo model').and.include('> Why is the sky\n> blue? `x` 🟢').and.not.include('2026-10-08');
    expect(words).to.include('`inputs/context/user.json`, `inputs/context/workspace.json`.');
    for (const name of ['HEPH_LLM_API', 'HEPH_LLM_BASE_URL', 'HEPH_LLM_API_KEY', 'HEPH_LLM_MODEL'])
      expect(words).to.include(`- \`${name}\``);
    expect({ called, finish }).to.deep.equal({ called: [], finish: 'stop' });
    expect(pieces.length).to.be.greaterThan(10);
    await settled(rig);
    expect(await usageRows(suite.db, attempt))
      .to.have.nested.property('[0]')
      .that.includes({
        outcome: 'ok',
        model: 'heph-demo',
        api: 'openai-completions',
        input_tokens: usage?.prompt_tokens,
        output_tokens: usage?.completion_tokens,
      });
    expect(usage?.completion_tokens).to.be.greaterThan(words.length / 8);
  });

  it('gives the same answer to the same question', async () => {
    const [first, second] = [await ask([asked('why?'), ...readDone, situation]), await ask([asked('why?'), ...readDone, situation])];
    expect(second.pieces).to.deep.equal(first.pieces);
  });

  it('reads again for the next question of the conversation', async () => {
    const earlier = [asked('why?'), ...readDone, { role: 'assistant', content: 'because' }];
    expect((await ask([...earlier, asked('and why that?'), situation])).tools).to.have.length(1);
    expect((await ask([...earlier, asked('and why that?'), ...readDone, situation])).pieces.join('')).to.include('> and why that?');
  });

  it('says so when there is nothing to read, and answers without tools too', async () => {
    const nothing = [readDone[0], { role: 'tool', tool_call_id: 'c1', content: 'ENOENT: no such file' }];
    expect((await ask([asked('why?'), ...nothing, situation])).pieces.join('')).to.include('found none');
    expect((await ask([asked('why?'), situation], {})).pieces.join('')).to.include('> why?');
  });

  it('writes a short summary when the loop shortens the conversation', async () => {
    const { pieces } = await ask([{ role: 'user', content: 'Summarize: [user] why? [assistant] because' }], {});
    expect(pieces.join('').length).to.be.within(20, 400);
  });

  it('counts as far as it is asked to, one line at a time, up to 500', async () => {
    const { pieces } = await ask([asked('Please count to 120'), ...readDone, situation]);
    const lines = pieces
      .join('')
      .split('\n')
      .filter((line) => /^\d+\. /.test(line));
    expect(lines).to.have.length(120);
    expect(pieces.filter((piece) => /^\d+\. /.test(piece))).to.have.length(120);
    expect(lines.at(-1)).to.equal('120. This is line 120 of 120.');
    const bounded = (await ask([asked('count up to 999999999'), ...readDone, situation])).pieces.join('');
    expect(bounded).to.include('500. This is line 500 of 500.').and.not.include('501.');
  });

  it('streams at its own pace and stops when the sandbox hangs up', async () => {
    const loop = new AbortController();
    const body = { model: 'm', stream: true, tools, messages: [asked('count to 500'), ...readDone, situation] };
    const response = await rig.call(attempt, body, { signal: loop.signal });
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    await readUntil(reader, 'assistant');
    const next = reader.read();
    await rig.clock.advanceAsync(30);
    expect(Buffer.from((await next).value as Uint8Array).toString()).to.include('I am the');
    loop.abort();
    await until('the call has ended', () => rig.gateway.stats().inFlight === 0);
    await settled(rig);
    expect((await usageRows(suite.db, attempt))[0]).to.include({ outcome: 'aborted' });
    // The closing is confirmed once more; after that only the gateway's own timer is left.
    await rig.clock.advanceAsync(1_000);
    expect(rig.clock.timers).to.equal(1);
  });

  it('asks for a stream when it is called without one, and speaks one wire', async () => {
    const response = await rig.call(attempt, { model: 'm', messages: [asked('why?')] });
    expect(response.status).to.equal(400);
    expect(await response.text()).to.include('set \\"stream\\" to true');
    expect((await rig.call(attempt, { messages: [] }, { path: '/messages' })).status).to.equal(404);
    expect((await rig.call(await seedAttempt(suite.db), { stream: true, messages: [] })).status).to.equal(200);
  });
});
