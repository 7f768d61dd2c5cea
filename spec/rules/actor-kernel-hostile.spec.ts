/**
 * Asks: over tens of thousands of passivations at the worst moments, is any accepted command lost, run out of order, or run beside another
 * of its id? Idle actors leave at every sweep, sweeps fall between random commands, the kind is smaller than the set of ids, and commands
 * and loads crash before and after they write.
 */
import { expect } from 'chai';
import { ActorSystem, type Behaviour, type DropReason } from '../../actors/kernel/index.ts';
import { RuntimeFault } from '../../src/kernel/faults.ts';
import { silentLog } from '../../src/kernel/log.ts';
import { turnOfTheLoop } from '../support/actor-rig.ts';
import { ManualClock } from '../support/manual-clock.ts';

const PASSIVATIONS = 50_000;
const IDS = 300;

type Append = { readonly type: 'Append'; readonly n: number };
interface Copy {
  readonly id: string;
  readonly numbers: readonly number[];
}

/** mulberry32: the same numbers in each run. */
function seeded(seed: number): () => number {
  let a = seed;
  return () => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** The rows of all ids, and what must never happen, counted. */
class Ledger {
  readonly rows = new Map<string, readonly number[]>();
  readonly random: () => number;
  readonly running = new Set<string>();
  loads = 0;
  drops: Record<DropReason, number> = { idle: 0, evicted: 0, crash: 0, shutdown: 0 };
  readonly wrongs: string[] = [];

  constructor(random: () => number) {
    this.random = random;
  }

  readonly behaviour: Behaviour<Copy, Append, number> = {
    load: (id) =>
      this.#alone(id, async () => {
        await this.#pause();
        if (this.random() < 0.01) throw new Error('load crash');
        this.loads += 1;
        return { id, numbers: this.rows.get(id) ?? [] };
      }),
    handle: (state, { n }) =>
      this.#alone(state.id, async () => {
        if (state.numbers !== (this.rows.get(state.id) ?? state.numbers)) this.wrongs.push(`${state.id}: stale state`);
        await this.#pause();
        if (this.random() < 0.01) throw new Error('crash before the write');
        const numbers = [...state.numbers.slice(-3), n];
        this.rows.set(state.id, numbers);
        await this.#pause();
        if (this.random() < 0.01) throw new Error('crash after the write');
        return { state: { ...state, numbers }, reply: n };
      }),
    dropped: (state, reason) => {
      if (this.running.has(state.id) && reason !== 'crash') this.wrongs.push(`${state.id}: left while it ran`);
      this.drops[reason] += 1;
    },
  };

  async #alone<T>(id: string, work: () => Promise<T>): Promise<T> {
    if (this.running.has(id)) this.wrongs.push(`${id}: two at once`);
    this.running.add(id);
    try {
      return await work();
    } finally {
      this.running.delete(id);
    }
  }

  #pause(): Promise<void> | undefined {
    const dice = this.random();
    if (dice < 0.6) return undefined;
    return dice < 0.8 ? Promise.resolve() : turnOfTheLoop();
  }
}

describe('actors that leave memory at the worst moments', () => {
  it('lose no accepted command over 50,000 passivations, keep the order of each id and never run two at once', async function () {
    this.timeout(120_000);
    const random = seeded(20260101);
    const ledger = new Ledger(random);
    const clock = new ManualClock();
    const system = new ActorSystem({ clock, log: silentLog });
    const options = { mailboxMax: 50, actorsMax: IDS / 2, idleMs: 0, handlerMs: 60_000, sweepMs: 1 };
    const kind = system.kind('hostile', ledger.behaviour, options);
    const answers = { asked: 0, ok: 0, crashed: 0, refused: 0 };
    const lastSettled = new Map<string, number>();
    let outstanding = 0;
    const ask = (id: string, n: number) => {
      answers.asked += 1;
      outstanding += 1;
      const settled = () => {
        outstanding -= 1;
        if (n <= (lastSettled.get(id) ?? 0)) ledger.wrongs.push(`${id}: ${n} was answered out of order`);
        lastSettled.set(id, n);
      };
      void kind.ask(id, { type: 'Append', n }).then(
        (reply) => {
          if (reply !== n) ledger.wrongs.push(`${id}: ${n} was answered with ${reply}`);
          answers.ok += 1;
          settled();
        },
        (fault: unknown) => {
          if (!(fault instanceof RuntimeFault)) ledger.wrongs.push(`${id}: not a fault`);
          else if (fault.code === 'INTERNAL') {
            answers.crashed += 1;
            settled();
            return;
          }
          answers.refused += 1;
          outstanding -= 1;
        },
      );
    };
    for (let n = 1; kind.stats.passivations < PASSIVATIONS; n++) {
      ask(`id${Math.floor(random() * IDS)}`, n);
      const sweeping = Math.floor(n / 5_000) % 2 === 0; // else actors leave only to make room
      const dice = random();
      if (sweeping && dice < 0.3) clock.advance(1);
      if (dice > 0.7 || outstanding > 500) await (dice > 0.85 || outstanding > 500 ? turnOfTheLoop() : Promise.resolve());
    }
    expect(await system.drain(60_000)).to.equal(true);
    await turnOfTheLoop();

    const { stats } = kind;
    expect(ledger.wrongs).to.deep.equal([]);
    expect(outstanding, 'unanswered').to.equal(0);
    expect(answers.ok + answers.crashed + answers.refused).to.equal(answers.asked);
    expect(answers.ok + answers.crashed, 'each accepted command ran').to.equal(stats.commands);
    expect(stats).to.include({ actors: 0, pending: 0, expired: 0, refusals: answers.refused });
    expect(answers.crashed / answers.asked, 'the run was hostile').to.be.above(0.01);
    expect(ledger.drops.idle).to.be.above(10_000);
    expect(ledger.drops.evicted).to.be.above(10_000);
    const drops = Object.values(ledger.drops).reduce((sum, count) => sum + count, 0);
    expect(drops, 'each loaded state was dropped once').to.equal(ledger.loads);
    for (const [id, numbers] of ledger.rows) expect([...numbers], id).to.deep.equal(numbers.toSorted((a, b) => a - b));
  });
});
