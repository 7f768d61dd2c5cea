/**
 * Owns: proof that two conversations on one stream stay apart and are both exact, whatever the stream repeats or delays, and whenever
 * somebody comes into the thread and leaves it again: random histories and deliveries.
 */
import { expect } from 'chai';
import fc from 'fast-check';
import type { Entry, EntryPage } from '../../src/contract/web.ts';
import type { ChatAction } from '../../src/web/store/state.ts';
import { threadsOf } from '../../src/web/store/threads.ts';
import { Client, linesOf } from '../support/page-client.ts';
import { WebLedger } from '../support/page-ledger.ts';

const stepOf = fc.record({
  op: fc.constantFrom('ask', 'own-ask', 'claim', 'write', 'write', 'handed-on', 'done', 'failed', 'stop', 'end-stopped', 'erase', 'look'),
  inThread: fc.boolean(),
  pick: fc.nat(1_000),
  /** Events that come again, late or twice: places in everything said so far. */
  repeats: fc.array(fc.nat(10_000), { maxLength: 2 }),
  reconnect: fc.nat(9).map((dice) => dice === 0),
  /** After how many steps a page is read, and how many later it arrives. */
  readAfter: fc.nat(2),
  arrivesAfter: fc.nat(3),
});
type Step = typeof stepOf extends fc.Arbitrary<infer T> ? T : never;

class TwoConversations {
  readonly main = new WebLedger();
  readonly thread: WebLedger;
  readonly client = new Client();
  /** Somebody has the thread in view. */
  looking = false;
  readonly #said: ChatAction[] = [];
  readonly #told = new Map<WebLedger, number>();
  #later: { in: number; run: () => void }[] = [];

  constructor() {
    this.main.ask('a', 'first?');
    this.main.claim();
    this.main.end('DONE', ['the first answer']);
    this.thread = new WebLedger(undefined, { conversationId: this.main.conversationId, entry: this.main.entries[1] as Entry });
    this.#told.set(this.main, this.main.log.length);
    this.reconnect({ readAfter: 0, arrivesAfter: 0 });
    this.pass(true);
  }

  step(step: Step, index: number): void {
    const ledger = step.inThread ? this.thread : this.main;
    if (step.op === 'look') this.look();
    if (step.op === 'own-ask') this.#askOwn(ledger, `own-${index}`, step);
    this.#change(ledger, step);
    this.#tell();
    for (const place of step.repeats) {
      const event = this.#said[place % Math.max(1, this.#said.length)];
      if (event !== undefined) this.client.act(event);
    }
    if (step.reconnect) this.reconnect(step);
    this.#open(step);
    this.pass(false);
  }

  /** Everything that was under way arrives. */
  settle(): void {
    for (let round = 0; round < 3; round++) {
      this.pass(true);
      this.#open({ readAfter: 0, arrivesAfter: 0 });
      this.client.resolve(this.main, this.thread);
    }
    this.pass(true);
  }

  look(): void {
    this.looking = !this.looking;
  }

  reconnect({ readAfter, arrivesAfter }: Pick<Step, 'readAfter' | 'arrivesAfter'>): void {
    this.client.act({ type: 'snapshot', snapshot: this.main.snapshot(this.thread) });
    const { generation, ranges } = this.client.state;
    const planned = this.thread.conversationId in ranges;
    this.#in(readAfter, () => {
      const pages: Record<string, EntryPage> = { [this.main.conversationId]: this.main.page() };
      if (planned) pages[this.thread.conversationId] = this.thread.page();
      this.#in(arrivesAfter, () => this.client.act({ type: 'synced', generation, pages }));
    });
  }

  pass(all: boolean): void {
    do {
      const due = this.#later.filter((item) => all || item.in-- <= 0);
      this.#later = this.#later.filter((item) => !due.includes(item));
      for (const item of due) item.run();
    } while (all && this.#later.length > 0);
  }

  /** As chat/opener.ts does it. */
  #open({ readAfter, arrivesAfter }: Pick<Step, 'readAfter' | 'arrivesAfter'>): void {
    const { ready, sync, ranges, generation } = this.client.state;
    const { conversationId } = this.thread;
    if (!ready || sync !== null) return;
    if (!this.looking) return void this.client.act({ type: 'closed', conversationId });
    if (conversationId in ranges) return;
    this.client.act({ type: 'opening', conversationId });
    this.#in(readAfter, () => {
      const page = this.thread.page();
      this.#in(arrivesAfter, () => this.client.act({ type: 'opened', conversationId, generation, page }));
    });
  }

  #in(delay: number, run: () => void): void {
    this.#later.push({ in: delay, run });
  }

  #tell(): void {
    for (const ledger of [this.main, this.thread]) {
      const events = ledger.log.slice(this.#told.get(ledger) ?? 0) as ChatAction[];
      this.#told.set(ledger, ledger.log.length);
      this.#said.push(...events);
      this.client.act(...events);
    }
  }

  #askOwn(ledger: WebLedger, name: string, { arrivesAfter }: Step): void {
    this.client.send(name, `mine ${name}`, ledger === this.thread ? ledger.conversationId : null);
    const rows = ledger.ask(name, `mine ${name}`);
    this.#in(arrivesAfter, () => this.client.act({ type: 'answered', requestId: name, ...rows }));
  }

  #change(ledger: WebLedger, { op, pick }: Step): void {
    const one = <T>(list: readonly T[]): T | undefined => list[pick % Math.max(1, list.length)];
    const turn = one(ledger.turns);
    const entry = one(ledger.entries);
    if (op === 'ask') ledger.ask(`other-${ledger.conversationId}-${ledger.turns.length}`, `question ${ledger.turns.length}`);
    if (op === 'claim') ledger.claim();
    if (op === 'write') ledger.write(`word${pick} `);
    if (op === 'handed-on') ledger.requeue(op);
    if (op === 'done') ledger.end('DONE', [`answer ${pick}`]);
    if (op === 'failed') ledger.end('FAILED', []);
    if (op === 'stop' && turn !== undefined) ledger.stop(turn);
    if (op === 'end-stopped') ledger.endStopped(pick % 2 === 0 ? `cut off ${pick}` : null);
    if (op === 'erase' && entry?.kind === 'answer') ledger.erase(entry);
  }

  /** A stopped turn's words stay on the page until its answer comes; whoever opens the page now does not see them. */
  lines(ledger: WebLedger): string[] {
    const { state } = this.client;
    const open = Object.fromEntries(Object.entries(state.live).filter(([, live]) => !live.closed));
    return linesOf({ ...state, live: open }, ledger.conversationId);
  }
}

describe('the page shows two conversations', () => {
  it('each as its ledger has it, after any repeats, delays, comings and goings', () => {
    fc.assert(
      fc.property(fc.array(stepOf, { minLength: 1, maxLength: 40 }), (steps) => {
        const two = new TwoConversations();
        for (const [index, step] of steps.entries()) two.step(step, index);
        two.settle();
        expect(two.lines(two.main)).to.deep.equal(two.main.lines());
        expect(two.lines(two.thread)).to.deep.equal(two.looking ? two.thread.lines() : []);
        if (two.looking) two.look();
        two.settle();
        two.look();
        two.settle();
        expect(two.lines(two.thread), 'opened anew').to.deep.equal(two.thread.lines());
        const [summary] = threadsOf(two.client.state);
        expect(summary?.answering).to.equal(two.thread.running !== undefined);
        expect(summary?.title).to.equal(two.main.entries[1]?.text.split('\n', 1)[0]);
      }),
      { numRuns: 1_000 },
    );
  });
});
