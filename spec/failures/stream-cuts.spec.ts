/**
 * Pages whose streams break again and again, between two real servers that lose each other now and then, while answers are written and
 * stopped, voted on and deleted: what they show at the end is what is stored.
 * cases: G3, G5, D9. (`rules/web-cuts` does the same without a server; `rules/web-decoder` cuts at every byte.)
 */
import { expect } from 'chai';
import { reconcileSlots } from '../../db/ledger/slots.ts';
import { sql } from '../../db/pool.ts';
import { entryPageSchema, turnSchema } from '../../src/contract/web.ts';
import { type Clock, systemClock } from '../../src/kernel/clock.ts';
import { ChatController } from '../../src/web/chat/controller.ts';
import { type ChatApi, createApi } from '../../src/web/net/api.ts';
import { browserClock } from '../../src/web/net/browser-clock.ts';
import { EventStream } from '../../src/web/net/event-stream.ts';
import { type TimelineItem, timeline } from '../../src/web/store/timeline.ts';
import { useDatabase } from '../support/database.ts';
import { type HttpRig, SandboxClient, useRigs } from '../support/http-rig.ts';
import { emptyLedger, run } from '../support/ledger.ts';
import { piAnswer, text } from '../support/pi-turns.ts';
import { CUT_KINDS, StreamCutter } from '../support/stream-cutter.ts';

const CUTS = 1_000;
const PAGES = 10;
const CUTS_PER_TURN = 50;
const TURNS_PER_STOP = 4;
/** Between two moments at which both servers lose the connections by which they hear each other. */
const CUTS_PER_DEAFNESS = 100;
/** Partial answers of an attempt that one server takes before the other does. */
const REPORTS_PER_SERVER = 20;
const WORDS = ['plain ', 'ñandú ', '北京 ', '👩‍👩‍👧‍👦 ', '\u2028', '\r\n', 'data: x\n\n', 'שלום ', '𝄞', '</script>', '"\\', '🟢'] as const;

/** The same numbers each time for the same seed. 0 up to 1. */
function numbersFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32;
    return state / 2 ** 32;
  };
}

const QUICK = 5;
/** Servers that pause less between what they send, so that many connections see words arrive. */
const quickClock: Clock = {
  now: systemClock.now,
  monotonicMs: () => systemClock.monotonicMs() * QUICK,
  after: (delayMs, fn) => systemClock.after(delayMs / QUICK, fn),
  every: (everyMs, fn) => systemClock.every(everyMs / QUICK, fn),
};

/** A page that does not pause between connections and never takes a line for dead. */
const hastyClock: Clock = {
  ...browserClock,
  after(delayMs, fn) {
    if (delayMs >= 45_000) return { cancel: () => undefined };
    const handle = setImmediate(fn);
    return { cancel: () => clearImmediate(handle) };
  },
};

/** A row of the conversation, and a message on a page. */
interface Line {
  readonly kind: string;
  readonly text: string;
  readonly erased: boolean;
  readonly vote: 'up' | 'down' | null;
}

/** A page that comes back to the other server each time. */
class Page {
  readonly controller: ChatController;
  readonly #rigs: readonly HttpRig[];
  #connections = 0;

  constructor(rigs: readonly HttpRig[], cutter: StreamCutter) {
    this.#rigs = rigs;
    this.controller = new ChatController({
      api: this.#api(),
      clock: hastyClock,
      random: () => 0,
      storage: { getItem: () => null, setItem: () => undefined, removeItem: () => undefined },
      storageKey: 'outbox',
      words: { failure: ({ kind }) => kind, leftBeforeSent: 'left' },
      openStream: (handlers) => {
        const connect = (init: RequestInit) => {
          this.#connections += 1;
          return cutter.fetch(`http://127.0.0.1:${this.#rig.webPort}/workspaces/${this.#rig.slug}/mentor/events`, init);
        };
        const stream = new EventStream('/', { fetch: (_path, init) => connect(init), clock: hastyClock, random: () => 0 }, handlers);
        return { start: () => stream.start(), stop: () => stream.stop(), requestSnapshot: () => stream.reconnect() };
      },
    });
  }

