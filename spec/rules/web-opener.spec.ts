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
  const pageOf = async (id: string, before: number | null): Promise<ApiResult<EntryPage>> => {
    const ledger = [main, thread].find(({ conversationId }) => conversationId === id);
    asked.push(ledger === main ? 'main' : 'thread');
    await tick();
    const failure = failures.shift() ?? (ledger === undefined ? gone : undefined);
    if (failure !== undefined || ledger === undefined) return { ok: false, failure: failure ?? gone };
    return { ok: true, value: ledger.page(before ?? undefined, limit) };
  };
  const dispatch = (action: ChatAction) => {
    chat.set(reduce(chat.get(), action));
    opener.follow(chat.get());
  };
  const opener: Opener = new Opener({
    api: {
      entries: (id, { before }) => pageOf(id, before),
      threads: async () => {
        asked.push('threads');
        return { ok: true, value: { threads: [thread.conversation()] } };
      },
    },
    chat,
    dispatch,
    async loadOlder(conversationId) {
      const { generation, ranges } = chat.get();
      dispatch({ type: 'older-asked', conversationId });
      const result = await pageOf(conversationId, ranges[conversationId]?.nextBefore ?? null);
      if (result.ok) dispatch({ type: 'older-read', conversationId, generation, page: result.value });
      else dispatch({ type: 'older-failed', conversationId, generation });
    },
  });
  const snapshot = () => dispatch({ type: 'snapshot', snapshot: main.snapshot(thread) });
  const read = (pages: Record<string, EntryPage> = {}) =>
    dispatch({
      type: 'synced',
      generation: chat.get().generation,
      pages: { [main.conversationId]: main.page(undefined, limit), ...pages },
    });
  const inThread = () => linesOf(chat.get(), thread.conversationId);
  return { main, thread, asked, failures, chat, opener, dispatch, snapshot, read, inThread };
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

describe('the way back to one message', () => {
  const never = new AbortController().signal;

  it('loads older pages until it is there, and no further', async () => {
    const { main, asked, opener, snapshot, read } = scene(30);
    snapshot();
    read();
    const target = main.entries.find(({ text }) => text === 'question 16') as Entry;
    expect(await opener.reveal(null, target.id, never)).to.equal(true);
    expect(asked).to.deep.equal(['main', 'main']);
  });

  it('ends at the beginning of the conversation', async () => {
    const { asked, opener, snapshot, read } = scene(30);
    snapshot();
    read();
    expect(await opener.reveal(null, 'nobody', never)).to.equal(false);
    expect(asked).to.have.length(5);
  });

  it('ends after 50 pages, however long the conversation is', async () => {
    const { main, asked, opener, snapshot, read } = scene(60, 2);
    snapshot();
    read();
    const entryAt = (pages: number) => main.entries[main.entries.length - 2 * pages - 1] as Entry;
    expect(await opener.reveal(null, (main.entries[0] as Entry).id, never)).to.equal(false);
    expect(asked).to.have.length(50);
    expect(await opener.reveal(null, entryAt(40).id, never)).to.equal(true);
  });

  it('ends when a page cannot be read', async () => {
    const { main, failures, opener, snapshot, read } = scene(30);
    snapshot();
    read();
    failures.push({ kind: 'unreachable' });
    expect(await opener.reveal(null, (main.entries[0] as Entry).id, never)).to.equal(false);
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
