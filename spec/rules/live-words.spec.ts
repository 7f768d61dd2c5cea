/**
 * What servers say to each other, without servers: packing, folding, and holes. Properties over many inputs.
 */
import { expect } from 'chai';
import fc from 'fast-check';
import { PAYLOAD_MAX_BYTES, utf8Bytes } from '../../db/live/payloads.ts';
import type { Change } from '../../src/contract/changes.ts';
import { LIMITS } from '../../src/contract/limits.ts';
import { type ConversationId, type TurnId, uuidv7 } from '../../src/kernel/ids.ts';
import { silentLog } from '../../src/kernel/log.ts';
import { mergeChanges, packChanges, unpackChanges } from '../../src/live/change-wire.ts';
import { PartialBus } from '../../src/live/partial-bus.ts';
import { PartialText } from '../../src/live/partial-text.ts';
import { packPartial, unpackPartial } from '../../src/live/partial-wire.ts';
import { PeerPost } from '../../src/live/peer-post.ts';
import { VersionBook } from '../../src/live/version-book.ts';
import { ManualClock } from '../support/manual-clock.ts';

const ids = (count: number) => Array.from({ length: count }, () => uuidv7());
const change = (version: number, more: Partial<Change> = {}): Change => ({
  ...{ workspaceId: uuidv7(), accountId: uuidv7(), conversationId: uuidv7() },
  ...{ version, turnIds: [], entryIds: [], sealedRunIds: [], ...more },
});
type Partial<T> = { [K in keyof T]?: T[K] };

describe('changes as payloads', () => {
  it('fit, however many ids they have, and tell the same on the other side', () => {
    for (const count of [0, 1, 100, 190, 200, 201, 1_000]) {
      const told = change(7, { turnIds: ids(count), entryIds: ids(count), sealedRunIds: ids(count), read: true });
      const messages = packChanges('a', [told, change(1)]);
      for (const { payload } of messages) expect(utf8Bytes(payload), String(count)).to.be.at.most(PAYLOAD_MAX_BYTES);
      const heard = messages.flatMap(({ payload }) => unpackChanges(payload, 'b') ?? []).filter(({ version }) => version === 7);
      expect(heard.flatMap(({ turnIds }) => turnIds)).to.deep.equal(told.turnIds);
      expect(heard.flatMap(({ entryIds }) => entryIds)).to.deep.equal(told.entryIds);
      expect(heard.flatMap(({ sealedRunIds }) => sealedRunIds)).to.deep.equal(told.sealedRunIds);
      expect(heard.every(({ read }) => read === true)).to.equal(true);
    }
  });

  it('share a payload as long as they fit, to the byte', () => {
    const one = change(1);
    const bytes = (count: number) => utf8Bytes(JSON.stringify({ server: 's', changes: Array(count).fill(one) }));
    let count = 1;
    while (bytes(count + 1) <= PAYLOAD_MAX_BYTES) count += 1;
    expect(packChanges('s', Array(count).fill(one))).to.have.length(1);
    expect(packChanges('s', Array(count + 1).fill(one))).to.have.length(2);
    const room = PAYLOAD_MAX_BYTES - bytes(count);
    expect(packChanges(`s${'x'.repeat(room)}`, Array(count).fill(one))[0]?.payload).to.have.length(PAYLOAD_MAX_BYTES);
    expect(packChanges(`s${'x'.repeat(room + 1)}`, Array(count).fill(one))).to.have.length(2);
  });

  it('are not heard by their own server, and garbage is not heard at all', () => {
    const [message] = packChanges('a', [change(1)]);
    expect(unpackChanges(message?.payload ?? '', 'a')).to.equal(null);
    for (const garbage of ['', '{', '[]', 'null', '{"server":"b"}', '{"server":"b","changes":[{}]}']) {
      expect(unpackChanges(garbage, 'a'), garbage).to.equal(null);
    }
  });

  it('become one when they follow each other, and stay two when something lies between them', () => {
    const base = change(4, { turnIds: ['t'] });
    const merged = mergeChanges(base, { ...base, version: 5, turnIds: ['t', 'u'], slots: true });
    expect(merged).to.deep.include({ since: 3, version: 5, turnIds: ['t', 'u'], slots: true });
    expect(mergeChanges(base, { ...base, version: 6 })).to.equal(null);
  });
});

describe('the version book', () => {
  it('misses nothing that was heard in any order, and everything that was not', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 12 }), fc.infiniteStream(fc.nat()), fc.option(fc.nat({ max: 11 })), (count, order, lost) => {
        const book = new VersionBook();
        book.begin('c', 0);
        const versions = Array.from({ length: count }, (_, n) => n + 1)
          .map((version) => ({ version, key: order.next().value ?? 0 }))
          .sort((a, b) => a.key - b.key)
          .map(({ version }) => version)
          .filter((version) => version - 1 !== lost);
        for (const version of versions) book.note('c', version - 1, version);
        expect(book.misses('c', count)).to.equal(lost !== null && lost < count);
      }),
    );
  });

  it('does not know a conversation that it never heard from its beginning, and forgets what nobody asks about', () => {
    const book = new VersionBook();
    book.note('c', 4, 5);
    expect(book.misses('c', 5)).to.equal(true);
    book.settle('c', 5);
    expect(book.misses('c', 5)).to.equal(false);
    book.beginSweep();
    book.note('d', 0, 1);
    book.keep(new Set());
    expect([book.misses('c', 5), book.misses('d', 1)]).to.deep.equal([true, false]);
  });
});

