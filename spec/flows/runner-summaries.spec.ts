/**
 * Owns: proof of what a summary may cost and what it keeps: one that cannot be written never costs a question its answer, and a stored one
 * finds its start again. Real runner, real Pi, real HTTP, a scripted model.
 * Does not own: when conversations are shortened (runner-compaction.spec.ts).
 */
import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import { openai, openStream, streamWords, transcriptOf, wordsIn } from '../support/agent-scripts.ts';
import { type FakeAgentServer, problem, reply, type SeenCall } from '../support/fake-agent-server.ts';
import { asked, compactionOf, history, SUMMARY, SummarisingModel, words } from '../support/long-conversation.ts';
import { RunnerRig } from '../support/runner-rig.ts';

const WINDOW = 32_768;
const PROMPT = 'A short question.';

describe('a runner writes summaries', () => {
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

  describe('the first entry that a summary keeps', () => {
    it('is a message, not the note about an older result that stands before it and is not on the path any more', async () => {
      const entries = history(8, 0);
      const before = entries.findIndex((entry) => entry.id === 'q7');
      const note = { type: 'context_edit', id: 'e6', parentId: 'a6', timestamp: '2026-10-08T07:06:00.000Z', targetId: 'a1' };
      const path = entries.toSpliced(before, 0, { ...note, replacement: { content: [{ type: 'text', text: words(2_000) }] } });
      fake.giveRun({ entries: path.map((entry, index) => ({ ...entry, parentId: path[index - 1]?.id ?? null })), prompt: words(2_000) });
      expect(compactionOf((await fake.end()).entries)).to.deep.include({ firstKeptEntryId: 'q7' });
    });

    it('is the summary itself when nothing is kept, not a failed call that the ledger never has', async () => {
      model.use(
        (response) => streamWords(response, [SUMMARY]),
        (response) =>
          model.questions.length === 1 ? reply(response, 413, { error: { message: 'no' } }) : streamWords(response, ['Shorter now.']),
      );
      // The question alone is more than what is kept, so Pi puts it into the summary, too.
      fake.giveRun({ entries: history(4, 1_000), prompt: words(6_000) });
      const summary = compactionOf((await fake.end()).entries);
      expect(summary?.id).to.be.a('string');
      expect(summary?.['firstKeptEntryId']).to.equal(summary?.id);
    });
  });

  describe('a summary that cannot be written', () => {
    const failures: readonly (readonly [string, number, (response: ServerResponse) => void])[] = [
      ['because the provider refuses it', 1, (response) => reply(response, 400, { error: { message: 'no' } })],
      ['because it is empty', 1, (response) => streamWords(response, [' \n'])],
      [
        'because the provider falls silent in the middle of it',
        1,
        (response) => {
          openStream(response)(openai.words('## Goal: half of'));
          response.end(`data: ${JSON.stringify({ error: { code: 'upstream_stalled', message: 'No answer. Connection lost.' } })}\n\n`);
        },
      ],
      ['because the provider falls silent', 1, (response) => problem(response, 504, { code: 'UPSTREAM_STALLED' })],
      [
        'because it is cut off',
        1,
        (response) => {
          const send = openStream(response);
          send(openai.words('## Goal: half of'));
          send(openai.finish('length'));
          response.end('data: [DONE]\n\n');
        },
      ],
      ['although it was tried again', 3, (response) => reply(response, 503, { error: { message: 'overloaded' } })],
    ];
    for (const [why, calls, fail] of failures) {
      it(`${why} leaves the history whole, and the question is answered`, async () => {
        model.use(fail);
        fake.giveRun({ entries: history(8, 30_000), prompt: PROMPT });
        const end = await fake.end();
        expect([end.outcome, ...wordsIn(end.entries, 'assistant')]).to.deep.equal(['DONE', 'Here you are.']);
        expect(compactionOf(end.entries)).to.equal(undefined);
        expect(model.summaries).to.have.length(calls);
        expect(transcriptOf(model.questions[0] as SeenCall)[1]?.text).to.equal(asked(1));
      });
    }

    it('fails the turn before any call for the answer when the conversation does not fit the window', async () => {
      model.use((response) => reply(response, 400, { error: { message: 'no' } }));
      fake.giveRun({ entries: history(8, WINDOW), prompt: PROMPT });
      expect(await fake.end()).to.deep.include({ outcome: 'FAILED', reason: 'ERROR', detail: 'context_overflow', entries: [] });
      expect(model.questions).to.have.length(0);
    });
  });
});
