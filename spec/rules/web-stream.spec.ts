/**
 * Owns: proof that the page's one connection comes back by itself and serves all tabs of a browser.
 * Time is driven by hand; locks and channels are the real ones, which Node has as well.
 */
import { expect } from 'chai';
import fc from 'fast-check';
import { uuidv7 } from '../../src/kernel/ids.ts';
import { backoffMs, EventStream, type StreamHandlers, type StreamStatus } from '../../src/web/net/event-stream.ts';
import { SharedStream } from '../../src/web/net/shared-stream.ts';
import type { SseFrame } from '../../src/web/net/sse-decoder.ts';
import { ManualClock } from '../support/manual-clock.ts';

/** A server that is driven by hand: each connection waits to be answered, fed and cut. */
class HandServer {
  readonly connections: Connection[] = [];

  readonly fetch = (_url: string, { signal }: RequestInit): Promise<Response> =>
    new Promise((resolve, reject) => {
      const connection = new Connection(resolve, reject);
      signal?.addEventListener('abort', () => connection.cut());
      this.connections.push(connection);
    });

  /** Connections that nobody has cut. */
  get open(): Connection[] {
    return this.connections.filter((connection) => !connection.gone);
  }

  get last(): Connection {
    const connection = this.connections.at(-1);
    if (connection === undefined) throw new Error('nobody connected yet');
    return connection;
  }
}

class Connection {
  gone = false;
  readonly #resolve: (response: Response) => void;
  readonly #reject: (error: Error) => void;
  #controller: ReadableStreamDefaultController<Uint8Array> | null = null;

  constructor(resolve: (response: Response) => void, reject: (error: Error) => void) {
    this.#resolve = resolve;
    this.#reject = reject;
  }

  answer(status: number): void {
    this.gone = status !== 200;
    const start = (controller: ReadableStreamDefaultController<Uint8Array>) => {
      this.#controller = controller;
    };
    this.#resolve(new Response(status === 200 ? new ReadableStream({ start }) : null, { status }));
  }

