/**
 * A conversation that outgrows its model, with real processes: the summary is written, stored with what it covers, and the next turn
 * continues from it with the same bytes.
 */
import { expect } from 'chai';
import { z } from 'zod';
import { sql } from '../../db/pool.ts';
import { Flow } from '../support/flow.ts';
import { says } from '../support/model-server.ts';

const SUMMARY = '## Goal\nThey told each other tales.';
/** 6,000 tokens by the rule of four characters: one more than 5,461 is what is kept of a window of 32,768. */
const TALE = 'tale'.repeat(6_000);
const TURN_TOKENS = 6_500;

const summaryRow = z.object({ seq: z.number(), from_seq: z.number().nullable(), to_seq: z.number().nullable() });
const entryRow = z.object({ seq: z.number(), kind: z.string() });

describe('a conversation that outgrows its model', function () {
  this.timeout(180_000);
  let flow: Flow;
  afterEach(() => flow.close());

  it('is summarised before the question that would be too much, and goes on from the summary in the same bytes', async () => {
    let asked = 0;
    flow = await Flow.open({ env: { HEPH_LLM_CONTEXT_TOKENS: '32768', HEPH_LLM_OUTPUT_TOKENS: '8192' } });
    flow.model.use((seen) => {
      if (JSON.stringify(seen.body).includes('context summarization assistant')) return says(SUMMARY);
      asked += 1;
      return says(asked > 4 ? 'Short.' : TALE, { usage: { input: asked > 4 ? 1_000 : asked * TURN_TOKENS, output: 1 } });
    });
    const person = flow.person(await flow.server());
    let conversationId = '';
    for (const question of ['one', 'two', 'three', 'four', 'five', 'six']) {
      const { turn } = await person.ask(`Tell me number ${question}.`);
      conversationId = turn.conversationId;
      expect(await person.waitForTurn(turn.id)).to.include({ status: 'DONE' });
    }
    const requests = flow.model.seen.map((seen) => seen.body.messages as { role: string; content: unknown }[]);
    const kinds = requests.map((messages) => JSON.stringify(messages).includes('context summarization assistant'));
    expect(kinds).to.deep.equal([false, false, false, false, true, true, false, false]);
    const [fifth = [], sixth = []] = requests.slice(-2);
    expect(JSON.stringify(fifth[1])).to.include('They told each other tales.');
    expect(JSON.stringify(fifth)).to.include('number five').and.not.to.include('number three');
    // All but the situation, which is new each time.
    expect(sixth.slice(0, fifth.length - 1)).to.deep.equal(fifth.slice(0, -1));

    const [summary] = await flow.db.any(
      sql.type(summaryRow)`select seq, from_seq, to_seq from mentor_entry where conversation_id = ${conversationId} and kind = 'SUMMARY'`,
    );
    const entries = await flow.db.any(
      sql.type(entryRow)`select seq, kind from mentor_entry where conversation_id = ${conversationId} order by seq`,
    );
    const fourthAnswer = entries.filter((entry) => entry.kind === 'ANSWER')[3]?.seq ?? 0;
    expect([summary?.from_seq, summary?.to_seq]).to.deep.equal([1, fourthAnswer - 1]);
  });
});