describe('an answer in parts', () => {
  const anyText = fc.string({ unit: 'binary', maxLength: 60 });

  it('is the same text however the loop cuts, repeats and overlaps its reports', () => {
    fc.assert(
      fc.property(anyText, fc.array(fc.tuple(fc.nat({ max: 60 }), fc.nat({ max: 20 })), { maxLength: 20 }), (text, cuts) => {
        const words = new PartialText();
        let reached = 0;
        for (const [back, length] of [...cuts, [60, 200] as const]) {
          const offset = Math.max(0, reached - back);
          words.take({ epoch: 1, offset, text: text.slice(offset, reached + length), stage: null, full: false });
          reached = Math.min(text.length, reached + length);
        }
        expect(words.rewrites).to.equal(0);
        expect(words.from(0)).to.equal(text.slice(0, words.length).toWellFormed().replaceAll('\0', '\uFFFD'));
      }),
    );
  });

  it('belongs to the newest attempt only', () => {
    const words = new PartialText();
    const report = (epoch: number, offset: number, text: string) => words.take({ epoch, offset, text, stage: null, full: false });
    report(1, 0, 'first');
    expect(report(2, 5, ' second')).to.equal('resync');
    expect(words.from(0)).to.equal('');
    expect(report(2, 0, 'second')).to.equal('ok');
    expect(report(1, 0, 'an old one, late')).to.equal('ok');
    expect([words.epoch, words.from(0)]).to.deep.equal([2, 'second']);
  });

  it('is rewritten only when a reader would see other words than before', () => {
    const words = new PartialText();
    const full = (text: string) => words.take({ epoch: 1, offset: 0, text, stage: null, full: true });
    full('one two three');
    full('one two');
    words.take({ epoch: 1, offset: 7, text: ' three four', stage: null, full: false });
    expect([words.rewrites, words.from(0)]).to.deep.equal([0, 'one two three four']);
    full('one');
    words.take({ epoch: 1, offset: 3, text: ' other', stage: null, full: false });
    expect([words.rewrites, words.from(0)]).to.deep.equal([1, 'one other']);
  });

  it('grows no further than its limit', () => {
    const words = new PartialText();
    words.take({ epoch: 1, offset: 0, text: 'x'.repeat(LIMITS.partialMaxChars), stage: null, full: false });
    expect(words.take({ epoch: 1, offset: LIMITS.partialMaxChars + 5, text: 'y', stage: 'later', full: false })).to.equal('ok');
    expect([words.length, words.stage]).to.deep.equal([LIMITS.partialMaxChars, 'later']);
  });

  it('fits payloads of any language, and is put together again on the other side', () => {
    const letter = { s: 'a', w: uuidv7(), a: uuidv7(), c: uuidv7(), t: uuidv7(), e: 1, o: 0, g: 'Thinking…' };
    const long = ['x', '漢', '😀', '"\\\n\u0001', '\u2028', '\ud83d'].map((piece) => piece.repeat(9_000));
    const check = (text: string) => {
      const pieces = packPartial({ ...letter, x: text });
      for (const { payload } of pieces) expect(utf8Bytes(payload)).to.be.at.most(PAYLOAD_MAX_BYTES);
      const words = new PartialText();
      for (const { payload } of pieces) {
        const piece = unpackPartial(payload, 'b');
        words.take({ epoch: 1, offset: piece?.o ?? null, text: piece?.x ?? '', stage: piece?.g ?? null, full: piece?.f === true });
      }
      expect(words.from(0)).to.equal(text.slice(0, words.length).toWellFormed().replaceAll('\0', '\uFFFD'));
    };
    for (const text of [...long, '漢'.repeat(2_667), '']) check(text);
    fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 5_000, size: 'max' }), check), { numRuns: 50 });
    expect(packPartial({ ...letter, x: '漢'.repeat(2_667) }).length, 'full payloads').to.equal(2);
  });
});

