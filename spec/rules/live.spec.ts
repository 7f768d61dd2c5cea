/**
 * Changes between servers: told by NOTIFY, found by the sweep when the word was lost, never told twice to the wrong person.
 */
import { EventEmitter, once } from 'node:events';
import net from 'node:net';
import { expect } from 'chai';
import { reconcileSlots } from '../../db/ledger/slots.ts';
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
import { type HttpRig, useRigs } from '../support/http-rig.ts';
import { ask, emptyLedger, makeMain, makePerson, run } from '../support/ledger.ts';
import { ManualClock } from '../support/manual-clock.ts';

describe('two servers on one database', () => {
  const database = useDatabase();
  const openRig = useRigs(database);
  let here: HttpRig;
  let there: HttpRig;
  beforeEach(async () => {
    await emptyLedger(database.db);
    await reconcileSlots(database.db, 4);
    here = await openRig();
    there = await openRig({ person: here.person });
  });

  it('show a question that was asked at the other one', async () => {
    const stream = await there.events();
    await stream.next('snapshot');
    const { body } = await here.ask('Why?');
    expect(await stream.next('entry')).to.deep.equal(body.entry);
    expect(await stream.next('turn')).to.deep.equal(body.turn);
  });

  it('show an answer that is being written at the other one, and its end', async () => {
    const { body } = await here.ask('Why?');
    const sandbox = await here.sandbox(body.turn.conversationId);
    const { body: pulled } = await sandbox.next(5_000);
    const stream = await there.events();
    await stream.next('snapshot');
    await sandbox.partial(pulled.run, 0, 'Because');
    expect(await stream.next('partial')).to.include({ offset: 0, text: 'Because', stage: 'Thinking…', epoch: 1 });
    expect((await there.send('GET', `turns/${body.turn.id}`)).body.stage).to.equal('Thinking…');
    await sandbox.partial(pulled.run, 7, ' of that.');
    expect(await stream.next('partial')).to.include({ offset: 7, text: ' of that.' });
    await sandbox.answer(pulled.run, 'Because of that.');
    expect((await stream.next('entry', ({ kind }) => kind === 'answer')).text).to.equal('Because of that.');
    await stream.next('turn', ({ status }) => status === 'DONE');
    expect(there.live.partials.size).to.deep.equal({ turns: 0, bytes: 0 });
  });

  it('show a reader who connects at any moment the whole text without a gap or a repeat', async () => {
    const { body } = await here.ask('Why?');
    const sandbox = await here.sandbox(body.turn.conversationId);
    const { body: pulled } = await sandbox.next(5_000);
    const text = Array.from({ length: 200 }, (_, n) => `word${n} `).join('');
    await sandbox.partial(pulled.run, 0, 'start ');
    const writing = (async () => {
      for (let at = 0; at < text.length; at += 12) await sandbox.partial(pulled.run, 6 + at, text.slice(at, at + 12));
    })();
    const readers = Array.from({ length: 20 }, async (_, n) => {
      const stream = await (n % 2 === 0 ? here : there).events();
      const { partials } = await stream.next('snapshot');
      let seen = partials[0]?.text ?? '';
      while (seen.length < 6 + text.length) {
        const partial = await stream.next('partial');
        expect(partial.offset).to.equal(seen.length);
        seen += partial.text;
      }
      await stream.close();
      return seen;
    });
    await writing;
    for (const seen of await Promise.all(readers)) expect(seen).to.equal(`start ${text}`);
  });

  it('tell each other whose attempts were stopped, so that model calls end everywhere', async () => {
    const { body } = await here.ask('Why?');
    const sandbox = await here.sandbox(body.turn.conversationId);
    const { body: pulled } = await sandbox.next(5_000);
    const sealed = Promise.withResolvers<readonly string[]>();
    there.live.changes.onChange((change) => {
      if (change.sealedRunIds.length > 0) sealed.resolve(change.sealedRunIds);
    });
    await here.send('PATCH', `turns/${body.turn.id}/status`, { body: { status: 'STOPPED' } });
    expect(await sealed.promise).to.deep.equal([pulled.run.id]);
  });

  it('tell a waiting person when every slot is taken, their position, and when one is free again', async () => {
    await reconcileSlots(database.db, 1);
    const other = await openRig({ person: await makePerson(database.db) });
    const { body } = await other.ask('first');
    const sandbox = await other.sandbox(body.turn.conversationId);
    const stream = await there.events();
    await stream.next('snapshot');
    const { body: waiting } = await here.ask('second');
    await stream.next('turn', ({ id, waitingFor }) => id === waiting.turn.id && waitingFor === null);
    const { body: pulled } = await sandbox.next(5_000);
    expect(await stream.next('turn')).to.include({ id: waiting.turn.id, waitingFor: 'FREE_HEPH', position: 1 });
    await sandbox.answer(pulled.run, 'Done.');
    expect(await stream.next('turn')).to.include({ id: waiting.turn.id, waitingFor: null, position: null });
  });

  it('live again when the LISTEN connection was cut: words that came meanwhile are found in the rows', async () => {
    const stream = await there.events();
    await stream.next('snapshot');
    await here.ask('before');
    await stream.next('turn');
    const subscribedAgain = new Promise<void>((resolve) => there.live.onGap(resolve));
    const [killed] = await run(
      database.db,
      sql.unsafe`select count(pg_terminate_backend(pid))::int as n from pg_stat_activity
        where datname = current_database() and application_name = 'heph-listen'`,
    );
    expect(killed?.['n']).to.equal(2);
    const { body } = await here.ask('in between');
    const seen = (conversations: readonly { turns: readonly { id: string }[] }[]) =>
      conversations.some(({ turns }) => turns.some(({ id }) => id === body.turn.id));
    await Promise.race([
      stream.next('snapshot', ({ conversations }) => seen(conversations)),
      stream.next('turn', ({ id }) => id === body.turn.id),
    ]);
    await subscribedAgain;
    const { body: later } = await here.ask('after');
    await Promise.race([
      stream.next('turn', ({ id }) => id === later.turn.id),
      stream.next('snapshot', ({ conversations }) => conversations.some(({ turns }) => turns.some(({ id }) => id === later.turn.id))),
    ]);
  });

  it('lose no reader and no change when every connection to the database is cut', async () => {
    const stream = await here.events();
    await stream.next('snapshot');
    await here.ask('before');
    await stream.next('turn');
    await run(
      database.db,
      sql.unsafe`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`,
    );
    let answer = await here.ask('after', { requestId: 'after' });
    while (answer.status === 503) answer = await here.ask('after', { requestId: 'after' });
    expect(answer.status).to.equal(202);
    const { turn } = answer.body;
    await Promise.race([
      stream.next('turn', ({ id }) => id === turn.id),
      stream.next('snapshot', ({ conversations }) => conversations.some(({ turns }) => turns.some(({ id }) => id === turn.id))),
    ]);
    expect(stream.over).to.equal(false);
  });

  it('find a change whose server died between its commit and its word', async () => {
    const stream = await there.events();
    await stream.next('snapshot');
    const conversationId = await makeMain(database.db, here.person);
    const asked = await ask(database.db, here.person, conversationId);
    const { conversations } = await stream.next('snapshot');
    expect(conversations[0]?.turns.map(({ id }) => id)).to.deep.equal([asked.turnId]);
    const again = await ask(database.db, here.person, conversationId);
    const second = await stream.next('snapshot');
    expect(second.conversations[0]?.turns.map(({ id }) => id)).to.include(again.turnId);
  });
});

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
