/**
 * Owns: proof of what the page knows of threads: each conversation has its own messages, and what nobody looks at still has news.
 */
import { expect } from 'chai';
import type { Conversation, Entry } from '../../src/contract/web.ts';
import { announcements } from '../../src/web/store/announce.ts';
import type { ChatAction } from '../../src/web/store/state.ts';
import { threadsOf } from '../../src/web/store/threads.ts';
import { Client, linesOf } from '../support/page-client.ts';
import { WebLedger } from '../support/page-ledger.ts';

const at = (minute: number) => new Date(Date.UTC(2026, 9, 8, 7, minute)).toISOString();

/** A main conversation with one answered question and a thread about its answer; time passes by hand. */
function scene() {
  const time = { minute: 0 };
  const now = () => at(time.minute);
  const main = new WebLedger(now);
  main.ask('a', 'first?');
  main.claim();
  main.end('DONE', ['the first answer\nin two lines']);
  time.minute = 1;
  const thread = new WebLedger(now, { conversationId: main.conversationId, entry: main.entries[1] as Entry });
  const client = new Client().act({ type: 'snapshot', snapshot: main.snapshot(thread) });
  client.synced({ [main.conversationId]: main.page() });
  let told = [main.log.length, 0];
  /** What the stream says about both since the last time. */
  const tell = () => {
    client.act(...([...main.log.slice(told[0]), ...thread.log.slice(told[1])] as ChatAction[]));
    told = [main.log.length, thread.log.length];
  };
  const open = () => {
    client.act({ type: 'opening', conversationId: thread.conversationId });
    const { generation } = client.state;
    client.act({ type: 'opened', conversationId: thread.conversationId, generation, page: thread.page() });
  };
  const inThread = () => linesOf(client.state, thread.conversationId);
  const summary = () => threadsOf(client.state)[0];
  return { time, main, thread, client, tell, open, inThread, summary };
}

const MAIN = ['? first? [none]', '! the first answer\nin two lines [done]'];

describe('a thread', () => {
  it('has its own words, queue and partial answer, of which the main conversation shows nothing', () => {
    const { main, thread, client, tell, open, inThread } = scene();
    open();
    thread.ask('t1', 'why?');
    thread.ask('t2', 'and how?');
    thread.claim();
    thread.write('because ');
    tell();
    expect(inThread()).to.deep.equal(['? why? [none]', '~ because ', '? and how? [queued 1]']);
    expect(linesOf(client.state)).to.deep.equal(MAIN);
    main.ask('b', 'second?');
    main.claim();
    main.write('meanwhile');
    tell();
    expect(linesOf(client.state)).to.deep.equal([...MAIN, '? second? [none]', '~ meanwhile']);
    expect(inThread()).to.deep.equal(['? why? [none]', '~ because ', '? and how? [queued 1]']);
  });

  it('that is not in view takes no messages, and has them all when it is opened', () => {
    const { thread, client, tell, open, inThread } = scene();
    thread.ask('t1', 'why?');
    thread.claim();
    thread.end('DONE', ['because']);
    tell();
    expect(Object.values(client.state.entries).map(({ conversationId }) => conversationId)).to.not.include(thread.conversationId);
    open();
    expect(inThread()).to.deep.equal(['? why? [none]', '! because [done]']);
    client.act({ type: 'closed', conversationId: thread.conversationId });
    expect(inThread()).to.deep.equal([]);
    expect(linesOf(client.state)).to.deep.equal(MAIN);
  });

  it('keeps what an event brings while its newest page is read, also when the page is older than that', () => {
    const { thread, client, tell, inThread } = scene();
    const old = thread.page();
    client.act({ type: 'opening', conversationId: thread.conversationId });
    const { generation } = client.state;
    thread.ask('t1', 'why?');
    tell();
    client.act({ type: 'opened', conversationId: thread.conversationId, generation, page: old });
    expect(inThread()).to.deep.equal(['? why? [starting]']);
  });

  it('shows an own question in it only, from the press on, and once', () => {
    const { thread, client, tell, open, inThread } = scene();
    open();
    client.send('t1', 'why?', thread.conversationId);
    expect(inThread()).to.deep.equal(['? why? [sending]']);
    expect(linesOf(client.state)).to.deep.equal(MAIN);
    const rows = thread.ask('t1', 'why?');
    tell();
    client.act({ type: 'answered', requestId: 't1', ...rows });
    expect(inThread()).to.deep.equal(['? why? [starting]']);
  });

  it('is read again after a snapshot while it is open, and its page from before that is not believed', () => {
    const { main, thread, client, inThread } = scene();
    client.act({ type: 'opening', conversationId: thread.conversationId });
    const { generation } = client.state;
    const old = thread.page();
    thread.ask('t1', 'why?');
    client.act({ type: 'snapshot', snapshot: main.snapshot(thread) });
    client.act({ type: 'opened', conversationId: thread.conversationId, generation, page: old });
    client.synced({ [main.conversationId]: main.page(), [thread.conversationId]: thread.page() });
    expect(inThread()).to.deep.equal(['? why? [starting]']);
    client.act({ type: 'opened', conversationId: thread.conversationId, generation, page: { ...old, nextBefore: 99 } });
    expect(client.state.ranges[thread.conversationId]?.nextBefore).to.equal(null);
  });

  it('that could not be opened says why, and can be opened again', () => {
    const { thread, client, open, inThread } = scene();
    const { conversationId } = thread;
    client.act({ type: 'opening', conversationId });
    client.act({ type: 'opened', conversationId, generation: client.state.generation, page: 'failed' });
    expect(client.state.ranges[conversationId]?.opening).to.equal('failed');
    thread.ask('t1', 'why?');
    open();
    expect(client.state.ranges[conversationId]?.opening).to.equal(undefined);
    expect(inThread()).to.deep.equal(['? why? [starting]']);
  });

  it('speaks to a screen reader while it is in view, and the main conversation does not', () => {
    const { main, thread, client, tell, open } = scene();
    open();
    thread.ask('t1', 'why?');
    thread.claim();
    main.ask('b', 'second?');
    main.claim();
    tell();
    const before = client.state;
    thread.end('DONE', ['because']);
    tell();
    expect(announcements(before, client.state, thread.conversationId)).to.deep.equal([{ kind: 'done' }]);
    expect(announcements(before, client.state)).to.deep.equal([]);
  });
});

