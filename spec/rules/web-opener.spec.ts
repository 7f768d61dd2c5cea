/**
 * Owns: proof that what comes into view is read, once, also over snapshots and failures, and that the way back to one message has an end.
 */
import { expect } from 'chai';
import type { Entry, EntryPage } from '../../src/contract/web.ts';
import { Opener } from '../../src/web/chat/opener.ts';
import type { ApiFailure, ApiResult } from '../../src/web/net/api.ts';
import { reduce } from '../../src/web/store/reducer.ts';
import { type ChatAction, type ChatState, EMPTY_STATE } from '../../src/web/store/state.ts';
import { Store } from '../../src/web/store/store.ts';
import { linesOf } from '../support/page-client.ts';
import { WebLedger } from '../support/page-ledger.ts';

const gone: ApiFailure = {
  kind: 'problem',
  problem: { type: 'urn:x', title: 'x', status: 404, code: 'CONVERSATION_NOT_FOUND', detail: 'x', retry: 'never' },
};
const unreachable: ApiFailure = { kind: 'unreachable' };
const tick = () => new Promise<void>((resolve) => setImmediate(resolve));

/** The store and the opener as the controller puts them together; `limit` entries make an older page. */
function scene(questions: number, limit = 10) {
  const main = new WebLedger();
  for (let n = 1; n <= questions; n++) {
    main.ask(`q${n}`, `question ${n}`);
    main.claim();
    main.end('DONE', [`answer ${n}`]);
  }
  const thread = new WebLedger(undefined, { conversationId: main.conversationId, entry: main.entries[1] as Entry });
  const asked: string[] = [];
  const failures: ApiFailure[] = [];
  const chat = new Store<ChatState>(EMPTY_STATE);
  const ledgers = [main, thread];
  const failing = new Set<string>();
  /** What the server answers, a moment later. */
  const answer = async <T>(what: string, find: () => T | undefined): Promise<ApiResult<T>> => {
    asked.push(what);
    await tick();
    const value = find();
    const failure = failing.has(what) ? unreachable : (failures.shift() ?? (value === undefined ? gone : undefined));
    return failure === undefined && value !== undefined ? { ok: true, value } : { ok: false, failure: failure ?? gone };
  };
  const dispatch = (action: ChatAction) => {
    chat.set(reduce(chat.get(), action));
    opener.follow(chat.get());
  };
  const opener: Opener = new Opener({
    api: {
      entries: (id, query) => {
        const ledger = ledgers.find(({ conversationId }) => conversationId === id);
        return answer(ledger === main ? 'main' : 'thread', () => ledger?.pageOf({ ...query, limit }));
      },
      entry: (id) => answer('entry', () => structuredClone(ledgers.flatMap(({ entries }) => entries).find((entry) => entry.id === id))),
      threads: () => answer('threads', () => ({ threads: [thread.conversation()] })),
      conversation: (id) => answer('conversation', () => ledgers.find(({ conversationId }) => conversationId === id)?.conversation()),
    },
    chat,
    dispatch,
  });
  const snapshot = () => dispatch({ type: 'snapshot', snapshot: main.snapshot(thread) });
  const read = (pages: Record<string, EntryPage> = {}) =>
    dispatch({
      type: 'synced',
      generation: chat.get().generation,
      pages: { [main.conversationId]: main.page(undefined, limit), ...pages },
    });
  const inThread = () => linesOf(chat.get(), thread.conversationId);
  return { main, thread, asked, failing, failures, chat, opener, dispatch, snapshot, read, inThread };
}

