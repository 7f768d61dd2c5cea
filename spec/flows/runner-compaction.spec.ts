/**
 * Owns: proof that a long conversation is shortened as the seed says (Compaction): real runner, real Pi, real HTTP, a scripted model.
 * Does not own: the numbers (spec/rules/compaction.spec.ts).
 */
import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import type { LlmApi, PiEntry } from '../../src/contract/agent.ts';
import {
  openai,
  openStream,
  storedToolTurn,
  storedTurn,
  streamAnthropic,
  streamTool,
  streamWords,
  transcriptOf,
  wordsIn,
} from '../support/agent-scripts.ts';
import { type FakeAgentServer, reply, type SeenCall } from '../support/fake-agent-server.ts';
import { asked, compactionOf, history, isSummary, SUMMARY, SummarisingModel, words } from '../support/long-conversation.ts';
import { RunnerRig } from '../support/runner-rig.ts';

/** Of the smallest model: the trigger is 24,576 tokens, some 5,461 are kept, a summary has at most 4,096. */
const TRIGGER = 24_576;
const WINDOW = 32_768;
/** Ten tokens. */
const PROMPT = 'A question with exactly forty characters';
const ASKED = 10;

/** A tool call for which the provider counted so many tokens. */
function toolAt(response: ServerResponse, tokens: number): void {
  const send = openStream(response);
  for (const event of [openai.tool('read', { path: 'INDEX.md' }), openai.finish('tool_calls'), openai.usage(tokens)]) send(event);
  response.end('data: [DONE]\n\n');
}

