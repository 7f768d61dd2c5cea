/**
 * Owns: proof that the page is exact however often its stream breaks, at whatever byte, and whichever server it comes back to (G5, D9).
 */
import { expect } from 'chai';
import type { Clock } from '../../src/kernel/clock.ts';
import { ChatController } from '../../src/web/chat/controller.ts';
import { type ChatApi, createApi } from '../../src/web/net/api.ts';
import { browserClock } from '../../src/web/net/browser-clock.ts';
import { EventStream } from '../../src/web/net/event-stream.ts';
import { type TimelineItem, timeline } from '../../src/web/store/timeline.ts';
import { linesOf } from '../support/page-client.ts';
import { CuttingServer } from '../support/page-cutter.ts';
import { WebLedger } from '../support/page-ledger.ts';

const CUTS = 1_000;
const CUTS_PER_TURN = 40;
const WORDS = ['plain ', 'ñandú ', '北京 ', '👩‍👩‍👧‍👦 ', '\u2028', '\r\n', 'data: x\n\n', 'שלום ', '𝄞', '</script>', '"\\', '🟢'] as const;

/** The same numbers each time for the same seed. 0 up to 1. */
function numbersFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32;
    return state / 2 ** 32;
  };
}

/** Pauses between connections cost no time; the watch over a silent line never strikes. */
const hastyClock: Clock = {
  ...browserClock,
  after(delayMs, fn) {
    if (delayMs >= 45_000) return { cancel: () => undefined };
    const handle = setImmediate(fn);
    return { cancel: () => clearImmediate(handle) };
  },
};

function apiOf(ledger: WebLedger): ChatApi {
  const unused = createApi('home');
  return {
    ...unused,
    entries: async (_id, query) => ({ ok: true, value: ledger.pageOf(query) }),
    turn: async (turnId) => {
      const turn = ledger.turns.find(({ id }) => id === turnId);
      if (turn === undefined) throw new Error('the page asked for a turn that never was');
      return { ok: true, value: structuredClone(turn) };
    },
  };
}

/** A ledger in which turns go on and end, two servers that break their streams, and a page that always comes back to the other one. */
class Cutting {
  readonly ledger = new WebLedger();
  /** Turn id -> what was written of its answer. */
  readonly written = new Map<string, string>();
  readonly controller: ChatController;
  readonly allCut = Promise.withResolvers<void>();
  cuts = 0;
  connections = 0;
  readonly #random: () => number;
  readonly #servers: readonly CuttingServer[];
  #urls: readonly string[] = [];

  constructor(random: () => number) {
    this.#random = random;
    const ports = {
      ledger: this.ledger,
      random,
      nextCutBytes: () => (this.cuts < CUTS ? 1 + Math.floor(random() * 3_000) : null),
      onCut: () => this.#onCut(),
    };
    this.#servers = [new CuttingServer(ports), new CuttingServer(ports)];
    this.controller = new ChatController({
      api: apiOf(this.ledger),
      clock: hastyClock,
      random: () => 0,
      storage: { getItem: () => null, setItem: () => undefined, removeItem: () => undefined },
      storageKey: 'outbox',
      words: { failure: ({ kind }) => kind, leftBeforeSent: 'left' },
      openStream: (handlers) => {
        const connect = (init: RequestInit) => fetch(this.#urls[this.connections++ % this.#urls.length] as string, init);
        const stream = new EventStream('/', { fetch: (_path, init) => connect(init), clock: hastyClock, random: () => 0 }, handlers);
        return { start: () => stream.start(), stop: () => stream.stop(), requestSnapshot: () => stream.reconnect() };
      },
    });
  }

  async start(): Promise<void> {
    this.#urls = await Promise.all(this.#servers.map((server) => server.listen()));
    this.controller.start();
  }

  async close(): Promise<void> {
    this.controller.stop();
    await Promise.all(this.#servers.map((server) => server.close()));
  }

  /** The running turn goes on a little, or ends; or a question is asked. */
  step(): void {
    const turn = this.ledger.running;
    if (turn === undefined) {
      const number = this.ledger.turns.length;
      this.ledger.ask(`q${number}`, `question ${number} ${WORDS[number % WORDS.length]}`);
      this.ledger.claim();
    } else if (this.cuts % CUTS_PER_TURN === 0) this.end();
    else {
      const pick = () => WORDS[Math.floor(this.#random() * WORDS.length)];
      const words = Array.from({ length: 1 + Math.floor(this.#random() * 8) }, pick).join('');
      this.written.set(turn.id, (this.written.get(turn.id) ?? '') + words);
      this.ledger.write(words);
    }
    this.#tell();
  }

  /** The running turn ends with all of its words. */
  end(): void {
    const turn = this.ledger.running;
    if (turn !== undefined) this.ledger.end('DONE', [this.written.get(turn.id) ?? '']);
    this.#tell();
  }

  items(): readonly TimelineItem[] {
    const state = this.controller.chat.get();
    return timeline(state, state.mainId);
  }

  /** Resolves when the page shows what the ledger has. */
  async exact(): Promise<void> {
    const { chat } = this.controller;
    const isExact = () => chat.get().sync === null && JSON.stringify(linesOf(chat.get())) === JSON.stringify(this.ledger.lines());
    await new Promise<void>((resolve) => {
      const look = () => isExact() && resolve();
      chat.subscribe(look);
      look();
    });
  }

  #tell(): void {
    for (const server of this.#servers) server.tell();
  }

  #onCut(): void {
    this.cuts += 1;
    try {
      this.#check();
      this.step();
    } catch (error) {
      this.allCut.reject(error);
    }
    if (this.cuts >= CUTS) this.allCut.resolve();
  }

  /** Nothing is there twice, and what is shown of an answer is how it began. */
  #check(): void {
    const items = this.items();
    expect(new Set(items.map(({ id }) => id)).size).to.equal(items.length);
    for (const item of items) {
      if (item.kind === 'answer') expect((this.written.get(item.turnId ?? '') ?? '').startsWith(item.text)).to.equal(true);
    }
  }
}

describe('a page whose stream breaks', () => {
  it(`${CUTS} times at random bytes, and comes back to another server each time, has every answer byte by byte, once and in order`, async function () {
    this.timeout(160_000);
    const seed = Date.now() % 2 ** 32;
    const cutting = new Cutting(numbersFrom(seed));
    const writing = setInterval(() => cutting.step(), 1);
    try {
      await cutting.start();
      await cutting.allCut.promise;
      clearInterval(writing);
      cutting.end();
      await cutting.exact();
      const shown = cutting.items().flatMap((item) => (item.kind === 'answer' ? [item.text] : []));
      const written = cutting.ledger.turns.map(({ id }) => cutting.written.get(id) ?? '');
      expect(shown.length).to.be.greaterThan(CUTS / CUTS_PER_TURN / 2);
      expect(Buffer.compare(Buffer.from(shown.join('\0')), Buffer.from(written.join('\0')))).to.equal(0);
    } finally {
      clearInterval(writing);
      await cutting.close();
      process.stdout.write(
        `      seed ${seed}: ${cutting.cuts} cuts, ${cutting.connections} connections, ${cutting.ledger.turns.length} answers\n`,
      );
    }
  });
});
