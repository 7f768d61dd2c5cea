/**
 * What servers say to each other, without servers: packing, folding, and holes. Properties over many inputs.
 */
import { expect } from 'chai';
import fc from 'fast-check';
import { PAYLOAD_MAX_BYTES, utf8Bytes } from '../../db/live/payloads.ts';
import type { Change } from '../../src/contract/changes.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import { silentLog } from '../../src/kernel/log.ts';
import { Audience } from '../../src/live/audience.ts';
import { ChangeFeed } from '../../src/live/change-feed.ts';
import { mergeChanges, packChanges, unpackChanges } from '../../src/live/change-wire.ts';
import { PeerPost } from '../../src/live/peer-post.ts';
import { VersionBook } from '../../src/live/version-book.ts';
import { ManualClock } from '../support/manual-clock.ts';

const ids = (count: number) => Array.from({ length: count }, () => uuidv7());
const change = (version: number, more: Partial<Change> = {}): Change => ({
  ...{ workspaceId: uuidv7(), accountId: uuidv7(), conversationId: uuidv7() },
  ...{ version, turnIds: [], entryIds: [], sealedRunIds: [], ...more },
});

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

describe('the change feed', () => {
  it('offers what was lost on the way again, together with what came since', () => {
    const book = new VersionBook();
    const feed = new ChangeFeed({ serverId: 'a', book, log: silentLog, wake: () => {} });
    const first = change(1, { turnIds: ids(1) });
    feed.publish(first);
    expect(feed.take()).to.have.length(1);
    expect(feed.take(), 'what was sent is not offered again').to.deep.equal([]);
    feed.publish({ ...first, version: 2, turnIds: ids(1) });
    feed.take();
    feed.unsent();
    feed.publish({ ...first, version: 3, turnIds: [] });
    const [message, ...more] = feed.take();
    expect(more).to.deep.equal([]);
    expect(unpackChanges(message?.payload ?? '', 'b')).to.have.length(1);
    expect(unpackChanges(message?.payload ?? '', 'b')?.[0]).to.include({ since: 1, version: 3 });
  });

  it('goes on when a listener throws, and tells the actors only what they did not do themselves', () => {
    const feed = new ChangeFeed({ serverId: 'a', book: new VersionBook(), log: silentLog, wake: () => {} });
    const [all, foreign]: [number[], number[]] = [[], []];
    feed.onChange(() => {
      throw new Error('broken');
    });
    feed.onChange(({ version }) => all.push(version));
    feed.onRemoteChange(({ version }) => foreign.push(version));
    feed.publish(change(1));
    feed.publish(change(2, { read: true }));
    for (const { payload } of packChanges('b', [change(3)])) feed.receive(payload);
    feed.receive('garbage');
    expect([all, foreign]).to.deep.equal([
      [1, 2, 3],
      [2, 3],
    ]);
  });
});

describe('an audience', () => {
  it('hears of a waiting turn again only when something about it changed', () => {
    const audience = new Audience({ workspaceId: uuidv7<'workspace'>(), accountId: uuidv7<'account'>() });
    const said = (json: string, waiting = true) => !audience.isRepeat('turn', json, waiting);
    expect([said('second'), said('second'), said('first'), said('running', false), said('first')]).to.deep.equal([
      true,
      false,
      true,
      true,
      true,
    ]);
  });

  it('hears of it again after a snapshot, which may have said something else in between', () => {
    const audience = new Audience({ workspaceId: uuidv7<'workspace'>(), accountId: uuidv7<'account'>() });
    const said = (json: string) => !audience.isRepeat('turn', json, true);
    expect(said('second')).to.equal(true);
    audience.snapshotSent();
    expect([said('second'), said('second')]).to.deep.equal([true, false]);
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
