/**
 * Owns: proof that the chat asks for what its state needs: questions in order, pages again after a snapshot, no question twice.
 */
import { expect } from 'chai';
import type { Entry, EntryPage, PostQuestionRequest, QuestionResponse, Turn } from '../../src/contract/web.ts';
import { ChatController } from '../../src/web/chat/controller.ts';
import type { ApiFailure, ApiResult, ChatApi, PageQuery } from '../../src/web/net/api.ts';
import type { StreamHandlers } from '../../src/web/net/event-stream.ts';
import type { KeyValueStorage } from '../../src/web/settings.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { linesOf } from '../support/page-client.ts';
import { WebLedger } from '../support/page-ledger.ts';

const unreachable: ApiFailure = { kind: 'unreachable' };
const refusal = (status: number, code: string, retry: 'never' | 'later' = 'later'): ApiFailure => ({
  kind: 'problem',
  problem: { type: `urn:${code}`, title: code, status, code, detail: `${code} in words`, retry },
});
const failed = (failure: ApiFailure): { ok: false; failure: ApiFailure } => ({ ok: false, failure });

/** The server's side of the requests. What fails next, and which requests came, is in plain sight. */
class Requests implements ChatApi {
  readonly asked: PostQuestionRequest[] = [];
  readonly marks: string[] = [];
  readonly pages: PageQuery[] = [];
  /** Taken from the front, one for each request; empty: the request succeeds. */
  readonly failures: ApiFailure[] = [];
  readonly #ledger: WebLedger;
  /** Questions are answered when it resolves. */
  gate: Promise<void> = Promise.resolve();

  constructor(ledger: WebLedger) {
    this.#ledger = ledger;
  }

  async threads() {
    return failed(unreachable);
  }

  async beginThread() {
    return failed(unreachable);
  }

  async vote() {
    return failed(unreachable);
  }

  async erase() {
    return failed(unreachable);
  }

  async entry() {
    return failed(unreachable);
  }

  async conversation() {
    return failed(unreachable);
  }