describe('a thread that comes into view', () => {
  it('is read once, and not before the page knows anything', async () => {
    const { thread, asked, opener, snapshot, read, inThread } = scene(1);
    thread.ask('t1', 'why?');
    opener.show(thread.conversationId);
    await tick();
    expect(asked).to.deep.equal([]);
    snapshot();
    await tick();
    expect(asked).to.deep.equal([]);
    read();
    await tick();
    await tick();
    expect(asked).to.deep.equal(['thread']);
    expect(inThread()).to.deep.equal(['? why? [starting]']);
  });

  it('is read again when a snapshot knew nothing of it', async () => {
    const { thread, asked, opener, snapshot, read, inThread } = scene(1);
    snapshot();
    read();
    opener.show(thread.conversationId);
    await tick();
    await tick();
    thread.ask('t1', 'why?');
    snapshot();
    read();
    await tick();
    await tick();
    expect(asked).to.deep.equal(['thread', 'thread']);
    expect(inThread()).to.deep.equal(['? why? [starting]']);
  });

  it('that is not there is asked for once; one that cannot be read is asked for again on request', async () => {
    const { thread, asked, failures, chat, opener, snapshot, read } = scene(1);
    snapshot();
    read();
    failures.push(gone);
    opener.show(thread.conversationId);
    for (let n = 0; n < 5; n++) await tick();
    expect(chat.get().ranges[thread.conversationId]?.opening).to.equal('gone');
    failures.push({ kind: 'unreachable' });
    opener.retry();
    for (let n = 0; n < 5; n++) await tick();
    expect(chat.get().ranges[thread.conversationId]?.opening).to.equal('failed');
    opener.retry();
    for (let n = 0; n < 5; n++) await tick();
    expect(chat.get().ranges[thread.conversationId]?.opening).to.equal(undefined);
    expect(asked).to.have.length(3);
  });

  it('is let go of when another comes into view', async () => {
    const { thread, chat, opener, snapshot, read } = scene(1);
    snapshot();
    read();
    opener.show(thread.conversationId);
    await tick();
    await tick();
    snapshot();
    opener.show(null);
    read({ [thread.conversationId]: thread.page() });
    expect(chat.get().ranges, 'left while its page was read again').to.not.have.property(thread.conversationId);
    expect(linesOf(chat.get())).to.deep.equal(['? question 1 [none]', '! answer 1 [done]']);
  });

  it('that nobody has described yet is asked about once', async () => {
    const { main, asked, chat, dispatch, snapshot, read } = scene(1);
    snapshot();
    read();
    const elsewhere = new WebLedger(undefined, { conversationId: main.conversationId, entry: main.entries[0] as Entry });
    elsewhere.ask('t9', 'from the phone');
    for (const action of elsewhere.log as ChatAction[]) dispatch(action);
    await tick();
    await tick();
    expect(asked).to.deep.equal(['threads']);
    expect(chat.get().strangers).to.deep.equal([]);
  });
});

describe('the message that a thread is about', () => {
  const quoteOf = ({ chat, main }: ReturnType<typeof scene>) => chat.get().quotes[(main.entries[1] as Entry).id] ?? undefined;

  it('is read when it is too far back to be loaded, once, and again under the next snapshot', async () => {
    const it = scene(30);
    it.snapshot();
    it.read();
    it.opener.show(it.thread.conversationId);
    while (quoteOf(it) === undefined) await tick();
    expect(quoteOf(it)?.text).to.equal('answer 1');
    expect(it.asked).to.deep.equal(['thread', 'entry']);
    it.snapshot();
    it.read({ [it.thread.conversationId]: it.thread.page() });
    expect(quoteOf(it), 'what may have been deleted meanwhile').to.equal(undefined);
    while (quoteOf(it) === undefined) await tick();
    expect(it.asked).to.deep.equal(['thread', 'entry', 'entry']);
  });

  it('is not read when it is loaded, and not asked for again when it cannot be read', async () => {
    const near = scene(1);
    near.snapshot();
    near.read();
    near.opener.show(near.thread.conversationId);
    while (near.chat.get().ranges[near.thread.conversationId]?.opening !== undefined) await tick();
    expect(near.asked).to.deep.equal(['thread']);
    const far = scene(30);
    far.failing.add('entry');
    far.snapshot();
    far.read();
    far.opener.show(far.thread.conversationId);
    while (!far.asked.includes('entry')) await tick();
    for (let looks = 0; looks < 5; looks++) {
      await tick();
      far.opener.follow(far.chat.get());
    }
    expect(quoteOf(far)).to.equal(undefined);
    expect(far.asked).to.deep.equal(['thread', 'entry']);
  });

  it('is empty as soon as it is deleted', async () => {
    const it = scene(30);
    it.snapshot();
    it.read();
    it.opener.show(it.thread.conversationId);
    while (quoteOf(it) === undefined) await tick();
    it.main.erase(it.main.entries[1] as Entry);
    it.dispatch({ type: 'entry', entry: structuredClone(it.main.entries[1] as Entry) });
    expect(quoteOf(it)?.text).to.equal('');
  });

  it('is empty, too, when it is deleted while it is being read', async () => {
    const it = scene(30);
    it.snapshot();
    it.read();
    it.opener.show(it.thread.conversationId);
    while (!it.asked.includes('entry')) await tick();
    const entry = structuredClone(it.main.entries[1] as Entry);
    const { generation } = it.chat.get();
    it.dispatch({ type: 'entry', entry: { ...entry, text: '', parts: [], erasedAt: entry.createdAt } });
    it.dispatch({ type: 'quote-read', entryId: entry.id, generation, entry });
    expect(quoteOf(it)?.text).to.equal('');
  });

  it('is known also of a thread that no list names any more', async () => {
    const it = scene(30);
    it.dispatch({ type: 'snapshot', snapshot: it.main.snapshot() });
    it.read();
    it.opener.show(it.thread.conversationId);
    while (quoteOf(it) === undefined) await tick();
    expect(it.chat.get().conversations[it.thread.conversationId]?.title).to.equal('answer 1');
    expect(it.asked).to.deep.equal(['thread', 'conversation', 'entry']);
  });
});