describe('a runner shortens long conversations', () => {
  let rig: RunnerRig;
  let fake: FakeAgentServer;
  let model: SummarisingModel;

  before(async () => {
    rig = new RunnerRig();
    fake = (await rig.openRunner()).server;
    model = new SummarisingModel(fake);
  });
  beforeEach(() => {
    fake.reset();
    model.use();
  });
  after(() => rig.close());

  describe('before a question', () => {
    it('not at the trigger, the question counted, but one token above it', async () => {
      fake.giveRun({ entries: history(4, TRIGGER - ASKED), prompt: PROMPT });
      expect((await fake.end()).outcome).to.equal('DONE');
      expect(model.summaries).to.have.length(0);
      fake.giveRun({ entries: history(4, TRIGGER - ASKED + 1), prompt: PROMPT });
      expect((await fake.end(2)).outcome).to.equal('DONE');
      expect(model.summaries).to.have.length(1);
    });

    it('also for what the ledger holds after the last answer, such as the question of a failed turn', async () => {
      const failed = { type: 'message', id: 'q5', parentId: 'a4', timestamp: '2026-10-08T07:12:00.000Z' };
      const message = { role: 'user', content: words(2_500), timestamp: 5 };
      fake.giveRun({ entries: [...history(4, TRIGGER - 2_500), { ...failed, message }], prompt: PROMPT });
      const end = await fake.end();
      expect(model.summaries).to.have.length(1);
      expect(end.outcome).to.equal('DONE');
    });

    it('by what the provider counted less what notes have replaced since, to the token', async () => {
      const result = storedToolTurn(1, [{ name: 'read', args: { path: 'a.md' }, result: words(2_000) }]);
      const turns = history(5, 0).slice(2);
      // The note of 500 tokens saves 1,500 of what was counted.
      const note = { type: 'context_edit', id: 'e', timestamp: '2026-10-08T07:12:00.000Z', targetId: 'r1.1' };
      const edit = { ...note, replacement: { content: [{ type: 'text', text: words(500) }] } };
      const counted = (tokens: number): PiEntry[] => {
        const path = [...result, ...turns.slice(0, -1), storedTurn(5, words(1_000), tokens)[1] as PiEntry, edit];
        return path.map((entry, index) => ({ ...entry, parentId: path[index - 1]?.id ?? null }));
      };
      fake.giveRun({ entries: counted(TRIGGER + 1_500 - ASKED), prompt: PROMPT });
      expect((await fake.end()).outcome).to.equal('DONE');
      expect(model.summaries).to.have.length(0);
      fake.giveRun({ entries: counted(TRIGGER + 1_500 - ASKED + 1), prompt: PROMPT });
      expect(compactionOf((await fake.end(2)).entries)).to.deep.include({ type: 'compaction' });
    });

    it('keeps recent messages, puts the summary before them, and the end carries it', async () => {
      const { context } = fake.giveRun({ entries: history(8, 30_000), prompt: PROMPT });
      const end = await fake.end();
      expect(fake.named('model').map(isSummary)).to.deep.equal([true, false]);
      const [system, summary, ...rest] = transcriptOf(model.questions[0] as SeenCall);
      expect(system?.text).to.equal(context.systemPrompt);
      expect(summary?.text).to.include(SUMMARY);
      expect(rest.map((message) => message.text)).to.deep.equal([
        asked(7),
        words(1_000),
        asked(8),
        words(1_000),
        PROMPT,
        context.situation,
      ]);
      expect(compactionOf(end.entries)).to.deep.include({ type: 'compaction', summary: SUMMARY, firstKeptEntryId: 'q7' });
      expect(wordsIn(end.entries, 'assistant')).to.deep.equal(['Here you are.']);
    });

    it('shows "Thinking…" while the summary is written', async () => {
      model.use(async (response) => {
        await fake.call('turn/partial');
        streamWords(response, [SUMMARY]);
      });
      fake.giveRun({ entries: history(8, 30_000) });
      await fake.end();
      expect(fake.named('turn/partial').map((call) => (call.body as { stage: string }).stage)).to.satisfy((stages: string[]) =>
        stages.every((stage) => stage === 'Thinking…'),
      );
    });

    const wires: readonly (readonly [LlmApi, (response: ServerResponse, words: readonly string[]) => void])[] = [
      ['openai-completions', streamWords],
      ['anthropic-messages', streamAnthropic],
    ];
    for (const [api, stream] of wires) {
      it(`asks for the summary without thinking, tools or situation, capped by the reserve (${api})`, async () => {
        model.use(
          (response) => stream(response, [SUMMARY]),
          (response) => stream(response, ['Here you are.']),
        );
        const { context, run } = fake.giveRun({
          entries: history(6, 30_000),
          model: { id: 'wordy', api, contextTokens: WINDOW, outputTokens: 16_000 },
        });
        const end = await fake.end();
        const [call] = model.summaries;
        const body = call?.body as Record<string, unknown>;
        expect(body['max_tokens']).to.equal(8_192);
        expect(body['reasoning_effort'] ?? null).to.equal(null);
        expect(['disabled', undefined]).to.include((body['thinking'] as { type?: string } | undefined)?.type);
        expect((body['tools'] as unknown[] | undefined) ?? []).to.deep.equal([]);
        expect(JSON.stringify(body)).not.to.include(context.situation);
        expect(call?.headers).to.include({ authorization: 'Bearer the-credential', 'x-agent-run': run.id });
        expect(end.entries.map((entry) => entry.type))
          .to.include('compaction')
          .and.not.to.include('thinking_level_change');
      });
    }

    it('in several requests when it is longer than the window, each continuing the one before it', async () => {
      let written = 0;
      model.use((response) => streamWords(response, [`${SUMMARY} Part ${++written}.`]));
      fake.giveRun({ entries: history(20, 60_000), prompt: PROMPT });
      const end = await fake.end();
      const requests = model.summaries.map((call) => JSON.stringify(call.body));
      expect(requests.length).to.be.greaterThan(1);
      for (const request of requests) expect(request.length / 4).to.be.lessThan(WINDOW - 4_096);
      expect(requests.map((request) => /Part (\d)/.exec(request)?.[1])).to.deep.equal([
        undefined,
        ...requests.slice(1).map((_, index) => String(index + 1)),
      ]);
      expect(compactionOf(end.entries)?.['summary']).to.include(`Part ${requests.length}.`);
      expect(end.outcome).to.equal('DONE');
    });

    it('and again in the next turn when the conversation stayed long', async () => {
      const entries = history(9, 30_000);
      const earlier = {
        type: 'compaction',
        id: 'c',
        parentId: 'a9',
        timestamp: '2026-10-08T08:00:00.000Z',
        summary: 'What was before.',
        firstKeptEntryId: 'q1',
        tokensBefore: 40_000,
      };
      fake.giveRun({ entries: [...entries, earlier], prompt: PROMPT });
      const end = await fake.end();
      expect(JSON.stringify(model.summaries[0]?.body)).to.include('What was before.');
      expect(compactionOf(end.entries)?.['firstKeptEntryId']).to.equal('q8');
    });

    it('with a second request for the question of a turn of which only the answer is kept, and refuses an empty one there, too', async () => {
      const split = [...history(7, 0), ...storedTurn(8, words(6_000), 30_000)];
      fake.giveRun({ entries: split });
      expect(compactionOf((await fake.end()).entries)).to.deep.include({ firstKeptEntryId: 'a8' });
      expect(model.summaries).to.have.length(2);
      fake.reset();
      model.use((response) => streamWords(response, [model.summaries.length === 1 ? SUMMARY : '']));
      fake.giveRun({ entries: split });
      const end = await fake.end();
      expect([end.outcome, compactionOf(end.entries)]).to.deep.equal(['DONE', undefined]);
    });
  });

  it('that stay too long after their summary fail before any call for the answer, and the summary is kept', async () => {
    const long = [...history(2, 0), ...storedTurn(3, words(29_000), 36_000)];
    fake.giveRun({ entries: long, prompt: PROMPT });
    const end = await fake.end();
    expect([end.outcome, end.detail, model.questions.length]).to.deep.equal(['FAILED', 'context_overflow', 0]);
    expect(compactionOf(end.entries)?.['summary']).to.include(SUMMARY);
  });

  it('keeps the summary of a turn that fails after it', async () => {
    model.use(
      (response) => streamWords(response, [SUMMARY]),
      (response) => reply(response, 400, { error: { message: 'no' } }),
    );
    fake.giveRun({ entries: history(8, 30_000) });
    const end = await fake.end();
    expect([end.outcome, end.detail]).to.deep.equal(['FAILED', 'model_error']);
    expect(compactionOf(end.entries)).to.deep.include({ summary: SUMMARY, firstKeptEntryId: 'q7' });
  });

  it('leaves the conversation alone during a turn, however much a tool brought in', async () => {
    model.use(
      (response) => streamWords(response, [SUMMARY]),
      (response) => (model.questions.length === 1 ? toolAt(response, TRIGGER + 1_000) : streamWords(response, ['Read.'])),
    );
    fake.giveRun({ entries: history(4, 1_000) });
    expect((await fake.end()).outcome).to.equal('DONE');
    expect(model.summaries).to.have.length(0);
  });

  it('shortens once and asks again when the provider finds the request too large, also by its status alone', async () => {
    model.use(
      (response) => streamWords(response, [SUMMARY]),
      (response) =>
        model.questions.length === 1 ? reply(response, 413, { error: { message: 'no' } }) : streamWords(response, ['Shorter now.']),
    );
    fake.giveRun({ entries: history(4, 1_000) });
    const end = await fake.end();
    expect([end.outcome, ...wordsIn(end.entries, 'assistant')]).to.deep.equal(['DONE', 'Shorter now.']);
    expect(fake.named('model').map(isSummary)).to.deep.equal([false, true, false]);
    expect(compactionOf(end.entries)).to.deep.include({ summary: SUMMARY });
  });

  it('gives up when the provider finds the shortened conversation too long, too', async () => {
    model.use(
      (response) => streamWords(response, [SUMMARY]),
      (response) => reply(response, 413, { error: { message: 'no' } }),
    );
    fake.giveRun({ entries: history(4, 1_000) });
    const end = await fake.end();
    expect([end.outcome, end.detail, fake.named('model').length]).to.deep.equal(['FAILED', 'context_overflow', 3]);
  });

  it('counts the summary among the 40 model calls of a turn', async () => {
    model.use(
      (response) => streamWords(response, [SUMMARY]),
      (response) => streamTool(response, 'read', { path: 'INDEX.md' }),
    );
    fake.giveRun({ entries: history(8, 30_000) });
    expect((await fake.end()).detail).to.equal('call_limit');
    expect([model.summaries.length, model.questions.length]).to.deep.equal([1, 39]);
  });

  it('a stop reaches a summary that is being written, and nothing of it is stored', async () => {
    model.use((response) => openStream(response)(openai.words('## Goal: half of')));
    fake.on('turn/partial', (_call, response) => reply(response, 200, model.summaries.length > 0 ? { stop: 'developer' } : {}));
    fake.giveRun({ entries: history(8, 30_000) });
    const end = await fake.end();
    expect([end.outcome, end.entries.length, model.questions.length]).to.deep.equal(['STOPPED', 0, 0]);
    expect(await fake.until(() => model.summaries[0]?.aborted || undefined), 'the call is closed').to.equal(true);
  });
});
