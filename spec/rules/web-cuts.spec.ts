/**
 * Owns: proof that the page is exact however often its stream breaks, at whatever byte, and whichever server it comes back to (G5, D9).
 */
import { expect } from 'chai';
import type { Clock } from '../../src/kernel/clock.ts';
import { ChatController } from '../../src/web/chat/controller.ts';
import { type ChatApi, createApi } from '../../src/web/net/api.ts';
import { browserClock } from '../../src/web/net/browser-clock.ts';
import { EventStream } from '../../src/web/net/event-stream.ts';
import { timeline } from '../../src/web/store/timeline.ts';
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
    entries: async (_id, { before, limit }) => ({ ok: true, value: ledger.page(before ?? undefined, limit) }),
    turn: async (turnId) => {
      const turn = ledger.turns.find(({ id }) => id === turnId);
      if (turn === undefined) throw new Error('the page asked for a turn that never was');
      return { ok: true, value: structuredClone(turn) };
    },
  };
}

describe('a page whose stream breaks', () => {
  it(`${CUTS} times at random bytes, and comes back to another server each time, has every answer byte by byte, once and in order`, async function () {
    this.timeout(160_000);
    const seed = Date.now() % 2 ** 32;
    console.log(`      seed ${seed}`);
    const random = numbersFrom(seed);
    const ledger = new WebLedger();
    let cuts = 0;
    let onCut: () => void = () => undefined;
    const ports = {
      ledger,
      random,
      nextCutBytes: () => (cuts < CUTS ? 1 + Math.floor(random() * 3_000) : null),
      onCut: () => onCut(),
    };
    const servers = [new CuttingServer(ports), new CuttingServer(ports)];
    const urls = await Promise.all(servers.map((server) => server.listen()));
    let connections = 0;
    const controller = new ChatController({
      api: apiOf(ledger),
      clock: hastyClock,
      random: () => 0,
      storage: { getItem: () => null, setItem: () => undefined, removeItem: () => undefined },
      storageKey: 'outbox',
      words: { failure: ({ kind }) => kind, leftBeforeSent: 'left' },
      openStream(handlers) {
        const stream = new EventStream(
          '/events',
          { fetch: (_path, init) => fetch(urls[connections++ % urls.length] as string, init), clock: hastyClock, random: () => 0 },
          handlers,
        );
        return { start: () => stream.start(), stop: () => stream.stop(), requestSnapshot: () => stream.reconnect() };
      },
    });
    const { chat } = controller;
    const shown = () => timeline(chat.get(), chat.get().mainId);
    const stored = new Map<string, string>();

    /** The turn goes on a little; at the end it is answered with all of its words. */
    const step = () => {
      const turn = ledger.running;
      if (turn === undefined) {
        ledger.ask(`q${ledger.turns.length}`, `question ${ledger.turns.length} ${WORDS[ledger.turns.length % WORDS.length]}`);
        ledger.claim();
      } else if (cuts % CUTS_PER_TURN === 0) {
        ledger.end('DONE', [stored.get(turn.id) ?? '']);
      } else {
        const words = Array.from({ length: 1 + Math.floor(random() * 8) }, () => WORDS[Math.floor(random() * WORDS.length)]).join('');
        stored.set(turn.id, (stored.get(turn.id) ?? '') + words);
        ledger.write(words);
      }
      for (const server of servers) server.tell();
    };
    /** What is shown was written, from its beginning; nothing is there twice. */
    const check = () => {
      const items = shown();
      expect(new Set(items.map(({ id }) => id)).size).to.equal(items.length);
      for (const item of items) {
        if (item.kind === 'answer' && item.turnId !== null) expect((stored.get(item.turnId) ?? '').startsWith(item.text)).to.equal(true);
      }
    };

    const allCut = Promise.withResolvers<void>();
    onCut = () => {
      cuts += 1;
      try {
        check();
        step();
      } catch (error) {
        allCut.reject(error);
      }
      if (cuts >= CUTS) allCut.resolve();
    };
    const writing = setInterval(step, 1);
    try {
      controller.start();
      await allCut.promise;
      clearInterval(writing);
      const last = ledger.running;
      if (last !== undefined) ledger.end('DONE', [stored.get(last.id) ?? '']);
      for (const server of servers) server.tell();
      await new Promise<void>((resolve) => {
        const look = () => {
          const calm = chat.get().sync === null && JSON.stringify(linesOf(chat.get())) === JSON.stringify(ledger.lines());
          if (calm) resolve();
        };
        chat.subscribe(look);
        look();
      });
      const answers = shown().flatMap((item) => (item.kind === 'answer' ? [item.text] : []));
      const written = ledger.turns.map(({ id }) => stored.get(id) ?? '');
      expect(answers.length).to.be.greaterThan(CUTS / CUTS_PER_TURN / 2);
      expect(Buffer.compare(Buffer.from(answers.join('\0')), Buffer.from(written.join('\0')))).to.equal(0);
      console.log(`      ${cuts} cuts, ${connections} connections, ${ledger.turns.length} answers`);
    } finally {
      clearInterval(writing);
      controller.stop();
      await Promise.all(servers.map((server) => server.close()));
    }
  });
});
