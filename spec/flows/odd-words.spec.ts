/**
 * Owns: proof that odd words reach the model and come back from it byte for byte, with a real server, sandbox and provider.
 * Does not own: the stream, the page's answers and the search (spec/rules/texts.spec.ts), the page itself (spec/web).
 */
import { expect } from 'chai';
import type { Entry } from '../../src/contract/web.ts';
import { Flow } from '../support/flow.ts';
import { says } from '../support/model-server.ts';
import { ODD_TEXTS } from '../support/odd-texts.ts';
import { requestLines } from '../support/told-conversation.ts';

describe('odd words of a real turn', function () {
  this.timeout(180_000);
  let flow: Flow;
  afterEach(() => flow.close());

  it('are the same in the question, the request of the model, its answer and the request after it', async () => {
    let words = '';
    flow = await Flow.open({ script: () => says(words) });
    const person = flow.person(await flow.server());
    const expected: string[] = [];
    let entries: readonly Entry[] = [];
    for (const [name, text, kept = text] of ODD_TEXTS) {
      // A provider's own JSON can hold what no database can; what is stored of an answer is what is stored of a question.
      words = text;
      const { turn } = await person.ask(text);
      expect((await person.waitForTurn(turn.id)).status, name).to.equal('DONE');
      const { lines } = requestLines(flow.model.seen.at(-1)?.body);
      expected.push(kept);
      expect(lines.at(-1)?.replace(/^user: \[[^\]]*\]\n/, ''), name).to.equal(kept);
      expect(
        lines.map((line) => line.replace(/^(user: \[[^\]]*\]\n|assistant: )/, '')),
        name,
      ).to.deep.equal(expected);
      expected.push(kept);
      entries = await person.entries(turn.conversationId);
    }
    expect(entries.map((entry) => entry.text)).to.deep.equal(expected);
  });
});
