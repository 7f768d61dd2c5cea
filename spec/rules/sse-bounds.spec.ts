/**
 * What readers who do not read, or hang up, cost the server: bounded bytes, no listener, no timer. And what they get when they read again.
 */
import { EventEmitter, once } from 'node:events';
import { expect } from 'chai';
import type Koa from 'koa';
import { createApp } from '../../src/http/route.ts';
import { createServer } from '../../src/http/server.ts';
import { SseChannel } from '../../src/http/sse.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { silentLog } from '../../src/kernel/log.ts';
import { useDatabase } from '../support/database.ts';
import { useRigs } from '../support/http-rig.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { SseClient } from '../support/sse-client.ts';

const MEGABYTE = 1024 * 1024;

/** A server whose only route opens a channel that the spec writes to. */
async function channelServer() {
  const channels: SseChannel[] = [];
  const opened = new EventEmitter();
  const open = (ctx: Koa.Context) => {
    channels.push(new SseChannel(ctx, systemClock));
    opened.emit('opened');
  };
  const app = createApp({ log: silentLog, routes: [{ method: 'GET', path: '/', handle: open }] });
  const listener = createServer({ callback: app.callback(), portVariable: 'HEPH_PORT', connectionsMax: 2_000, idleTimeoutMs: 60_000 });
  const port = await listener.start('127.0.0.1', 0);
  return { channels, url: `http://127.0.0.1:${port}/`, stop: () => listener.stop(100) };
}

describe('readers that do not read', () => {
  let server: Awaited<ReturnType<typeof channelServer>>;
  beforeEach(async () => {
    server = await channelServer();
  });
  afterEach(() => server.stop());

  const json = (bytes: number) => JSON.stringify({ conversationId: 'x'.repeat(bytes - 40), lastReadAt: null });

  it('cost a bounded number of bytes each: 50 of them and 20 MB of events for each', async () => {
    const clients = await Promise.all(Array.from({ length: 50 }, () => SseClient.connect(server.url, { deaf: true })));
    expect(server.channels).to.have.length(50);
    const event = json(64 * 1024);
    let refusals = 0;
    for (let n = 0; n < 320; n++) {
      for (const channel of server.channels) if (!channel.send('read', event)) refusals += 1;
      await new Promise((resolve) => setImmediate(resolve));
      for (const channel of server.channels) expect(channel.bufferedBytes).to.be.lessThan(1.5 * MEGABYTE);
    }
    expect(refusals).to.be.greaterThan(50 * 200);
    for (const client of clients) client.reset();
  });

  it('are refused more than 256 events, however small', async () => {
    const client = await SseClient.connect(server.url, { deaf: true });
    const [channel] = server.channels;
    let taken = 0;
    while (channel?.send('read', json(50))) taken += 1;
    expect(taken).to.be.within(256, 258);
    client.reset();
  });

  it('hear of a full queue once they have taken everything, and can be written to again', async () => {
    const client = await SseClient.connect(server.url);
    const [channel] = server.channels;
    if (!channel) throw new Error('no channel');
    const drained = new Promise<void>((resolve) => channel.onDrain(resolve));
    const event = json(100_000).replaceAll('"conversationId":"x', `"conversationId":"${'0'.repeat(8)}`);
    while (channel.send('read', event));
    expect(channel.send('read', event), 'refused until it drains').to.equal(false);
    await drained;
    expect(channel.send('read', event)).to.equal(true);
    client.reset();
  });

  it('leave no channel open when they hang up, with a reset or a goodbye, before or after the first byte', async () => {
    const hungUp = async (n: number) => {
      const client = await SseClient.connect(server.url);
      if (n % 2 === 0) client.reset();
      else await client.close();
    };
    for (let n = 0; n < 100; n++) await hungUp(n);
    await Promise.all(server.channels.map((channel) => new Promise<void>((resolve) => channel.onClose(resolve))));
    for (const channel of server.channels) expect(channel.send('read', json(50))).to.equal(false);
  });
});

describe('readers of the hub', () => {
  const database = useDatabase();
  const openRig = useRigs(database);

  it('leave no stream, no account and no timer behind: 1,000 that connect and reset', async () => {
    const clock = new ManualClock();
    const rig = await openRig({ clock, streamsPerAccountMax: 2_000 });
    const timers = clock.timers;
    for (let round = 0; round < 20; round++) {
      const clients = await Promise.all(Array.from({ length: 50 }, () => rig.events()));
      for (const client of clients) client.reset();
    }
    while (rig.live.hub.streams > 0) await once(rig.streams, 'closed');
    expect(rig.live.hub.members()).to.deep.equal([]);
    expect(clock.timers).to.equal(timers);
  });

  it('get one fresh snapshot, not a backlog, when they read again', async () => {
    const rig = await openRig();
    const { body } = await rig.ask('x'.repeat(32_000));
    const stream = await rig.events();
    await stream.next('snapshot');
    stream.pause();
    const change = {
      ...rig.person,
      conversationId: body.turn.conversationId,
      version: 1,
      turnIds: [],
      entryIds: [body.entry.id],
      sealedRunIds: [],
    };
    const other = await rig.events();
    await other.next('snapshot');
    for (let n = 0; n < 400; n++) {
      rig.live.changes.publish(change);
      await other.next('entry');
    }
    stream.resume();
    await stream.next('snapshot');
    expect(stream.received.filter(({ event }) => event === 'entry').length).to.be.lessThan(400);
  });

  it('are cut off after 45 s without taking anything, and may come back', async () => {
    const clock = new ManualClock();
    const rig = await openRig({ clock });
    const { body } = await rig.ask('x'.repeat(32_000));
    await rig.events({ deaf: true });
    const change = {
      ...rig.person,
      conversationId: body.turn.conversationId,
      version: 1,
      turnIds: [],
      entryIds: [body.entry.id],
      sealedRunIds: [],
    };
    const other = await rig.events();
    await other.next('snapshot');
    for (let n = 0; n < 400; n++) {
      rig.live.changes.publish(change);
      await other.next('entry');
    }
    expect(rig.live.hub.streams).to.equal(2);
    const cut = once(rig.streams, 'closed');
    for (let ms = 0; ms < 60_000; ms += 15_000) await clock.advanceAsync(15_000);
    await cut;
    expect(rig.live.hub.streams, 'the reader who reads is still there').to.equal(1);
    await (await rig.events()).next('snapshot');
  });
});
