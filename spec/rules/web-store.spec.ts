/**
 * Owns: proof, one case each, of what the page shows while questions wait, answers are written and connections break.
 * Does not own: random interleavings (web-any-order.spec.ts), the stream (web-stream.spec.ts), the page in a browser (spec/web/).
 */
import { expect } from 'chai';
import type { Partial } from '../../src/contract/events.ts';
import type { Turn } from '../../src/contract/web.ts';
import { announcements } from '../../src/web/store/announce.ts';
import { keepUnchanged } from '../../src/web/store/keep-unchanged.ts';
import type { ChatAction, ChatState } from '../../src/web/store/state.ts';
import { timeline } from '../../src/web/store/timeline.ts';
import { Client, connected, linesOf } from '../support/page-client.ts';
import { WebLedger } from '../support/page-ledger.ts';

describe('a page that is opened', () => {
  it('during the second turn shows each message once (G1)', () => {
    const ledger = new WebLedger();
    ledger.ask('a', 'first?');
    ledger.claim();
    ledger.end('DONE', ['the first answer']);
    ledger.ask('b', 'second?');
    ledger.claim();
    ledger.write('half of ');
    const client = connected(ledger);
    const from = ledger.log.length;
    ledger.write('the second answer');
    client.act(...(ledger.log.slice(from) as ChatAction[]), ...(ledger.log.slice(from) as ChatAction[]));
    const expected = ['? first? [none]', '! the first answer [done]', '? second? [none]', '~ half of the second answer'];
    expect(linesOf(client.state)).to.deep.equal(expected);
  });

  it('while words arrive keeps them back until its pages are read, and then has them all', () => {
    const ledger = new WebLedger();
    ledger.ask('a', 'first?');
    const client = new Client().act({ type: 'snapshot', snapshot: ledger.snapshot() });
    const old = ledger.page();
    const from = ledger.log.length;
    ledger.claim();
    ledger.end('DONE', ['the answer']);
    client.act(...(ledger.log.slice(from) as ChatAction[]));
    expect(linesOf(client.state)).to.deep.equal([]);
    client.synced({ [ledger.conversationId]: old });
    expect(linesOf(client.state)).to.deep.equal(['? first? [none]', '! the answer [done]']);
  });

  it('does not believe a read of a turn that is older than its snapshot, unless the turn had ended', () => {
    const ledger = new WebLedger();
    ledger.ask('a', 'first?');
    ledger.claim();
    const client = connected(ledger);
    const { generation } = client.state;
    const turn = structuredClone(ledger.turns[0] as Turn);
    ledger.requeue('lost');
    client.connect(ledger);
    client.act({ type: 'turn-read', turnId: turn.id, turn, generation });
    expect(linesOf(client.state)).to.deep.equal(['? first? [starting]']);
    client.act({ type: 'turn-read', turnId: turn.id, turn: { ...turn, status: 'STOPPED' }, generation });
    expect(linesOf(client.state)).to.deep.equal(['? first? [stopped]']);
  });

  it('and stops a question does not show it as waiting again, although a snapshot from before the stop comes later', () => {
    const ledger = new WebLedger();
    ledger.ask('a', 'first?');
    const client = connected(ledger);
    const [snapshot, page] = [ledger.snapshot(), ledger.page()];
    const turn = ledger.turns[0] as Turn;
    ledger.stop(turn);
    client.act({ type: 'stop-answered', turnId: turn.id, turn: structuredClone(turn) });
    client.act({ type: 'snapshot', snapshot }).synced({ [ledger.conversationId]: page });
    expect(linesOf(client.state)).to.deep.equal(['? first? [stopped]']);
  });

  it('again after a restart of the server learns how turns ended that the snapshot does not name', () => {
    const ledger = new WebLedger();
    for (const name of ['a', 'b']) ledger.ask(name, name);
    ledger.claim();
    const client = connected(ledger);
    ledger.end('FAILED', []);
    ledger.claim();
    ledger.end('DONE', ['b is answered']);
    client.act({ type: 'snapshot', snapshot: ledger.snapshot() });
    client.synced({ [ledger.conversationId]: { ...ledger.page(), turns: [] } });
    expect(client.state.doubts).to.deep.equal([ledger.turns[0]?.id]);
    expect(linesOf(client.resolve(ledger).state)).to.deep.equal(ledger.lines());
  });
});