describe('the list of threads', () => {
  it('names each by the first words of its parent, the newest first', () => {
    const { time, main, thread, client } = scene();
    time.minute = 2;
    const newer = new WebLedger(() => at(time.minute), { conversationId: main.conversationId, entry: main.entries[0] as Entry });
    client.act({ type: 'thread-begun', thread: newer.conversation() });
    expect(threadsOf(client.state).map(({ id, title }) => [id, title])).to.deep.equal([
      [newer.conversationId, 'first?'],
      [thread.conversationId, 'the first answer'],
    ]);
  });

  it('keeps a thread that was begun while a snapshot was on its way', () => {
    const { main, thread, client } = scene();
    const other = new WebLedger(() => at(1), { conversationId: main.conversationId, entry: main.entries[0] as Entry });
    client.act({ type: 'snapshot', snapshot: main.snapshot(thread) }, { type: 'thread-begun', thread: other.conversation() });
    client.synced({ [main.conversationId]: main.page() });
    expect(threadsOf(client.state).map(({ id }) => id)).to.have.members([thread.conversationId, other.conversationId]);
  });

  it('says that a thread answers and has a new answer, without anybody looking, until it was read', () => {
    const { time, thread, client, tell, summary } = scene();
    expect(summary()).to.include({ answering: false, unread: false });
    thread.ask('t1', 'why?');
    thread.claim();
    tell();
    expect(summary()).to.include({ answering: true, unread: false });
    time.minute = 5;
    thread.end('DONE', ['because']);
    tell();
    expect(summary()).to.include({ answering: false, unread: true, at: at(5) });
    const read = (lastReadAt: string) => client.act({ type: 'read', conversationId: thread.conversationId, lastReadAt });
    read(at(4));
    expect(summary()).to.include({ unread: true });
    read(at(5));
    expect(summary()).to.include({ unread: false });
  });

  it('says that something did not reach the server, until it was sent or discarded', () => {
    const { thread, client, summary } = scene();
    client.send('t1', 'why?', thread.conversationId);
    expect(summary()).to.include({ unsent: false });
    client.act({ type: 'unsent', requestId: 't1', phase: 'unsent', reason: 'no answer came' });
    expect(summary()).to.include({ unsent: true });
    client.act({ type: 'discard', requestId: 't1' });
    expect(summary()).to.include({ unsent: false });
  });

  it('takes what was there when the account last read for read, where nobody opened the thread yet', () => {
    const { main, thread, client, tell, summary } = scene();
    thread.ask('t1', 'why?');
    thread.claim();
    thread.end('DONE', ['because']);
    main.read(at(1));
    tell();
    expect(client.state.conversations[thread.conversationId]?.lastAnswerAt).to.equal(at(1));
    expect(summary()).to.include({ unread: false });
  });

  it('asks who a conversation is of which the stream speaks and nobody has told', () => {
    const { time, main, client } = scene();
    time.minute = 3;
    const elsewhere = new WebLedger(() => at(time.minute), { conversationId: main.conversationId, entry: main.entries[0] as Entry });
    elsewhere.ask('t9', 'begun on the phone');
    client.act(...(elsewhere.log as ChatAction[]));
    expect(client.state.strangers).to.deep.equal([elsewhere.conversationId]);
    const threads: Conversation[] = [elsewhere.conversation()];
    client.act({ type: 'threads-read', generation: client.state.generation - 1, threads });
    expect(client.state.strangers, 'an answer from before a snapshot').to.deep.equal([elsewhere.conversationId]);
    client.act({ type: 'threads-read', generation: client.state.generation, threads });
    expect(client.state.strangers).to.deep.equal([]);
    expect(threadsOf(client.state)[0]?.id).to.equal(elsewhere.conversationId);
  });

  it('quotes a message no more once it was deleted, also one that is not loaded', () => {
    const { main, thread, client, tell, summary } = scene();
    expect(summary()?.title).to.equal('the first answer');
    main.erase(main.entries[1] as Entry);
    tell();
    expect(summary()?.title).to.equal('');
    const next = new Client().act({ type: 'snapshot', snapshot: main.snapshot(thread) }).synced({ [main.conversationId]: main.page() });
    expect(threadsOf(next.state)[0]?.title).to.equal('');
    expect(client.state.conversations[thread.conversationId]?.parentEntryId).to.equal(main.entries[1]?.id);
  });
});