  get #rig(): HttpRig {
    return this.#rigs[this.#connections % this.#rigs.length] as HttpRig;
  }

  #api(): ChatApi {
    return {
      ...createApi('unused'),
      entries: async (id, query) => {
        const place = 'after' in query ? `&after=${query.after}` : query.before === null ? '' : `&before=${query.before}`;
        const { body } = await this.#rig.send('GET', `conversations/${id}/entries?limit=${query.limit}${place}`);
        return { ok: true, value: entryPageSchema.parse(body) };
      },
      turn: async (id) => ({ ok: true, value: turnSchema.parse((await this.#rig.send('GET', `turns/${id}`)).body) }),
    };
  }

  items(): readonly TimelineItem[] {
    const state = this.controller.chat.get();
    return timeline(state, state.mainId);
  }

  lines(): Line[] {
    return this.items().map((item) => ({
      ...{ kind: item.kind, text: item.text, erased: item.kind !== 'failure' && item.erased },
      vote: item.kind === 'answer' ? item.vote : null,
    }));
  }

  /** Resolves when it shows these lines, read after its last snapshot. */
  async shows(lines: readonly Line[]): Promise<void> {
    const { chat } = this.controller;
    const isSo = () => chat.get().sync === null && JSON.stringify(this.lines()) === JSON.stringify(lines);
    await new Promise<void>((resolve) => {
      const look = () => isSo() && resolve();
      chat.subscribe(look);
      look();
    });
  }
}

/** Somebody who asks, and the sandbox that answers, each at both servers by turns. */
class Talk {
  /** Turn -> what was written of its answer. */
  readonly written = new Map<string, string>();
  reports = 0;
  readonly #rigs: readonly [HttpRig, HttpRig];
  readonly #random: () => number;
  #doors: readonly SandboxClient[] = [];

  constructor(rigs: readonly [HttpRig, HttpRig], random: () => number) {
    this.#rigs = rigs;
    this.#random = random;
  }

  get #door(): SandboxClient {
    return this.#doors[Math.floor(this.reports / REPORTS_PER_SERVER) % 2] as SandboxClient;
  }

  /** One question, and an answer that goes on until `enough`. */
  async turn(number: number, enough: () => boolean): Promise<void> {
    const rig = this.#rigs[number % 2] as HttpRig;
    const { status, body } = await rig.ask(`question ${number} ${WORDS[number % WORDS.length]}?`);
    expect(status).to.equal(202);
    if (this.#doors.length === 0) {
      const { credential } = await rig.sandbox(body.turn.conversationId);
      this.#doors = this.#rigs.map(({ agentPort }) => new SandboxClient(agentPort, credential));
    }
    let pulled = await this.#door.next(25_000);
    while (pulled.status === 204) pulled = await this.#door.next(25_000);
    await this.#answer(pulled.body.run, body.turn.id, enough);
    await this.meddle(body.turn.conversationId);
  }

  async #answer(attempt: { id: string; epoch: number }, turnId: string, enough: () => boolean): Promise<void> {
    let nth = 0;
    const pick = () => WORDS[Math.floor(this.#random() * WORDS.length)];
    do {
      const words = Array.from({ length: 1 + Math.floor(this.#random() * 8) }, pick).join('');
      const before = this.written.get(turnId) ?? '';
      this.written.set(turnId, before + words);
      const door = this.#door;
      const report = (said: object) => door.call(attempt, 'turn/partial', { stage: 'Thinking…', nth: ++nth, ...said });
      const { body } = await report({ offset: before.length, text: words });
      if (body?.resync) await report({ offset: 0, text: before + words, full: true });
      this.reports += 1;
    } while (!enough());
    const stopped = this.written.size % TURNS_PER_STOP === 0;
    if (stopped) expect((await this.#other.send('PATCH', `turns/${turnId}/status`, { body: { status: 'STOPPED' } })).status).to.equal(200);
    const entries = [piAnswer([text(this.written.get(turnId) ?? '')], stopped ? 'aborted' : 'stop')];
    const end = { outcome: stopped ? 'STOPPED' : 'DONE', entries, lastPartial: null };
    expect((await this.#door.call(attempt, 'turn/end', end)).status).to.equal(204);
  }

  /** The server that does not take the sandbox's calls at the moment. */
  get #other(): HttpRig {
    return this.#rigs[Math.floor(this.reports / REPORTS_PER_SERVER + 1) % 2] as HttpRig;
  }

  /** Somebody votes on an answer, or deletes a message, of the newest ones. */
  async meddle(conversationId: string): Promise<void> {
    const { body } = await this.#other.send('GET', `conversations/${conversationId}/entries?limit=20`);
    const { entries } = entryPageSchema.parse(body);
    const entry = entries[Math.floor(this.#random() * entries.length)];
    if (entry === undefined || entry.erasedAt !== null) return;
    const votes = entry.kind === 'answer' && this.#random() < 0.7;
    const vote = votes
      ? await this.#other.send('PUT', `entries/${entry.id}/vote`, { body: { vote: this.#random() < 0.5 ? 'up' : 'down' } })
      : null;
    expect((vote ?? (await this.#other.send('DELETE', `entries/${entry.id}`))).status).to.equal(200);
  }
}

/** Nothing is there twice, and what is shown of an answer is how it began. */
function check(page: Page, written: ReadonlyMap<string, string>): void {
  const items = page.items();
  expect(new Set(items.map(({ id }) => id)).size).to.equal(items.length);
  for (const item of items) {
    if (item.kind === 'answer') expect((written.get(item.turnId ?? '') ?? '').startsWith(item.text)).to.equal(true);
  }
}

describe('pages of two servers, whose streams break', () => {
  const database = useDatabase();
  const openRig = useRigs(database);

  async function stored(): Promise<Line[]> {
    const rows = await run(
      database.db,
      sql.unsafe`select kind, text, erased_at, vote from mentor_entry where kind in ('QUESTION', 'ANSWER') order by seq`,
    );
    const voteOf = (vote: unknown) => (vote === null ? null : Number(vote) > 0 ? 'up' : 'down');
    return rows.map(({ kind, text: words, erased_at: erasedAt, vote }) => ({
      ...{ kind: String(kind).toLowerCase(), text: String(words ?? ''), erased: erasedAt !== null },
      vote: voteOf(vote),
    }));
  }

  const deafen = () =>
    run(
      database.db,
      sql.unsafe`select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and application_name in ('heph-listen', 'heph-notify')`,
    );

  it(`show, after ${CUTS} cuts at any byte and as many connections to the other server, the stored answers byte by byte, once and in order (G3, G5)`, async function () {
    this.timeout(280_000);
    await emptyLedger(database.db);
    await reconcileSlots(database.db, 4);
    const here = await openRig({ clock: quickClock, streamsPerAccountMax: 200 });
    const there = await openRig({ clock: quickClock, streamsPerAccountMax: 200, person: here.person });
    const seed = Date.now() % 2 ** 32;
    const random = numbersFrom(seed);
    const talk = new Talk([here, there], random);
    const broken = Promise.withResolvers<never>();
    const cutter = new StreamCutter({
      random,
      nextCutBytes: () => (cutter.count < CUTS ? 1 + Math.floor(random() * 4_000) : null),
      onCut: () => {
        try {
          check(pages[cutter.count % PAGES] as Page, talk.written);
          if (cutter.count % CUTS_PER_DEAFNESS === 0) deafen().catch(broken.reject);
        } catch (error) {
          broken.reject(error);
        }
      },
    });
    const pages = Array.from({ length: PAGES }, () => new Page([here, there], cutter));
    try {
      for (const { controller } of pages) controller.start();
      const talking = async () => {
        for (let turn = 0; cutter.count < CUTS; turn++)
          await talk.turn(turn, () => cutter.count >= Math.min(CUTS, CUTS_PER_TURN * (turn + 1)));
      };
      await Promise.race([talking(), broken.promise]);
      const rows = await stored();
      await Promise.race([Promise.all(pages.map((page) => page.shows(rows))), broken.promise]);
      const bytes = (lines: readonly Line[]) =>
        Buffer.from(lines.flatMap((line) => (line.kind === 'answer' ? [line.text] : [])).join('\0'));
      for (const page of pages) expect(Buffer.compare(bytes(page.lines()), bytes(rows))).to.equal(0);
      const answers = rows.filter(({ kind }) => kind === 'answer');
      expect(answers.map(({ text: words, erased }) => erased || words)).to.deep.equal(
        [...talk.written.values()].map((words, n) => answers[n]?.erased || words),
      );
      expect(cutter.count).to.be.at.least(CUTS);
      for (const kind of CUT_KINDS) expect(cutter.cuts[kind], kind).to.be.greaterThan(CUTS / 10);
    } finally {
      for (const { controller } of pages) controller.stop();
      const kinds = CUT_KINDS.map((kind) => `${cutter.cuts[kind]} ${kind}`).join(', ');
      process.stdout.write(`      seed ${seed}: cuts ${kinds}; ${talk.written.size} answers in ${talk.reports} reports\n`);
    }
  });
});