describe('an answer that is being written', () => {
  function writing(): { ledger: WebLedger; client: Client } {
    const ledger = new WebLedger();
    const client = connected(ledger);
    ledger.ask('a', 'which board?');
    ledger.claim();
    ledger.write('Odroid N2+');
    client.act(...(ledger.log as ChatAction[]));
    return { ledger, client };
  }

  it('starts anew with a second attempt: nothing of the first one stays (C10)', () => {
    const { ledger, client } = writing();
    const first = ledger.log.at(-1) as ChatAction;
    const from = ledger.log.length;
    ledger.requeue('lost');
    ledger.claim();
    ledger.write('The Odroid M1S is');
    // The last words of the lost attempt come late, once before and once after the new ones.
    client.act(ledger.log[from] as ChatAction, first, ...(ledger.log.slice(from + 1) as ChatAction[]), first);
    expect(linesOf(client.state)).to.deep.equal(['? which board? [none]', '~ The Odroid M1S is']);
    expect(linesOf(client.connect(ledger).state)).to.deep.equal(ledger.lines());
  });

  it('shows nothing of a run that was handed on', () => {
    const { ledger, client } = writing();
    const words = ledger.log.at(-1) as ChatAction;
    ledger.requeue('handed-on');
    client.act(ledger.log.at(-1) as ChatAction).resolve(ledger);
    ledger.claim();
    client.act(words, ledger.log.at(-2) as ChatAction).resolve(ledger);
    expect(linesOf(client.state).at(-1)).to.equal('~ ');
  });

  it('shows nothing of an attempt that was lost before the page was opened, whenever its last words come', () => {
    const { ledger } = writing();
    const words = ledger.log.at(-1) as ChatAction;
    ledger.requeue('lost');
    const [early, late] = [connected(ledger), connected(ledger)];
    ledger.claim();
    const started = ledger.log.at(-2) as ChatAction;
    expect(linesOf(early.act(words, started).state).at(-1)).to.equal('~ ');
    expect(linesOf(late.act(started, words).state).at(-1)).to.equal('~ ');
  });

  it('is gone when its attempt fails, and the reason stands in its place', () => {
    const { ledger, client } = writing();
    ledger.end('FAILED', []);
    client.act(ledger.log.at(-1) as ChatAction);
    expect(linesOf(client.state).at(-1)).to.equal('x Hephaestus could not finish this reply. Try again.');
  });

  it('keeps its words after a stop until the next question runs: then no answer can come any more', () => {
    const { ledger, client } = writing();
    const from = ledger.log.length;
    ledger.stop(ledger.running as Turn);
    ledger.ask('b', 'next?');
    client.act(...(ledger.log.slice(from) as ChatAction[]));
    expect(linesOf(client.state)).to.deep.equal(['? which board? [none]', '! Odroid N2+ [stopped]', '? next? [starting]']);
    ledger.endStopped(null);
    ledger.claim();
    client.act(ledger.log.at(-2) as ChatAction);
    expect(linesOf(client.state)).to.deep.equal(['? which board? [stopped]', '? next? [none]', '~ ']);
  });

  it('is not set back by late accounts after a run was handed on', () => {
    const { ledger, client } = writing();
    const [waiting, started] = ledger.log.filter((event) => event.type === 'turn') as ChatAction[];
    ledger.requeue('handed-on');
    client.act(ledger.log.at(-1) as ChatAction).resolve(ledger);
    client.act(waiting as ChatAction, started as ChatAction).resolve(ledger);
    expect(linesOf(client.state)).to.deep.equal(['? which board? [starting]']);
  });

  it('takes only what is new from words that overlap', () => {
    const { ledger, client } = writing();
    ledger.write(' is fast');
    client.act({ type: 'partial', partial: ledger.snapshot().partials[0] as Partial });
    expect(linesOf(client.state).at(-1)).to.equal('~ Odroid N2+ is fast');
  });

  it('discards the first attempt also when nobody said that it was lost', () => {
    const { ledger, client } = writing();
    const late = ledger.log.at(-1) as ChatAction;
    ledger.requeue('lost');
    ledger.claim();
    ledger.write('Two');
    client.act(...(ledger.log.slice(-2) as ChatAction[]), late);
    expect(linesOf(client.state).at(-1)).to.equal('~ Two');
  });

  it('shows no words around a hole until a snapshot closes it', () => {
    const { ledger, client } = writing();
    ledger.write(' is fast');
    ledger.write(' and small');
    client.act(ledger.log.at(-1) as ChatAction);
    expect(linesOf(client.state).at(-1)).to.equal('~ ');
    expect(linesOf(client.connect(ledger).state).at(-1)).to.equal('~ Odroid N2+ is fast and small');
  });

  it('keeps its words on the page between its end and its entry, and is there once afterwards', () => {
    const { ledger, client } = writing();
    const from = ledger.log.length;
    ledger.end('DONE', ['Odroid N2+']);
    const [ended, entry] = ledger.log.slice(from) as [ChatAction, ChatAction];
    const before = timeline(client.state, client.state.mainId).map((item) => item.id);
    for (const action of [ended, entry, entry]) {
      client.act(action);
      expect(linesOf(client.state).at(-1)).to.equal('! Odroid N2+ [done]');
      expect(timeline(client.state, client.state.mainId).map((item) => item.id)).to.deep.equal(before);
    }
    expect(client.state.live).to.deep.equal({});
  });

  it('is announced at its start and its end, never word by word', () => {
    const { ledger, client } = writing();
    const states = [client.state];
    const from = ledger.log.length;
    for (let count = 0; count < 20; count++) ledger.write('more words ');
    ledger.end('DONE', ['the answer']);
    for (const event of ledger.log.slice(from)) states.push(client.act(event as ChatAction).state);
    const heard = states.slice(1).flatMap((state, index) => announcements(states[index] as ChatState, state));
    expect(heard).to.deep.equal([{ kind: 'done' }]);
  });

  it('leaves the other messages as they are, so that only it is drawn again', () => {
    const { ledger, client } = writing();
    const before = timeline(client.state, client.state.mainId);
    ledger.write(' is fast');
    client.act(ledger.log.at(-1) as ChatAction);
    const after = keepUnchanged(before, timeline(client.state, client.state.mainId));
    expect(after[0]).to.equal(before[0]);
    expect(after[1]).to.not.equal(before[1]);
  });
});