describe('the partial bus', () => {
  const turn = { workspaceId: uuidv7(), accountId: uuidv7(), conversationId: uuidv7<'conversation'>(), turnId: uuidv7<'turn'>() };
  const bus = (serverId: string, clock: ManualClock, bytesMax?: number) =>
    new PartialBus({ serverId, clock, wake: () => {}, ...(bytesMax === undefined ? {} : { bytesMax }) });
  const carry = (from: PartialBus, to: PartialBus, lose = false) => {
    for (const { payload } of from.take()) if (!lose) to.receive(payload);
  };
  const textOf = (of: PartialBus) => of.of(turn.workspaceId, turn.accountId).map(({ words }) => words.from(0));
  const write = (to: PartialBus, offset: number, text: string) =>
    to.publish({ ...turn, epoch: 1, offset, text, stage: 'Thinking…', full: false });
  const rewrite = (to: PartialBus, text: string) => to.publish({ ...turn, epoch: 1, offset: 0, text, stage: 'Thinking…', full: true });

  it('gives a server that came late, or lost a word, the whole text within 5 s, and the stage at once', () => {
    const clock = new ManualClock();
    const [here, there] = [bus('a', clock), bus('b', clock)];
    write(here, 0, 'one ');
    carry(here, there, true);
    write(here, 4, 'two ');
    carry(here, there);
    expect(textOf(there)).to.deep.equal(['']);
    expect(there.stageOf(turn.turnId)).to.equal('Thinking…');
    clock.advance(5_000);
    carry(here, there);
    expect(textOf(there)).to.deep.equal(['one two ']);
  });

  it('clears a turn everywhere, and forgets nothing of its size', () => {
    const clock = new ManualClock();
    const [here, there] = [bus('a', clock), bus('b', clock)];
    write(here, 0, 'one');
    carry(here, there);
    here.clear(turn.conversationId, turn.turnId);
    carry(here, there);
    for (const one of [here, there]) expect([one.size, one.stageOf(turn.turnId)]).to.deep.equal([{ turns: 0, bytes: 0 }, null]);
    expect(clock.timers).to.equal(0);
  });

  it('tells a rewritten text as a new beginning', () => {
    const clock = new ManualClock();
    const [here, there] = [bus('a', clock), bus('b', clock)];
    write(here, 0, 'the failed call');
    carry(here, there);
    rewrite(here, 'another');
    carry(here, there);
    expect(textOf(there)).to.deep.equal(['another']);
  });

  it('takes over when the next report of the attempt comes to another server', () => {
    const clock = new ManualClock();
    const [here, there] = [bus('a', clock), bus('b', clock)];
    write(here, 0, 'one ');
    carry(here, there);
    expect(write(there, 4, 'two')).to.equal('ok');
    carry(there, here);
    expect(textOf(here)).to.deep.equal(['one two']);
  });

  it('says everything again after a batch was lost on the way', () => {
    const clock = new ManualClock();
    const [here, there] = [bus('a', clock), bus('b', clock)];
    write(here, 0, 'one ');
    here.take();
    here.unsent();
    write(here, 4, 'two');
    carry(here, there);
    expect(textOf(there)).to.deep.equal(['one two']);
  });

  it('drops the least recently changed turn when all together are too large, and one whose server died in time', () => {
    const clock = new ManualClock();
    const small = bus('a', clock, 10_000);
    const publish = (turnId: TurnId) =>
      small.publish({ ...turn, turnId, epoch: 1, offset: 0, text: 'x'.repeat(2_000), stage: null, full: true });
    const turns = [uuidv7<'turn'>(), uuidv7<'turn'>(), uuidv7<'turn'>()] as const;
    publish(turns[0]);
    publish(turns[1]);
    publish(turns[0]);
    publish(turns[2]);
    expect(small.of(turn.workspaceId, turn.accountId).map(({ turnId }) => turnId)).to.deep.equal([turns[0], turns[2]]);
    clock.advance(21 * 60_000);
    expect(small.size).to.deep.equal({ turns: 0, bytes: 0 });
  });

  it('never keeps a clear from the others because the turn was not known here', () => {
    const clock = new ManualClock();
    const [here, there] = [bus('a', clock), bus('b', clock)];
    write(there, 0, 'one');
    here.clear(turn.conversationId as ConversationId, turn.turnId);
    carry(here, there);
    expect(textOf(there)).to.deep.equal([]);
  });
});

describe('the post to other servers', () => {
  it('sends what there is at once, then at most every 50 ms, and everything again after a failure', async () => {
    const clock = new ManualClock();
    const batches: number[] = [];
    let waiting = 0;
    let failing = false;
    const post = new PeerPost({
      clock,
      log: silentLog,
      send: async (messages) => {
        if (failing) throw new Error('no connection');
        batches.push(messages.length);
      },
    });
    let taken = 0;
    post.add({
      take: () => {
        taken = waiting;
        waiting = 0;
        return Array.from({ length: taken }, () => ({ channel: 'c', payload: 'p' }));
      },
      unsent: () => {
        waiting += taken;
      },
    });
    const say = (count: number) => {
      waiting += count;
      post.wake();
    };
    say(1);
    await clock.advanceAsync(0);
    expect(batches).to.deep.equal([1]);
    say(1);
    say(1);
    await clock.advanceAsync(49);
    expect(batches).to.deep.equal([1]);
    await clock.advanceAsync(1);
    expect(batches).to.deep.equal([1, 2]);
    failing = true;
    say(3);
    await clock.advanceAsync(50);
    say(1);
    failing = false;
    await clock.advanceAsync(5_000);
    expect(batches).to.deep.equal([1, 2, 4]);
    say(450);
    await clock.advanceAsync(50);
    expect(batches.slice(3)).to.deep.equal([200, 200, 50]);
    expect(clock.timers).to.equal(0);
  });
});
