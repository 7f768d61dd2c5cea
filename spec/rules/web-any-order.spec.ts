/**
 * Owns: proof that the page shows what the ledger holds, whatever the stream repeats, delays or cuts: random histories and deliveries.
 */
import { expect } from 'chai';
import fc from 'fast-check';
import type { ChatAction } from '../../src/web/store/state.ts';
import { timeline } from '../../src/web/store/timeline.ts';
import { Client, linesOf } from '../support/page-client.ts';
import { WebLedger } from '../support/page-ledger.ts';

describe('the page shows the ledger', () => {
  /** One thing that happens: in the ledger, then between ledger and page. */
  const stepOf = fc.record({
    op: fc.constantFrom('ask', 'own-ask', 'claim', 'write', 'write', 'lost', 'handed-on', 'done', 'failed', 'stop', 'end-stopped', 'erase'),
    pick: fc.nat(1_000),
    /** Events that come again, late or twice: places in everything said so far. */
    repeats: fc.array(fc.nat(10_000), { maxLength: 3 }),
    reconnect: fc.nat(9).map((dice) => dice === 0),
    /** After how many steps the pages of a reconnection are read, and how many later they arrive. */
    readAfter: fc.nat(2),
    arrivesAfter: fc.nat(3),
    /** After how many steps the answer to an own question arrives; null: it is lost. */
    answerAfter: fc.option(fc.nat(4)),
    resolves: fc.boolean(),
  });
  type Step = typeof stepOf extends fc.Arbitrary<infer T> ? T : never;

  function change(ledger: WebLedger, { op, pick }: Step): void {
    const one = <T>(list: readonly T[]): T | undefined => list[pick % Math.max(1, list.length)];
    const turn = one(ledger.turns);
    const entry = one(ledger.entries);
    if (op === 'ask') ledger.ask(`other-${ledger.turns.length}`, `question ${ledger.turns.length}`);
    if (op === 'claim') ledger.claim();
    if (op === 'write') ledger.write(`word${pick} `);
    if (op === 'lost' || op === 'handed-on') ledger.requeue(op);
    if (op === 'done') ledger.end('DONE', pick % 3 === 0 ? ['first words', 'last words'] : [`answer ${pick}`]);
    if (op === 'failed') ledger.end('FAILED', []);
    if (op === 'stop' && turn !== undefined) ledger.stop(turn);
    if (op === 'end-stopped') ledger.endStopped(pick % 2 === 0 ? `cut off ${pick}` : null);
    if (op === 'erase' && entry?.kind === 'answer') ledger.erase(entry);
  }

  /** Runs the steps; returns ledger and page when everything that was under way has arrived. */
  function run(steps: readonly Step[]): { ledger: WebLedger; client: Client } {
    const ledger = new WebLedger();
    const client = new Client().connect(ledger);
    let later: { in: number; run: () => void }[] = [];
    const inSteps = (delay: number, run: () => void) => later.push({ in: delay, run });
    const pass = (all: boolean) => {
      const due = later.filter((item) => all || item.in-- <= 0);
      later = later.filter((item) => !due.includes(item));
      for (const item of due) item.run();
    };
    const reconnect = ({ readAfter, arrivesAfter }: Step) => {
      client.act({ type: 'snapshot', snapshot: ledger.snapshot() });
      const { generation } = client.state;
      inSteps(readAfter, () => {
        const pages = ledger.entries.length === 0 ? {} : { [ledger.conversationId]: ledger.page() };
        inSteps(arrivesAfter, () => client.act({ type: 'synced', generation, pages }));
      });
    };
    const askOwn = ({ answerAfter }: Step, name: string) => {
      client.send(name, `mine ${name}`);
      const rows = ledger.ask(name, `mine ${name}`);
      if (answerAfter !== null) inSteps(answerAfter, () => client.act({ type: 'answered', requestId: name, ...rows }));
      else client.act({ type: 'unsent', requestId: name, phase: 'unsent', reason: 'no answer came' });
    };
    let told = 0;
    for (const [index, step] of steps.entries()) {
      if (step.op === 'own-ask') askOwn(step, `own-${index}`);
      change(ledger, step);
      for (; told < ledger.log.length; told++) client.act(ledger.log[told] as ChatAction);
      for (const place of step.repeats) if (told > 0) client.act(ledger.log[place % told] as ChatAction);
      if (step.reconnect) reconnect(step);
      if (step.resolves) client.resolve(ledger);
      pass(false);
    }
    while (later.length > 0) pass(true);
    return { ledger, client: client.resolve(ledger) };
  }

  /** A stopped turn's words stay on the page until its answer comes; whoever opens the page now does not see them. */
  const withoutCutOffWords = (client: Client): string[] => {
    const { state } = client;
    const open = Object.fromEntries(Object.entries(state.live).filter(([, live]) => !live.closed));
    return linesOf({ ...state, live: open });
  };

  it('after any repeats, delays, lost answers and reconnections', () => {
    fc.assert(
      fc.property(fc.array(stepOf, { minLength: 1, maxLength: 40 }), (steps) => {
        const { ledger, client } = run(steps);
        expect(withoutCutOffWords(client)).to.deep.equal(ledger.lines());
        expect(linesOf(client.connect(ledger).state)).to.deep.equal(ledger.lines());
      }),
      { numRuns: 2_000 },
    );
  });

  it('with each message once, by one id that it keeps while it is written, answered and read again', () => {
    fc.assert(
      fc.property(fc.array(stepOf, { minLength: 1, maxLength: 30 }), (steps) => {
        const { client } = run(steps);
        const ids = timeline(client.state, client.state.mainId).map((item) => item.id);
        expect(new Set(ids).size).to.equal(ids.length);
      }),
      { numRuns: 300 },
    );
  });
});