  async entries(_conversationId: string, query: PageQuery): Promise<ApiResult<EntryPage>> {
    this.pages.push(query);
    const failure = this.failures.shift();
    if (failure !== undefined) return failed(failure);
    return { ok: true, value: this.#ledger.pageOf(query) };
  }

  async turn() {
    return failed(unreachable);
  }

  async ask(request: PostQuestionRequest): Promise<ApiResult<QuestionResponse>> {
    this.asked.push(request);
    await this.gate;
    const failure = this.failures.shift();
    return failure === undefined ? { ok: true, value: this.#ledger.ask(request.requestId, request.text) } : failed(failure);
  }

  async stop(): Promise<ApiResult<Turn>> {
    return failed(this.failures.shift() ?? unreachable);
  }

  async read(threadId: string | null, lastReadAt: string) {
    this.marks.push(threadId === null ? lastReadAt : `${threadId} ${lastReadAt}`);
    return failed(unreachable);
  }
}

function memory(): KeyValueStorage {
  const values = new Map<string, string>();
  return {
    getItem: (key) => values.get(key) ?? null,
    setItem: (key, value) => void values.set(key, value),
    removeItem: (key) => void values.delete(key),
  };
}

function openChat(ledger: WebLedger, storage = memory()) {
  const requests = new Requests(ledger);
  const clock = new ManualClock();
  let handlers: Pick<StreamHandlers, 'onFrame' | 'onStatus'> | null = null;
  let snapshotsWanted = 0;
  const controller = new ChatController({
    api: requests,
    clock,
    random: () => 0,
    storage,
    storageKey: 'outbox',
    words: { failure: (failure) => (failure.kind === 'problem' ? failure.problem.detail : failure.kind), leftBeforeSent: 'left' },
    openStream(given) {
      handlers = given;
      return { start: () => undefined, stop: () => undefined, requestSnapshot: () => void snapshotsWanted++ };
    },
  });
  controller.start();
  const say = (event: string, data: unknown) => handlers?.onFrame({ event, data: JSON.stringify(data) });
  const lines = () => linesOf(controller.chat.get());
  const settled = async () => {
    while (controller.chat.get().sync !== null) await clock.advanceAsync(1_000);
  };
  return { controller, requests, clock, say, lines, settled, wanted: () => snapshotsWanted };
}

function talk(questions: number): WebLedger {
  const ledger = new WebLedger();
  for (let index = 0; index < questions; index++) {
    ledger.ask(`q${index}`, `question ${index}`);
    ledger.claim();
    ledger.end('DONE', [`answer ${index}`]);
  }
  return ledger;
}

describe('the chat', () => {
  it('sends questions in the order in which they were asked, one after the other', async () => {
    const chat = openChat(new WebLedger());
    chat.say('snapshot', { conversations: [], partials: [] });
    await chat.settled();
    const answer = Promise.withResolvers<void>();
    chat.requests.gate = answer.promise;
    const sent = ['first', 'second', 'third'].map((text) => chat.controller.ask(text));
    await chat.settled();
    expect(chat.lines()).to.deep.equal(['? first [sending]', '? second [sending]', '? third [sending]']);
    await new Promise<void>((resolve) => setImmediate(resolve));
    expect(chat.requests.asked.map(({ text }) => text)).to.deep.equal(['first']);
    answer.resolve();
    await Promise.all(sent);
    expect(chat.requests.asked.map(({ text }) => text)).to.deep.equal(['first', 'second', 'third']);
    expect(chat.lines()).to.deep.equal(['? first [starting]', '? second [queued 2]', '? third [queued 3]']);
  });

  it('keeps a question that was not sent, also over a reload, and sends it again as the same question', async () => {
    const ledger = new WebLedger();
    const storage = memory();
    const chat = openChat(ledger, storage);
    chat.say('snapshot', ledger.snapshot());
    await chat.settled();
    chat.requests.failures.push(unreachable);
    await chat.controller.ask('hello?');
    expect(chat.lines()).to.deep.equal(['? hello? [unsent]']);
    const again = openChat(ledger, storage);
    again.say('snapshot', ledger.snapshot());
    await again.settled();
    expect(again.lines()).to.deep.equal(['? hello? [unsent]']);
    const [question] = again.controller.chat.get().outbox;
    await again.controller.resend(question?.requestId ?? '');
    expect(again.lines()).to.deep.equal(['? hello? [starting]']);
    expect(again.requests.asked[0]?.requestId).to.equal(chat.requests.asked[0]?.requestId);
    const reloaded = openChat(ledger, storage);
    reloaded.say('snapshot', ledger.snapshot());
    await reloaded.settled();
    expect(reloaded.lines()).to.deep.equal(ledger.lines());
  });

  for (const [name, failure] of [
    ['409', refusal(409, 'FOLLOW_UPS_FULL')],
    ['422', refusal(422, 'TEXT_EMPTY', 'never')],
    ['503', refusal(503, 'BUSY')],
  ] as const) {
    it(`gives words that were refused with ${name} back, and they are still the same question until they are changed`, async () => {
      const ledger = new WebLedger();
      const chat = openChat(ledger);
      chat.say('snapshot', ledger.snapshot());
      await chat.settled();
      chat.requests.failures.push(failure);
      await chat.controller.ask('hello?');
      const [refused] = chat.controller.chat.get().outbox;
      expect(refused).to.deep.include({ phase: 'refused', reason: `${(failure as { problem: { code: string } }).problem.code} in words` });
      expect(chat.controller.takeBack(refused?.requestId ?? '')).to.equal('hello?');
      expect(chat.lines()).to.deep.equal([]);
      await chat.controller.ask('hello?');
      await chat.controller.ask('hello!');
      const [first, second, third] = chat.requests.asked.map(({ requestId }) => requestId);
      expect(second).to.equal(first);
      expect(third).to.not.equal(first);
    });
  }

  it('reads what was loaded again after each snapshot, until it can be read, and no more than was loaded', async () => {
    const ledger = talk(100);
    const chat = openChat(ledger);
    chat.say('snapshot', ledger.snapshot());
    await chat.settled();
    expect(chat.lines()).to.have.length(50);
    chat.requests.failures.push(unreachable, refusal(503, 'DATABASE_UNAVAILABLE'));
    chat.requests.pages.length = 0;
    chat.say('snapshot', ledger.snapshot());
    await chat.settled();
    expect(chat.requests.pages).to.deep.equal([1, 2, 3].map(() => ({ before: null, limit: 100 })));
    expect(chat.lines()).to.deep.equal(ledger.lines().slice(-50));
    await chat.controller.loadOlder();
    expect(chat.lines()).to.have.length(150);
    chat.say('snapshot', ledger.snapshot());
    await chat.settled();
    expect(chat.lines()).to.deep.equal(ledger.lines().slice(-150));
  });

  it('asks for a snapshot once when words are missing', async () => {
    const ledger = talk(1);
    ledger.ask('b', 'second?');
    ledger.claim();
    const chat = openChat(ledger);
    chat.say('snapshot', ledger.snapshot());
    await chat.settled();
    ledger.write('lost on the way');
    ledger.write(' and found');
    const last = ledger.log.at(-1);
    if (last?.type !== 'partial') throw new Error('words were written');
    chat.say('partial', last.partial);
    chat.say('partial', { ...last.partial, text: ' and found later' });
    expect(chat.wanted()).to.equal(1);
    expect(chat.lines().at(-1)).to.equal('~ ');
    chat.say('snapshot', ledger.snapshot());
    await chat.settled();
    expect(chat.lines().at(-1)).to.equal('~ lost on the way and found');
  });

  it('says that it is out of date when the server speaks another language', () => {
    const chat = openChat(new WebLedger());
    chat.say('an-event-of-the-future', {});
    expect(chat.controller.connection.get().outdated).to.equal(false);
    chat.say('snapshot', { conversations: 'many' });
    expect(chat.controller.connection.get().outdated).to.equal(true);
  });
});

describe('a stop', () => {
  it('that meets the end of its turn leaves the answer there once, and is no failure (C1)', async () => {
    const ledger = talk(0);
    const { turn } = ledger.ask('q', 'Why?');
    ledger.claim();
    ledger.write('Because.');
    const { controller, requests, say, lines, settled } = openChat(ledger);
    say('snapshot', ledger.snapshot());
    await settled();
    expect(lines()).to.deep.equal(ledger.lines());
    const told = ledger.log.length;
    requests.failures.push(refusal(409, 'TURN_ALREADY_ENDED', 'never'));
    const stopping = controller.stopTurn(turn.id);
    ledger.end('DONE', ['Because.']);
    await stopping;
    for (const event of ledger.log.slice(told)) {
      if (event.type === 'turn') say('turn', event.turn);
      if (event.type === 'entry') say('entry', event.entry);
    }
    expect(lines()).to.deep.equal(['? Why? [none]', '! Because. [done]']);
    expect([controller.notice.get(), controller.chat.get().stopping]).to.deep.equal([null, []]);
  });

  it('lets a question behind it be sent again under its requestId, at once and later: it is one question (C12)', async () => {
    const ledger = talk(0);
    const { turn } = ledger.ask('q', 'Why?');
    ledger.claim();
    const { controller, requests, clock, say, lines, settled } = openChat(ledger);
    say('snapshot', ledger.snapshot());
    await settled();
    const stopping = controller.stopTurn(turn.id);
    requests.failures.push(unreachable, unreachable);
    const asking = controller.ask('And then?');
    await Promise.all([stopping, asking]);
    const [{ requestId = '' } = {}] = requests.asked;
    ledger.ask(requestId, 'And then?'); // only its answer was lost
    for (const pauseMs of [100, 5_000]) {
      await clock.advanceAsync(pauseMs);
      if (pauseMs === 100) requests.failures.push(unreachable);
      await controller.resend(requestId);
    }
    for (const event of ledger.log) {
      if (event.type === 'turn') say('turn', event.turn);
      if (event.type === 'entry') say('entry', event.entry);
    }
    expect(new Set(requests.asked.map((asked) => asked.requestId)).size).to.equal(1);
    expect(requests.asked.length).to.be.greaterThan(1);
    expect(lines().filter((line) => line.includes('And then?'))).to.have.length(1);
    expect(ledger.turns).to.have.length(2);
  });
});

describe('the read marker of the chat', () => {
  it('goes to the server once for each step forward, shows at once, and is what the server says after a reconnection', async () => {
    const ledger = talk(2);
    const chat = openChat(ledger);
    chat.say('snapshot', ledger.snapshot());
    await chat.settled();
    const marker = () => chat.controller.chat.get().conversations[ledger.conversationId]?.lastReadAt;
    const [early, late] = ['2026-10-08T07:12:03.120Z', '2026-10-08T07:13:00.000Z'];
    for (const upTo of [early, early, late, early]) await chat.controller.markRead(upTo);
    expect(chat.requests.marks).to.deep.equal([early, late]);
    expect(marker()).to.equal(late);
    chat.say('snapshot', ledger.snapshot());
    await chat.settled();
    expect(marker(), 'no mark arrived').to.equal(null);
    await chat.controller.markRead(late);
    expect(chat.requests.marks).to.deep.equal([early, late, late]);
  });

  it('of a thread goes to the server, too, and leaves the main conversation’s alone', async () => {
    const ledger = talk(1);
    const thread = new WebLedger(undefined, { conversationId: ledger.conversationId, entry: ledger.entries[0] as Entry });
    const chat = openChat(ledger);
    chat.say('snapshot', ledger.snapshot(thread));
    await chat.settled();
    const upTo = '2026-10-08T07:12:03.120Z';
    for (const _ of [1, 2]) await chat.controller.markRead(upTo, thread.conversationId);
    expect(chat.requests.marks).to.deep.equal([`${thread.conversationId} ${upTo}`]);
    const { conversations } = chat.controller.chat.get();
    expect([thread, ledger].map(({ conversationId }) => conversations[conversationId]?.lastReadAt)).to.deep.equal([upTo, null]);
  });

  it('is not moved before the first question', async () => {
    const chat = openChat(new WebLedger());
    chat.say('snapshot', { conversations: [], partials: [] });
    await chat.settled();
    await chat.controller.markRead('2026-10-08T07:12:03.120Z');
    expect(chat.requests.marks).to.deep.equal([]);
  });
});
