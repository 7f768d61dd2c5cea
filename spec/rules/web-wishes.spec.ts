/**
 * Owns: proof of what is shown when a person votes on a message or deletes one, and of what is asked of the server for it.
 */
import { expect } from 'chai';
import type { Entry } from '../../src/contract/web.ts';
import { Wishes, type WishPorts } from '../../src/web/chat/wishes.ts';
import type { ApiFailure, ApiResult } from '../../src/web/net/api.ts';
import type { ChatAction } from '../../src/web/store/state.ts';
import { timeline } from '../../src/web/store/timeline.ts';
import { connected, linesOf } from '../support/page-client.ts';
import { WebLedger } from '../support/page-ledger.ts';

const lost: ApiFailure = { kind: 'unreachable' };

function scene() {
  const ledger = new WebLedger();
  ledger.ask('a', 'first?');
  ledger.claim();
  ledger.end('DONE', ['the answer']);
  const client = connected(ledger);
  const [question, answer] = ledger.entries as [Entry, Entry];
  const vote = () => timeline(client.state, client.state.mainId).flatMap((item) => (item.kind === 'answer' ? [item.vote] : []))[0];
  let told = ledger.log.length;
  const tell = () => {
    client.act(...(ledger.log.slice(told) as ChatAction[]));
    told = ledger.log.length;
  };
  return { ledger, client, question, answer, vote, tell };
}

describe('a vote', () => {
  it('shows at once, and falls back to what it was when it is refused', () => {
    const { ledger, client, answer, vote, tell } = scene();
    ledger.vote(answer, 'down');
    tell();
    client.act({ type: 'vote-asked', entryId: answer.id, vote: 'up' });
    expect(vote()).to.equal('up');
    client.act({ type: 'vote-answered', entryId: answer.id, vote: 'up', entry: null });
    expect(vote()).to.equal('down');
  });

  it('is the last one of several that are under way, whichever is answered when', () => {
    const { client, answer, vote } = scene();
    client.act({ type: 'vote-asked', entryId: answer.id, vote: 'up' }, { type: 'vote-asked', entryId: answer.id, vote: null });
    client.act({ type: 'vote-answered', entryId: answer.id, vote: 'up', entry: { ...answer, vote: 'up' } });
    expect(vote()).to.equal(null);
    client.act({ type: 'vote-answered', entryId: answer.id, vote: null, entry: null });
    expect(vote(), 'the second was refused, the first counts').to.equal('up');
  });

  it('that is answered while pages are read again is not undone by a page from before it', () => {
    const { ledger, client, answer, vote } = scene();
    client.act({ type: 'vote-asked', entryId: answer.id, vote: 'up' }, { type: 'snapshot', snapshot: ledger.snapshot() });
    const old = ledger.page();
    client.act({ type: 'vote-answered', entryId: answer.id, vote: 'up', entry: { ...answer, vote: 'up' } });
    expect(vote()).to.equal('up');
    client.synced({ [ledger.conversationId]: old });
    expect(vote()).to.equal('up');
  });

  it('of another tab shows here', () => {
    const { ledger, answer, vote, tell } = scene();
    ledger.vote(answer, 'down');
    tell();
    expect(vote()).to.equal('down');
  });
});

describe('a message that is deleted', () => {
  it('stays until the ledger has deleted it, and then is an empty place that never fills again', () => {
    const { ledger, client, question } = scene();
    const before = structuredClone(question);
    const deleting = () => timeline(client.state, client.state.mainId).flatMap((item) => (item.kind === 'question' ? [item.deleting] : []));
    client.act({ type: 'erase-asked', entryId: question.id });
    expect([linesOf(client.state)[0], deleting()]).to.deep.equal(['? first? [none]', [true]]);
    ledger.erase(question);
    client.act({ type: 'erase-answered', entryId: question.id, entry: structuredClone(question) }, { type: 'entry', entry: before });
    expect([linesOf(client.state)[0], deleting()]).to.deep.equal(['?  [none]', [false]]);
  });

  it('keeps its words when the server refuses', () => {
    const { client, question } = scene();
    client.act({ type: 'erase-asked', entryId: question.id }, { type: 'erase-answered', entryId: question.id, entry: null });
    expect(linesOf(client.state)[0]).to.equal('? first? [none]');
    expect(client.state.erasing).to.deep.equal([]);
  });
});

describe('what is asked of the server', () => {
  function open() {
    const { client, answer, question } = scene();
    const asked: string[] = [];
    const failures: ApiFailure[] = [];
    const told: (ApiFailure | null)[] = [];
    const gates: Promise<void>[] = [];
    const reply = async <T>(what: string, value: T): Promise<ApiResult<T>> => {
      asked.push(what);
      await gates.shift();
      const failure = failures.shift();
      return failure === undefined ? { ok: true, value } : { ok: false, failure };
    };
    const thread = { id: 'thread', parentConversationId: client.state.mainId, parentEntryId: answer.id, title: 'the answer', turns: [] };
    const times = { latestSeq: 0, lastAnswerAt: null, lastReadAt: null, createdAt: answer.createdAt };
    const ports: WishPorts = {
      api: {
        beginThread: ({ requestId }) => reply(requestId, { ...thread, ...times }),
        vote: (_id, vote) => reply(`vote ${vote}`, { ...answer, vote }),
        erase: (id) => reply(`erase ${id}`, { ...question, text: '', erasedAt: answer.createdAt }),
      },
      state: () => client.state,
      dispatch: (action) => void client.act(action),
      tell: (failure) => told.push(failure),
    };
    return { wishes: new Wishes(ports), client, asked, failures, gates, told, answer, question };
  }

  it('is one vote after the other, so that the last press wins', async () => {
    const { wishes, client, asked, gates, answer } = open();
    const first = Promise.withResolvers<void>();
    gates.push(first.promise);
    const votes = [wishes.vote(answer.id, 'up'), wishes.vote(answer.id, 'down')];
    await new Promise((resolve) => setImmediate(resolve));
    expect(asked).to.deep.equal(['vote up']);
    first.resolve();
    await Promise.all(votes);
    expect(asked).to.deep.equal(['vote up', 'vote down']);
    expect(client.state.entries[answer.id]?.vote).to.equal('down');
    expect(client.state.votes).to.deep.equal({});
  });

  it('is a thread under the same requestId when the answer to its beginning was lost', async () => {
    const { wishes, client, asked, failures, told, answer } = open();
    failures.push(lost);
    expect(await wishes.beginThread(answer.id)).to.equal(null);
    expect(told).to.deep.equal([null, lost]);
    expect(await wishes.beginThread(answer.id)).to.equal('thread');
    expect(asked[1]).to.equal(asked[0]);
    expect(client.state.conversations['thread']?.title).to.equal('the answer');
    await wishes.beginThread(answer.id);
    expect(asked[2], 'another wish').to.not.equal(asked[0]);
  });

  it('is a deletion once, however often the button is pressed', async () => {
    const { wishes, asked, gates, question } = open();
    const gate = Promise.withResolvers<void>();
    gates.push(gate.promise);
    const done = [wishes.erase(question.id), wishes.erase(question.id)];
    gate.resolve();
    expect(await Promise.all(done)).to.deep.equal([true, false]);
    expect(asked).to.deep.equal([`erase ${question.id}`]);
  });
});
