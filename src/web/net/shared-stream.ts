/**
 * Owns: one event stream for all tabs of a browser (HTTP/1.1 gives a site six connections; a stream per tab makes the sixth hang).
 * The tab that holds a Web Lock leads: it keeps the connection and repeats each event on a BroadcastChannel. The others follow.
 * Does not own: the connection (event-stream.ts), or the meaning of an event (chat/).
 * - A tab that joins, or that missed words, asks for a snapshot: the leader connects anew, and everybody gets that snapshot.
 * - The lock passes on by itself when the leading tab goes; a leader that is silent (frozen) is overthrown.
 * - Without locks or channels (an insecure origin) each tab keeps its own stream.
 */
import type { Clock, Timer } from '../../kernel/clock.ts';
import type { EventStream, StreamHandlers, StreamStatus } from './event-stream.ts';
import type { SseFrame } from './sse-decoder.ts';

/** What tabs say to each other. `leader` names the tab whose connection it is. */
type TabMessage =
  | { type: 'frame'; leader: string; frame: SseFrame }
  | { type: 'status'; leader: string; status: StreamStatus }
  | { type: 'alive'; leader: string }
  | { type: 'want-snapshot' };

export interface TabChannel {
  postMessage(message: unknown): void;
  onmessage: ((event: MessageEvent) => void) | null;
  close(): void;
}

export interface SharedStreamPorts {
  /** Makes a connection that tells these handlers. */
  connect(handlers: StreamHandlers): EventStream;
  /** null when the browser has none. */
  locks: Pick<LockManager, 'request'> | null;
  openChannel: ((name: string) => TabChannel) | null;
  clock: Clock;
  /** An id of this tab, new for each start. */
  newTabId(): string;
}

/** How often a leader says that it is alive, at most. */
const aliveEveryMs = 10_000;
/** A leader that says nothing for so long has been frozen by the browser. */
const leaderSilenceMaxMs = 50_000;
/** A browser slows the timers of hidden tabs: a leader that sits out a longer pause than this is told to go on by a tab that is awake. */
const leaderPauseMaxMs = 2_500;

export class SharedStream {
  readonly #name: string;
  readonly #ports: SharedStreamPorts;
  readonly #handlers: Pick<StreamHandlers, 'onFrame' | 'onStatus'>;
  #channel: TabChannel | null = null;
  #stream: EventStream | null = null;
  #tabId = '';
  #ended: AbortController | null = null;
  #following: string | null = null;
  #silence: Timer | null = null;
  #nudge: Timer | null = null;
  #patience: AbortController | null = null;
  #saidAliveMs = Number.NEGATIVE_INFINITY;

  constructor(name: string, ports: SharedStreamPorts, handlers: Pick<StreamHandlers, 'onFrame' | 'onStatus'>) {
    this.#name = name;
    this.#ports = ports;
    this.#handlers = handlers;
  }

  start(): void {
    if (this.#ended !== null) return;
    this.#ended = new AbortController();
    this.#tabId = this.#ports.newTabId();
    this.#handlers.onStatus({ kind: 'connecting' });
    if (this.#ports.locks === null || this.#ports.openChannel === null) {
      this.#stream = this.#ports.connect(this.#handlers);
      this.#stream.start();
      return;
    }
    this.#channel = this.#ports.openChannel(this.#name);
    this.#channel.onmessage = (event) => this.#hear(event.data as TabMessage);
    void this.#campaign(this.#ports.locks, this.#ended.signal);
    this.#watchLeader();
    this.#say({ type: 'want-snapshot' });
  }

  stop(): void {
    this.#ended?.abort();
    this.#ended = null;
    this.#resign();
    this.#silence?.cancel();
    this.#nudge?.cancel();
    this.#channel?.close();
    this.#channel = null;
    this.#following = null;
  }

  /** A fresh snapshot for every tab. */
  requestSnapshot(): void {
    if (this.#stream !== null) this.#stream.reconnect();
    else this.#say({ type: 'want-snapshot' });
  }

  /** See `EventStream.wake`; a follower leaves it to its leader. */
  wake(quietMs: number): void {
    this.#stream?.wake(quietMs);
  }

  /** Waits for the lock and leads while this tab holds it, again and again until this tab stops. */
  async #campaign(locks: Pick<LockManager, 'request'>, ended: AbortSignal): Promise<void> {
    let steal = false;
    while (!ended.aborted) {
      const patience = new AbortController();
      this.#patience = patience;
      const options = steal ? { steal: true } : { signal: AbortSignal.any([ended, patience.signal]) };
      try {
        await locks.request(this.#name, options, () => this.#lead(ended));
      } catch {
        // This tab stops, has lost patience with a silent leader, or was itself overthrown while it was frozen.
      }
      this.#resign();
      steal = patience.signal.aborted;
    }
  }

  /** Resolves when this tab stops: then the lock passes on. */
  #lead(ended: AbortSignal): Promise<void> {
    if (ended.aborted) return Promise.resolve();
    this.#silence?.cancel();
    this.#nudge?.cancel();
    this.#following = null;
    this.#stream = this.#ports.connect({
      onFrame: (frame) => {
        this.#say({ type: 'frame', leader: this.#tabId, frame });
        this.#handlers.onFrame(frame);
      },
      onStatus: (status) => {
        this.#say({ type: 'status', leader: this.#tabId, status });
        this.#handlers.onStatus(status);
      },
      onAlive: () => this.#sayAlive(),
    });
    this.#stream.start();
    return new Promise((resolve) => ended.addEventListener('abort', () => resolve(), { once: true }));
  }

  #resign(): void {
    this.#stream?.stop();
    this.#stream = null;
    if (this.#ended !== null) this.#watchLeader();
  }

  #say(message: TabMessage): void {
    this.#channel?.postMessage(message);
  }

  #sayAlive(): void {
    const now = this.#ports.clock.monotonicMs();
    if (now - this.#saidAliveMs < aliveEveryMs) return;
    this.#saidAliveMs = now;
    this.#say({ type: 'alive', leader: this.#tabId });
  }

  #hear(message: TabMessage): void {
    if (this.#ended === null) return;
    if (this.#stream !== null) {
      if (message.type === 'want-snapshot') this.#stream.reconnect();
      return;
    }
    if (message.type === 'want-snapshot') return;
    this.#watchLeader();
    if (message.type === 'status') this.#followStatus(message.leader, message.status);
    if (message.type === 'frame') this.#follow(message.leader, message.frame);
  }

  /** A leader that starts is the one to follow from now on; the last words of an overthrown one are not heard. */
  #followStatus(leader: string, status: StreamStatus): void {
    if (status.kind === 'connecting') this.#following = null;
    if (this.#following !== null && this.#following !== leader) return;
    this.#nudge?.cancel();
    if (status.kind === 'waiting') this.#nudge = this.#ports.clock.after(leaderPauseMaxMs, () => this.#say({ type: 'want-snapshot' }));
    this.#handlers.onStatus(status);
  }

  /** Only what comes after a snapshot of the same leader can be understood. */
  #follow(leader: string, frame: SseFrame): void {
    if (frame.event === 'snapshot') this.#following = leader;
    if (this.#following !== leader) return;
    if (frame.event === 'snapshot') this.#handlers.onStatus({ kind: 'open' });
    this.#handlers.onFrame(frame);
  }

  #watchLeader(): void {
    this.#silence?.cancel();
    if (this.#stream !== null) return;
    this.#silence = this.#ports.clock.after(leaderSilenceMaxMs, () => this.#patience?.abort());
  }
}
