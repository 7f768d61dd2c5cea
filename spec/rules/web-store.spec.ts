/**
 * Owns: proof that the page shows what the ledger holds, whatever the stream repeats, delays or cuts.
 * The page's state is pure, so each interleaving runs here without a browser; spec/web/ looks at the page itself.
 */
import { expect } from 'chai';
import fc from 'fast-check';
import { SseDecoder, type SseFrame } from '../../src/web/net/sse-decoder.ts';
import { announcements } from '../../src/web/store/announce.ts';
import { reduce } from '../../src/web/store/reducer.ts';
import { type ChatAction, type ChatState, EMPTY_STATE } from '../../src/web/store/state.ts';
import { keepUnchanged, type TimelineItem, timeline } from '../../src/web/store/timeline.ts';
import { WebLedger } from '../support/web-ledger.ts';

function lineOf(item: TimelineItem): string {
  if (item.kind === 'failure') return `x ${item.text}`;
  if (item.kind === 'answer') return item.phase === 'live' ? `~ ${item.text}` : `! ${item.text} [${item.phase}]`;
  const { status } = item;
  return `? ${item.text} [${status.kind === 'queued' ? `queued ${status.place}` : status.kind}]`;
}
const linesOf = (state: ChatState): string[] => timeline(state, state.mainId).map(lineOf);

/** A page that is fed by hand. */
class Client {
  state = EMPTY_STATE;

  act(...actions: ChatAction[]): this {
    for (const action of actions) this.state = reduce(this.state, action);
    return this;
  }

  /** Connects and reads at once. */
  connect(ledger: WebLedger): this {
    return this.act({ type: 'snapshot', snapshot: ledger.snapshot() }).read(ledger);
  }

  read(ledger: WebLedger): this {
    return this.synced(ledger.entries.length === 0 ? {} : { [ledger.conversationId]: ledger.page() });
  }

  synced(pages: Extract<ChatAction, { type: 'synced' }>['pages']): this {
    return this.act({ type: 'synced', generation: this.state.generation, pages });
  }

  /** The person presses Send. */
  send(requestId: string, text: string): this {
    return this.act({ type: 'ask', question: { requestId, text, askedAt: '2026-10-08T07:12:03.120Z', phase: 'sending', reason: null } });
  }

  /** The ledger answers every question about a turn in doubt. */
  resolve(ledger: WebLedger): this {
    for (const turnId of this.state.doubts) {
      const turn = structuredClone(ledger.turns.find((candidate) => candidate.id === turnId) ?? null);
      this.act({ type: 'turn-read', turnId, turn, generation: this.state.generation });
    }
    return this;
  }
}

const connected = (ledger: WebLedger): Client => new Client().connect(ledger);