  say(event: string, data: string): void {
    if (this.#controller === null) this.answer(200);
    this.#controller?.enqueue(new TextEncoder().encode(`event: ${event}\ndata: ${data}\n\n`));
  }

  cut(): void {
    if (this.gone) return;
    this.gone = true;
    const error = new Error('cut');
    if (this.#controller === null) this.#reject(error);
    else this.#controller.error(error);
  }
}

/** Waits until `condition` holds; the test's own time limit ends a wait that never does. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise<void>((resolve) => setImmediate(resolve));
}

/** Somebody who listens to a stream. */
class Listener implements Pick<StreamHandlers, 'onFrame' | 'onStatus'> {
  readonly frames: string[] = [];
  status: StreamStatus = { kind: 'waiting' };
  readonly onFrame = (frame: SseFrame) => void this.frames.push(frame.data);
  readonly onStatus = (status: StreamStatus) => {
    this.status = status;
  };
}

describe('the connection', () => {
  function connect() {
    const server = new HandServer();
    const clock = new ManualClock();
    const listener = new Listener();
    const stream = new EventStream('/events', { fetch: server.fetch, clock, random: () => 0.999 }, listener);
    stream.start();
    return { server, clock, listener, stream };
  }

  it('comes back by itself after a restart of the server, later and later while it is away, and soon again after a success', async () => {
    const { server, clock, listener, stream } = connect();
    server.last.say('snapshot', '1');
    await until(() => listener.frames.length === 1);
    server.last.cut();
    await until(() => listener.status.kind === 'waiting');
    for (const pauseMs of [250, 500, 1_000, 2_000, 2_000, 2_000]) {
      const before = server.connections.length;
      await clock.advanceAsync(pauseMs - 10);
      expect(server.connections).to.have.length(before);
      await clock.advanceAsync(10);
      await until(() => server.connections.length === before + 1);
      server.last.answer(502);
      await until(() => listener.status.kind === 'waiting');
    }
    await clock.advanceAsync(2_000);
    server.last.say('snapshot', '2');
    await until(() => listener.frames.length === 2);
    server.last.cut();
    await until(() => listener.status.kind === 'waiting');
    const before = server.connections.length;
    await clock.advanceAsync(250);
    await until(() => server.connections.length === before + 1);
    stream.stop();
  });

  it('is given up after 45 seconds without a byte, and any byte counts', async () => {
    const { server, clock, listener, stream } = connect();
    server.last.say('snapshot', '1');
    await until(() => listener.frames.length === 1);
    for (let pings = 0; pings < 4; pings++) {
      await clock.advanceAsync(44_000);
      server.last.say('', '');
      await until(() => listener.frames.length === pings + 2);
    }
    expect(server.connections).to.have.length(1);
    await clock.advanceAsync(45_000);
    await until(() => server.connections[0]?.gone === true);
    await clock.advanceAsync(250);
    await until(() => server.connections.length === 2);
    stream.stop();
  });

  it('is made anew at once when a snapshot is wanted or the network is back, whatever pause it was in', async () => {
    const { server, listener, stream } = connect();
    server.last.say('snapshot', '1');
    await until(() => listener.status.kind === 'open');
    stream.reconnect();
    await until(() => server.connections.length === 2);
    stream.reconnect();
    server.last.answer(502);
    await until(() => listener.status.kind === 'waiting');
    stream.wake(20_000);
    await until(() => server.connections.length === 3);
    server.last.say('snapshot', '2');
    await until(() => listener.status.kind === 'open');
    stream.wake(20_000);
    await new Promise<void>((resolve) => setImmediate(resolve));
    expect(server.open).to.have.length(1);
    expect(server.connections).to.have.length(3);
    stream.stop();
    expect(server.open).to.have.length(0);
  });

  it('is not tried again when the account may not have it, until somebody asks', async () => {
    const { server, clock, listener, stream } = connect();
    server.last.answer(403);
    await until(() => listener.status.kind === 'refused');
    await clock.advanceAsync(600_000);
    expect(server.connections).to.have.length(1);
    stream.reconnect();
    await until(() => server.connections.length === 2);
    stream.stop();
  });

  it('is tried again at the pace of the server while the account has too many, and at once when somebody asks', async () => {
    const { server, clock, listener, stream } = connect();
    for (let tries = 1; tries <= 3; tries++) {
      server.last.answer(429);
      await until(() => listener.status.kind === 'waiting');
      await clock.advanceAsync(14_999);
      expect(server.connections).to.have.length(tries);
      await clock.advanceAsync(1);
      await until(() => server.connections.length === tries + 1);
    }
    server.last.answer(429);
    await until(() => listener.status.kind === 'waiting');
    stream.reconnect();
    await until(() => server.connections.length === 5);
    server.last.say('snapshot', '1');
    await until(() => listener.status.kind === 'open');
    stream.stop();
  });

  it('waits within its bounds', () => {
    fc.assert(
      fc.property(fc.nat(1_000), fc.double({ min: 0, max: 1, noNaN: true }), (failures, random) => {
        const pauseMs = backoffMs(failures, random);
        expect(pauseMs, 'right again within 2 s of the heal').to.be.within(125, 2_000);
      }),
    );
  });
});

describe('the tabs of a browser', () => {
  const opened: SharedStream[] = [];
  afterEach(() => {
    for (const tab of opened.splice(0)) tab.stop();
  });

  function browser() {
    const server = new HandServer();
    const name = `heph-spec-${uuidv7()}`;
    /** Each tab has its own clock: for a frozen one no time passes. */
    const openTab = () => {
      const clock = new ManualClock();
      const listener = new Listener();
      const tab = new SharedStream(
        name,
        {
          connect: (handlers) => new EventStream('/events', { fetch: server.fetch, clock, random: () => 0 }, handlers),
          locks: navigator.locks,
          openChannel: (channel) => new BroadcastChannel(channel),
          clock,
          newTabId: () => uuidv7(),
        },
        listener,
      );
      opened.push(tab);
      tab.start();
      return { tab, listener, clock };
    };
    return { server, name, openTab };
  }

  /** Two tabs, both up to date; the first one has the connection. */
  async function twoTabs() {
    const all = browser();
    const first = all.openTab();
    await until(() => all.server.connections.length === 1);
    all.server.last.say('snapshot', 'S1');
    await until(() => first.listener.frames.length === 1);
    const second = all.openTab();
    await until(() => all.server.connections.length === 2);
    all.server.last.say('snapshot', 'S2');
    await until(() => second.listener.frames.length === 1);
    return { ...all, first, second };
  }

  it('share one connection and see the same; a tab that joins gets a snapshot first', async () => {
    const { server, first, second } = await twoTabs();
    server.last.say('turn', 'T');
    await until(() => second.listener.frames.length === 2 && first.listener.frames.length === 3);
    expect(first.listener.frames).to.deep.equal(['S1', 'S2', 'T']);
    expect(second.listener.frames).to.deep.equal(['S2', 'T']);
    expect(second.listener.status).to.deep.equal({ kind: 'open' });
    expect(server.open).to.have.length(1);
  });

  it('go on when the tab with the connection is closed', async () => {
    const { server, first, second } = await twoTabs();
    first.tab.stop();
    await until(() => server.connections.length === 3);
    server.last.say('snapshot', 'S3');
    await until(() => second.listener.frames.length === 2);
    expect(second.listener.frames).to.deep.equal(['S2', 'S3']);
    expect(first.listener.frames).to.deep.equal(['S1', 'S2']);
    expect(server.open).to.have.length(1);
  });

  it('get a fresh snapshot when any of them missed words', async () => {
    const { server, first, second } = await twoTabs();
    second.tab.requestSnapshot();
    await until(() => server.connections.length === 3);
    server.last.say('snapshot', 'S3');
    await until(() => first.listener.frames.includes('S3') && second.listener.frames.includes('S3'));
    expect(server.open).to.have.length(1);
  });

  it('do not hear the last words of a tab that leads no longer', async () => {
    const { server, name, second } = await twoTabs();
    const ghost = new BroadcastChannel(name);
    ghost.postMessage({ type: 'frame', leader: 'a tab of the past', frame: { event: 'turn', data: 'late' } });
    ghost.postMessage({ type: 'status', leader: 'a tab of the past', status: { kind: 'waiting' } });
    ghost.close();
    server.last.say('turn', 'T');
    await until(() => second.listener.frames.includes('T'));
    await new Promise<void>((resolve) => setImmediate(resolve));
    expect(second.listener.frames).to.deep.equal(['S2', 'T']);
    expect(second.listener.status).to.deep.equal({ kind: 'open' });
  });

  it('come back at once when the tab with the connection is hidden and its timers are slow', async () => {
    const { server, second } = await twoTabs();
    server.last.cut();
    await until(() => second.listener.status.kind === 'waiting');
    await second.clock.advanceAsync(2_500);
    await until(() => server.connections.length === 3);
    server.last.say('snapshot', 'S3');
    await until(() => second.listener.frames.includes('S3'));
  });

  it('overthrow a tab that the browser froze, and it follows when it wakes', async () => {
    const { server, first, second } = await twoTabs();
    await second.clock.advanceAsync(50_000);
    await until(() => second.listener.status.kind === 'connecting' && server.open.length === 1);
    server.last.say('snapshot', 'S3');
    await until(() => first.listener.frames.includes('S3') && second.listener.frames.includes('S3'));
    expect(server.open).to.have.length(1);
    first.tab.stop();
    server.last.say('turn', 'T');
    await until(() => second.listener.frames.includes('T'));
    expect(first.listener.frames).to.not.include('T');
  });
});