describe('the way to one message', () => {
  const never = new AbortController().signal;

  it('is the same three requests, however far back it is', async () => {
    for (const questions of [30, 500]) {
      const { main, asked, chat, opener, snapshot, read } = scene(questions);
      snapshot();
      read();
      const target = main.entries.find(({ text }) => text === 'question 7') as Entry;
      expect(await opener.reveal(null, target.id, never)).to.equal(true);
      expect(asked).to.deep.equal(['entry', 'main', 'main']);
      expect(linesOf(chat.get()).length, 'ten before, ten behind, ten at the end').to.equal(30);
    }
  });

  it('is none when the message is loaded', async () => {
    const { main, asked, opener, snapshot, read } = scene(30);
    snapshot();
    read();
    expect(await opener.reveal(null, (main.entries.at(-1) as Entry).id, never)).to.equal(true);
    expect(asked).to.deep.equal([]);
  });

  it('leads nowhere when the message is not there, is of another conversation, or cannot be read now', async () => {
    const { main, thread, failures, opener, snapshot, read } = scene(30);
    snapshot();
    read();
    const { entry } = thread.ask('t1', 'why?');
    expect(await opener.reveal(null, 'nobody', never)).to.equal(false);
    expect(await opener.reveal(null, entry.id, never)).to.equal(false);
    failures.push({ kind: 'unreachable' });
    expect(await opener.reveal(null, (main.entries[0] as Entry).id, never)).to.equal(false);
  });

  it('is gone again after a snapshot that came in between', async () => {
    const { main, asked, opener, snapshot, read } = scene(30);
    snapshot();
    read();
    const found = opener.reveal(null, (main.entries[0] as Entry).id, never);
    while (asked.length < 3) await tick();
    snapshot();
    read();
    expect(await found).to.equal(true);
    expect(asked).to.deep.equal(['entry', 'main', 'main', 'entry', 'main', 'main']);
  });

  it('waits for a thread that is being opened, and for pages that a snapshot reads again', async () => {
    const { thread, opener, snapshot, read } = scene(1);
    const { entry } = thread.ask('t1', 'why?');
    const found = opener.reveal(thread.conversationId, entry.id, never);
    snapshot();
    opener.show(thread.conversationId);
    await tick();
    read();
    expect(await found).to.equal(true);
  });

  it('is given up when the person goes elsewhere', async () => {
    const { opener } = scene(1);
    const leaving = new AbortController();
    const found = opener.reveal(null, 'nobody', leaving.signal);
    leaving.abort();
    expect(await found).to.equal(false);
  });
});
