/**
 * Owns: proof that a person sees what happens now below an answer: the stage, or the words that have taken its place.
 */
import { expect } from 'chai';
import type { ChatAction } from '../../src/web/store/state.ts';
import { timeline } from '../../src/web/store/timeline.ts';
import { type Client, connected } from '../support/page-client.ts';
import { WebLedger } from '../support/page-ledger.ts';

describe('the stage of an answer', () => {
  const shownStage = (client: Client): string | null => {
    const item = timeline(client.state, client.state.mainId).at(-1);
    return item?.kind === 'answer' ? item.stage : 'not live';
  };
  const news = (ledger: WebLedger, from: number) => ledger.log.slice(from) as ChatAction[];

  it('gives way to the words that come under it, and comes back with the next stage, also across a reconnection', () => {
    const ledger = new WebLedger();
    ledger.ask('a', 'first?');
    ledger.claim();
    const client = connected(ledger);
    expect(shownStage(client)).to.equal('Thinking…');
    let from = ledger.log.length;
    ledger.write('One ');
    expect(shownStage(client.act(...news(ledger, from)))).to.equal(null);
    expect(shownStage(client.connect(ledger))).to.equal(null);
    from = ledger.log.length;
    ledger.write('moment. ', 'Reading the documents…');
    expect(shownStage(client.act(...news(ledger, from)))).to.equal('Reading the documents…');
    from = ledger.log.length;
    ledger.write('', 'Thinking…');
    expect(shownStage(client.act(...news(ledger, from)))).to.equal('Thinking…');
    from = ledger.log.length;
    ledger.write('Done.');
    expect(shownStage(client.act(...news(ledger, from)))).to.equal(null);
  });

  it('is not shown below the first words of an attempt, but a tool that starts with words is', () => {
    const ledger = new WebLedger();
    ledger.ask('a', 'first?');
    const client = connected(ledger);
    let from = ledger.log.length;
    ledger.claim();
    const [turn] = news(ledger, from);
    if (turn !== undefined) client.act(turn);
    from = ledger.log.length;
    ledger.write('Let me look. ');
    const [first] = news(ledger, from);
    if (first?.type !== 'partial') throw new Error('words were written');
    // The loop's first report has words already.
    expect(shownStage(client.act(first))).to.equal(null);
    from = ledger.log.length;
    ledger.write('One moment. ', 'Reading the documents…');
    expect(shownStage(client.act(...news(ledger, from)))).to.equal('Reading the documents…');
    from = ledger.log.length;
    ledger.write('There it is. ');
    expect(shownStage(client.act(...news(ledger, from)))).to.equal(null);
  });

  it('is shown instead of words that have a hole', () => {
    const ledger = new WebLedger();
    ledger.ask('a', 'first?');
    ledger.claim();
    const client = connected(ledger);
    ledger.write('lost ');
    const from = ledger.log.length;
    ledger.write('words');
    expect(shownStage(client.act(...news(ledger, from)))).to.equal('Thinking…');
  });
});