describe('an own question', () => {
  it('shows at once, and becomes its entry in place when the server answers', () => {
    const ledger = new WebLedger();
    const client = connected(ledger).send('mine', 'hello?');
    expect(linesOf(client.state)).to.deep.equal(['? hello? [sending]']);
    const [id] = timeline(client.state, null).map((item) => item.id);
    const rows = ledger.ask('mine', 'hello?');
    client.act({ type: 'answered', requestId: 'mine', ...rows });
    expect(linesOf(client.state)).to.deep.equal(['? hello? [starting]']);
    expect(timeline(client.state, client.state.mainId)[0]?.id).to.equal(id);
  });

  it('whose answer was lost is not shown twice when the stream brings it', () => {
    const ledger = new WebLedger();
    const client = connected(ledger).send('mine', 'hello?');
    ledger.ask('mine', 'hello?');
    client.act({ type: 'unsent', requestId: 'mine', phase: 'unsent', reason: 'no answer came' });
    expect(linesOf(client.state)).to.deep.equal(['? hello? [unsent]']);
    client.act(...(ledger.log as ChatAction[]));
    expect(linesOf(client.state)).to.deep.equal(['? hello? [starting]']);
  });

  it('that ended before its answer arrived does not wait for ever', () => {
    const ledger = new WebLedger();
    ledger.ask('first', 'first');
    const client = connected(ledger).send('mine', 'hello?');
    const rows = ledger.ask('mine', 'hello?');
    for (let turn = 0; turn < 2; turn++) {
      ledger.claim();
      ledger.end('FAILED', []);
    }
    client.act({ type: 'snapshot', snapshot: ledger.snapshot() });
    client.act({ type: 'answered', requestId: 'mine', ...rows });
    expect(linesOf(client.read(ledger).resolve(ledger).state)).to.deep.equal(ledger.lines());
  });

  it('is as the stream says it is, although its own answer comes later', () => {
    const ledger = new WebLedger();
    const client = connected(ledger).send('mine', 'hello?');
    const rows = ledger.ask('mine', 'hello?');
    const [entry, turn] = [structuredClone(rows.entry), structuredClone(rows.turn)];
    client.act(
      { type: 'turn', turn: { ...turn, waitingFor: 'FREE_HEPH', position: 2 } },
      { type: 'entry', entry: { ...entry, text: 'edited' } },
    );
    client.act({ type: 'answered', requestId: 'mine', ...rows });
    expect(linesOf(client.state)).to.deep.equal(['? edited [waiting]']);
  });

  it('whose answer came between two snapshots is there once', () => {
    const ledger = new WebLedger();
    ledger.ask('first', 'first');
    const client = connected(ledger).send('mine', 'hello?');
    const [snapshot, page] = [ledger.snapshot(), ledger.page()];
    client.act({ type: 'snapshot', snapshot }, { type: 'answered', requestId: 'mine', ...ledger.ask('mine', 'hello?') });
    client.act({ type: 'snapshot', snapshot }).synced({ [ledger.conversationId]: page });
    expect(linesOf(client.state)).to.deep.equal(['? first [starting]', '? hello? [queued 2]']);
  });

  it('behind others names its place, and moves up when one before it is removed', () => {
    const ledger = new WebLedger();
    const client = connected(ledger);
    for (const name of ['a', 'b', 'c']) ledger.ask(name, name);
    ledger.claim();
    client.act(...(ledger.log as ChatAction[]));
    expect(linesOf(client.state)).to.deep.equal(['? a [none]', '~ ', '? b [queued 1]', '? c [queued 2]']);
    const [, second] = ledger.turns;
    if (second === undefined) throw new Error('three questions were asked');
    ledger.stop(second);
    client.act({ type: 'stop-asked', turnId: second.id }, { type: 'stop-answered', turnId: second.id, turn: structuredClone(second) });
    expect(linesOf(client.state)).to.deep.equal(['? a [none]', '~ ', '? b [stopped]', '? c [queued 1]']);
    expect(client.state.stopping).to.deep.equal([]);
  });
});

