/**
 * What makes a lost word harmless: the sweep over the rows, LISTEN that notices its own death, NOTIFY that fits.
 */
import { EventEmitter, once } from 'node:events';
import net from 'node:net';
import { expect } from 'chai';
import { Listener } from '../../db/live/listener.ts';
import { Notifier } from '../../db/live/notify.ts';
import { sql } from '../../db/pool.ts';
import type { Change } from '../../src/contract/changes.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import { silentLog } from '../../src/kernel/log.ts';
import { CatchUp } from '../../src/live/catch-up.ts';
import { ChangeFeed } from '../../src/live/change-feed.ts';
import { LiveHub } from '../../src/live/hub.ts';
import { PartialBus } from '../../src/live/partial-bus.ts';
import { VersionBook } from '../../src/live/version-book.ts';
import { useDatabase } from '../support/database.ts';
import { emptyLedger, makeMain, makePerson, run } from '../support/ledger.ts';
import { ManualClock } from '../support/manual-clock.ts';

describe('the sweep', () => {
  const database = useDatabase();

  it('tells the actors of a conversation that changed out of sight, once, and leaves alone what was heard', async () => {
    const { db } = database;
    await emptyLedger(db);
    const person = await makePerson(db);
    const [silent, heard] = [await makeMain(db, person), await makeMain(db, await makePerson(db))];
    const parts = { db, book: new VersionBook(), clock: systemClock, log: silentLog, wake: () => {}, serverId: uuidv7() };
    const feed = new ChangeFeed(parts);
    const hub = new LiveHub({ ...parts, partials: new PartialBus(parts), streamsPerAccountMax: 10, pingMs: 15_000 });
    const catchUp = new CatchUp({ ...parts, hub, feed, activeConversationIds: () => [silent, heard] });
    const found: Change[] = [];
    feed.onRemoteChange((change) => found.push(change));

    await catchUp.sweep();
    expect(
      found.map(({ conversationId }) => conversationId),
      'nobody knows what the actors have seen',
    ).to.have.members([silent, heard]);
    found.length = 0;
    feed.publish({ ...person, conversationId: heard, version: 1, turnIds: [], entryIds: [], sealedRunIds: [] });
    await run(db, sql.unsafe`update mentor_conversation set version = version + 1 returning id`);
    await catchUp.sweep();
    await catchUp.sweep();
    expect(found.map(({ conversationId, version, slots }) => ({ conversationId, version, slots }))).to.deep.equal([
      { conversationId: silent, version: 1, slots: true },
    ]);
  });
});

describe('LISTEN', () => {
  const database = useDatabase();

  it('notices a connection that is dead without a word, and subscribes again', async () => {
    const url = new URL(database.url);
    const target = { port: Number(url.port), host: url.hostname };
    const black = { hole: false };
    const sockets = new Set<net.Socket>();
    const proxy = net.createServer((inner) => {
      const outer = net.connect(target);
      const swallow = black.hole === false; // what is open when the hole opens is swallowed; later connections pass
      for (const [from, to] of [
        [inner, outer],
        [outer, inner],
      ] as const) {
        sockets.add(from);
        from.on('data', (chunk) => void ((black.hole && swallow) || to.write(chunk)));
        from.on('error', () => {});
        from.on('close', () => to.destroy());
      }
    });
    proxy.listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    url.port = String((proxy.address() as net.AddressInfo).port);
    const gaps = new EventEmitter();
    const heard = Promise.withResolvers<string>();
    const listener = new Listener({
      url: url.toString(),
      serverId: uuidv7(),
      channels: { heph_spec: heard.resolve },
      onGap: async () => void gaps.emit('gap'),
      clock: systemClock,
      log: silentLog,
      heartbeatMs: 20,
      timeoutMs: 200,
    });
    await listener.start();
    expect(listener.connected).to.equal(true);
    const again = once(gaps, 'gap');
    black.hole = true;
    await again;
    const notifier = new Notifier(database.url);
    await notifier.send([{ channel: 'heph_spec', payload: 'hello' }]);
    expect(await heard.promise).to.equal('hello');
    await notifier.close();
    await listener.close();
    for (const socket of sockets) socket.destroy();
    proxy.close();
  });

  it('keeps trying while the database is away, and closes at once when it is told to', async () => {
    const [clock, gone] = [new ManualClock(), new URL(database.url)];
    gone.port = '1';
    const onGap = async () => {};
    const listener = new Listener({ url: gone.toString(), serverId: uuidv7(), channels: {}, onGap, clock, log: silentLog });
    const started = listener.start();
    await listener.close();
    await started;
    expect(listener.connected).to.equal(false);
  });
});

describe('NOTIFY', () => {
  const database = useDatabase();

  it('carries a payload of 7,999 bytes, refuses 8,000 before PostgreSQL does, and counts bytes and not characters', async () => {
    const notifier = new Notifier(database.url);
    const channel = 'heph_spec';
    await notifier.send([{ channel, payload: 'x'.repeat(7_999) }]);
    for (const payload of ['x'.repeat(8_000), '漢'.repeat(2_667)]) {
      const refused = await notifier.send([{ channel, payload }]).catch((error: Error) => error);
      expect(refused).to.be.instanceOf(RangeError);
    }
    const raw = await run(database.db, sql.unsafe`select pg_notify('heph_spec', ${'漢'.repeat(2_667)})::text as n`).catch(
      (error: Error) => error,
    );
    expect(raw, 'our limit is the one of PostgreSQL').to.be.instanceOf(Error);
    await notifier.close();
  });

  it('connects again after its connection was cut', async () => {
    const notifier = new Notifier(database.url);
    await notifier.send([{ channel: 'heph_spec', payload: uuidv7() }]);
    await run(
      database.db,
      sql.unsafe`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'heph-notify'`,
    );
    // The cut may be noticed by the send itself: that batch is lost, and the sender is told so.
    await notifier.send([{ channel: 'heph_spec', payload: 'a' }]).catch(() => {});
    await notifier.send([{ channel: 'heph_spec', payload: 'b' }]);
    await notifier.close();
  });
});