describe('the page shows the ledger', () => {
  /** One thing that happens: in the ledger, then between ledger and page. */
  const stepOf = fc.record({
    op: fc.constantFrom('ask', 'own-ask', 'claim', 'write', 'write', 'lost', 'handed-on', 'done', 'failed', 'stop', 'end-stopped', 'erase'),
    pick: fc.nat(1_000),
    /** Events that come again, late or twice: places in everything said so far. */
    repeats: fc.array(fc.nat(10_000), { maxLength: 3 }),
    reconnect: fc.nat(9).map((dice) => dice === 0),
    /** After how many steps the pages of a reconnection are read, and how many later they arrive. */
    readAfter: fc.nat(2),
    arrivesAfter: fc.nat(3),
    /** After how many steps the answer to an own question arrives; null: it is lost. */
    answerAfter: fc.option(fc.nat(4)),
    resolves: fc.boolean(),
  });
  type Step = typeof stepOf extends fc.Arbitrary<infer T> ? T : never;

  function change(ledger: WebLedger, { op, pick }: Step): void {
    const one = <T>(list: readonly T[]): T | undefined => list[pick % Math.max(1, list.length)];
    const turn = one(ledger.turns);
    const entry = one(ledger.entries);
    if (op === 'ask') ledger.ask(`other-${ledger.turns.length}`, `question ${ledger.turns.length}`);
    if (op === 'claim') ledger.claim();
    if (op === 'write') ledger.write(`word${pick} `);
    if (op === 'lost' || op === 'handed-on') ledger.requeue(op);
    if (op === 'done') ledger.end('DONE', pick % 3 === 0 ? ['first words', 'last words'] : [`answer ${pick}`]);
    if (op === 'failed') ledger.end('FAILED', []);
    if (op === 'stop' && turn !== undefined) ledger.stop(turn);
    if (op === 'end-stopped') ledger.endStopped(pick % 2 === 0 ? `cut off ${pick}` : null);
    if (op === 'erase' && entry?.kind === 'answer') ledger.erase(entry);
  }

  /** Runs the steps; returns ledger and page when everything that was under way has arrived. */
  function run(steps: readonly Step[]): { ledger: WebLedger; client: Client } {
    const ledger = new WebLedger();
    const client = new Client().connect(ledger);
    let later: { in: number; run: () => void }[] = [];
    const inSteps = (delay: number, run: () => void) => later.push({ in: delay, run });
    const pass = (all: boolean) => {
      const due = later.filter((item) => all || item.in-- <= 0);
      later = later.filter((item) => !due.includes(item));
      for (const item of due) item.run();
    };
    const reconnect = ({ readAfter, arrivesAfter }: Step) => {
      client.act({ type: 'snapshot', snapshot: ledger.snapshot() });
      const { generation } = client.state;
      inSteps(readAfter, () => {
        const pages = ledger.entries.length === 0 ? {} : { [ledger.conversationId]: ledger.page() };
        inSteps(arrivesAfter, () => client.act({ type: 'synced', generation, pages }));
      });
    };
    const askOwn = ({ answerAfter }: Step, name: string) => {
      client.send(name, `mine ${name}`);
      const { generation } = client.state;
      const rows = ledger.ask(name, `mine ${name}`);
      if (answerAfter !== null) inSteps(answerAfter, () => client.act({ type: 'answered', requestId: name, ...rows, generation }));
      else client.act({ type: 'unsent', requestId: name, phase: 'unsent', reason: 'no answer came' });
    };
    let told = 0;
    for (const [index, step] of steps.entries()) {
      if (step.op === 'own-ask') askOwn(step, `own-${index}`);
      change(ledger, step);
      for (; told < ledger.log.length; told++) client.act(ledger.log[told] as ChatAction);
      for (const place of step.repeats) if (told > 0) client.act(ledger.log[place % told] as ChatAction);
      if (step.reconnect) reconnect(step);
      if (step.resolves) client.resolve(ledger);
      pass(false);
    }
    while (later.length > 0) pass(true);
    return { ledger, client: client.resolve(ledger) };
  }

  /** A stopped turn's words stay on the page until its answer comes; whoever opens the page now does not see them. */
  const withoutCutOffWords = (client: Client): string[] => {
    const { state } = client;
    const open = Object.fromEntries(Object.entries(state.live).filter(([, live]) => !live.closed));
    return linesOf({ ...state, live: open });
  };

  it('after any repeats, delays, lost answers and reconnections', () => {
    fc.assert(
      fc.property(fc.array(stepOf, { minLength: 1, maxLength: 40 }), (steps) => {
        const { ledger, client } = run(steps);
        expect(withoutCutOffWords(client)).to.deep.equal(ledger.lines());
        expect(linesOf(client.connect(ledger).state)).to.deep.equal(ledger.lines());
      }),
      { numRuns: 1_500 },
    );
  });

  it('with each message once, by one id that it keeps while it is written, answered and read again', () => {
    fc.assert(
      fc.property(fc.array(stepOf, { minLength: 1, maxLength: 30 }), (steps) => {
        const { client } = run(steps);
        const ids = timeline(client.state, client.state.mainId).map((item) => item.id);
        expect(new Set(ids).size).to.equal(ids.length);
      }),
      { numRuns: 300 },
    );
  });
});

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

  it('discards the first attempt also when nobody said that it was lost', () => {
    const { ledger, client } = writing();
    ledger.requeue('lost');
    ledger.claim();
    ledger.write('Attempt two');
    client.act(...(ledger.log.slice(-2) as ChatAction[]));
    expect(linesOf(client.state).at(-1)).to.equal('~ Attempt two');
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
    client.act({ type: 'answered', requestId: 'mine', ...rows, generation: client.state.generation });
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
    const { generation } = client.state;
    const rows = ledger.ask('mine', 'hello?');
    for (let turn = 0; turn < 2; turn++) {
      ledger.claim();
      ledger.end('FAILED', []);
    }
    client.act({ type: 'snapshot', snapshot: ledger.snapshot() });
    client.act({ type: 'answered', requestId: 'mine', ...rows, generation });
    expect(linesOf(client.read(ledger).resolve(ledger).state)).to.deep.equal(ledger.lines());
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

describe('the stream decoder', () => {
  const encoder = new TextEncoder();
  const decodeInPieces = (bytes: Uint8Array, cuts: readonly number[]): SseFrame[] => {
    const decoder = new SseDecoder();
    const frames: SseFrame[] = [];
    let from = 0;
    for (const cut of [...cuts, bytes.length]) {
      frames.push(...decoder.push(bytes.subarray(from, cut)));
      from = cut;
    }
    return frames;
  };
  const words = ['[DONE]', 'data: x', 'event: done', 'a\u2028b\u2029c\u0085d', '👩‍👩‍👧‍👦 שלום ñ', '', ' leading', '</script>'];
  const text = words.map((word) => JSON.stringify({ text: word })).join('|');
  const expected = [
    { event: 'entry', data: text },
    { event: 'message', data: 'first\n second\n' },
    { event: 'turn', data: '{}' },
  ];
  const stream = (end: string): string =>
    [
      `\uFEFF: ping`,
      '',
      'event: entry',
      `data: ${text}`,
      'id: 7',
      '',
      ':',
      'data:first',
      'data:  second',
      'data',
      '',
      'event:lonely',
      '',
      'retry: 1',
      'event:turn',
      'data:{}',
      '',
      '',
    ].join(end);

  for (const [name, end] of [
    ['CRLF', '\r\n'],
    ['CR', '\r'],
    ['LF', '\n'],
  ] as const) {
    it(`reads lines that end with ${name}, cut at every byte and at every pair of bytes`, () => {
      const bytes = encoder.encode(stream(end));
      expect(decodeInPieces(bytes, [])).to.deep.equal(expected);
      for (let cut = 0; cut <= bytes.length; cut++) expect(decodeInPieces(bytes, [cut])).to.deep.equal(expected);
      const everyByte = Array.from(bytes, (_, index) => index);
      expect(decodeInPieces(bytes, everyByte)).to.deep.equal(expected);
    });
  }

  it('reads any text of a person cut anywhere', () => {
    const anyText = fc.string({ unit: fc.constantFrom('a', '\r', '\n', ':', ' ', '\u2028', '👩', 'data: x', '[DONE]', 'é') });
    fc.assert(
      fc.property(fc.array(anyText), fc.array(fc.nat(400)), fc.constantFrom('\n', '\r', '\r\n'), (texts, places, end) => {
        const data = texts.map((value) => JSON.stringify(value));
        const bytes = encoder.encode(data.map((value) => `event: entry${end}data: ${value}${end}${end}`).join(''));
        const cuts = places.filter((place) => place < bytes.length).sort((a, b) => a - b);
        expect(decodeInPieces(bytes, cuts)).to.deep.equal(data.map((value) => ({ event: 'entry', data: value })));
      }),
    );
  });

  it('gives up on an event that never ends instead of filling the memory', () => {
    const decoder = new SseDecoder();
    const piece = encoder.encode('x'.repeat(1_000_000));
    expect(() => {
      for (let count = 0; count < 20; count++) decoder.push(piece);
    }).to.throw('too large');
  });
});