describe('older messages', () => {
  function answered(questions: number): WebLedger {
    const ledger = new WebLedger();
    for (let index = 0; index < questions; index++) {
      ledger.ask(`q${index}`, `question ${index}`);
      ledger.claim();
      ledger.end('DONE', [`answer ${index}`]);
    }
    return ledger;
  }

  it('are left alone until they are loaded, and then come above the others, as the stream last told them', () => {
    const ledger = answered(4);
    const id = ledger.conversationId;
    const client = new Client().act({ type: 'snapshot', snapshot: ledger.snapshot() }).synced({ [id]: ledger.page(9, 4) });
    const [, first] = ledger.entries;
    if (first === undefined) throw new Error('four questions were answered');
    client.act({ type: 'entry', entry: structuredClone(first) });
    expect(linesOf(client.state)).to.have.length(4);
    client.act({ type: 'older-asked', conversationId: id });
    const page = ledger.page(5, 4);
    ledger.erase(first);
    client.act(ledger.log.at(-1) as ChatAction, { type: 'older-read', conversationId: id, generation: client.state.generation, page });
    expect(linesOf(client.state)).to.deep.equal(ledger.lines());
  });

  it('that were asked for before a reconnection are not put among newer ones', () => {
    const ledger = answered(4);
    const id = ledger.conversationId;
    const client = new Client().act({ type: 'snapshot', snapshot: ledger.snapshot() }).synced({ [id]: ledger.page(9, 4) });
    const { generation } = client.act({ type: 'older-asked', conversationId: id }).state;
    const page = ledger.page(5, 4);
    client.act({ type: 'snapshot', snapshot: ledger.snapshot() }).synced({ [id]: ledger.page(9, 4) });
    client.act({ type: 'older-read', conversationId: id, generation, page });
    expect(client.state.ranges[id]).to.deep.equal({ nextBefore: 5, older: 'idle' });
    client.act({ type: 'older-asked', conversationId: id }, { type: 'older-read', conversationId: id, generation, page });
    expect(linesOf(client.state)).to.have.length(4);
  });

  it('that were deleted do not come back with a late event', () => {
    const ledger = answered(1);
    const client = connected(ledger);
    const [, answer] = ledger.entries;
    if (answer === undefined) throw new Error('one question was answered');
    const late = structuredClone(answer);
    ledger.erase(answer);
    client.act(ledger.log.at(-1) as ChatAction, { type: 'entry', entry: late });
    expect(linesOf(client.state).at(-1)).to.equal('!  [done]');
  });

  it('that were asked and deleted while the answer was written take its words along, whatever comes in between', () => {
    for (const late of [false, true]) {
      const ledger = new WebLedger();
      ledger.ask('a', 'a secret?');
      ledger.claim();
      ledger.write('secret words');
      const client = connected(ledger);
      const [question, turn] = [ledger.entries[0], ledger.running];
      if (question === undefined || turn === undefined) throw new Error('one question is running');
      const from = ledger.log.length;
      ledger.erase(question);
      if (late) ledger.write(' more');
      client.act(...(ledger.log.slice(from) as ChatAction[]));
      expect(linesOf(client.state)).to.deep.equal(['?  [none]', '~ ']);
      const stopped = ledger.log.length;
      ledger.stop(turn);
      client.act(...(ledger.log.slice(stopped) as ChatAction[]));
      expect(linesOf(client.state)).to.deep.equal(['?  [stopped]']);
    }
  });

  it('show a vote and new words when another tab changed them', () => {
    const ledger = answered(1);
    const client = connected(ledger);
    const [question, answer] = ledger.entries;
    if (question === undefined || answer === undefined) throw new Error('one question was answered');
    client.act({ type: 'entry', entry: { ...answer, vote: 'up' } }, { type: 'entry', entry: { ...question, text: 'new words' } });
    expect(client.state.entries[answer.id]?.vote).to.equal('up');
    expect(linesOf(client.state)[0]).to.equal('? new words [none]');
  });
});
