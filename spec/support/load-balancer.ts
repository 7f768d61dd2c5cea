/**
 * Owns: one address in front of several servers, as a proxy or a Service has it: new connections go in turn to the servers whose /readyz says
 * that they are ready; open ones stay where they are.
 * A backend is looked at when a connection arrives and its last look is older than `lookEveryMs`, and whenever it refused one.
 */
import { once } from 'node:events';
import { type AddressInfo, createServer, connect as openSocket, type Server, type Socket } from 'node:net';

export interface Backend {
  readonly port: number;
  readonly opsPort: number;
}

const LOOK_EVERY_MS = 100;
const LOOK_MAX_MS = 2_000;
/** A client that comes while no server is ready waits so long for one. */
const NONE_READY_MAX_MS = 30_000;
const LOOK_AGAIN_MS = 25;

export class LoadBalancer {
  readonly #server: Server;
  readonly #backends = new Map<Backend, { ready: boolean; lookedAtMs: number }>();
  readonly #sockets = new Set<Socket>();
  #turn = 0;

  private constructor(server: Server) {
    this.#server = server;
    server.on('connection', (client) => void this.#accept(client));
  }

  static async open(): Promise<LoadBalancer> {
    const server = createServer({ pauseOnConnect: true }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new LoadBalancer(server);
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  add(backend: Backend): void {
    this.#backends.set(backend, { ready: false, lookedAtMs: Number.NEGATIVE_INFINITY });
  }

  remove(backend: Backend): void {
    this.#backends.delete(backend);
  }

  async close(): Promise<void> {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await once(this.#server, 'close');
  }

  async #accept(client: Socket): Promise<void> {
    this.#hold(client);
    for (const untilMs = performance.now() + NONE_READY_MAX_MS; performance.now() < untilMs && !client.destroyed; ) {
      const backend = await this.#pick();
      const server = backend && (await dial(backend.port));
      if (server) return this.#join(client, server);
      if (backend) this.#backends.set(backend, { ready: false, lookedAtMs: performance.now() });
      await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
    }
    client.destroy();
  }

  async #pick(): Promise<Backend | null> {
    await Promise.all([...this.#backends.keys()].map((backend) => this.#look(backend)));
    const ready = [...this.#backends].filter(([, { ready: is }]) => is).map(([backend]) => backend);
    return ready[this.#turn++ % ready.length] ?? null;
  }

  async #look(backend: Backend): Promise<void> {
    const known = this.#backends.get(backend);
    if (known === undefined || performance.now() - known.lookedAtMs < LOOK_EVERY_MS) return;
    known.lookedAtMs = performance.now();
    known.ready = await fetch(`http://127.0.0.1:${backend.opsPort}/readyz`, { signal: AbortSignal.timeout(LOOK_MAX_MS) }).then(
      (answer) => answer.ok,
      () => false,
    );
  }

  #join(client: Socket, server: Socket): void {
    this.#hold(server);
    client.pipe(server);
    server.pipe(client);
    client.on('close', () => server.destroy());
    server.on('close', () => client.destroy());
    client.resume();
  }

  #hold(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => undefined); // 'close' follows
    socket.on('close', () => this.#sockets.delete(socket));
  }
}

function dial(port: number): Promise<Socket | null> {
  return new Promise((resolve) => {
    const socket = openSocket({ host: '127.0.0.1', port });
    socket.once('connect', () => resolve(socket));
    socket.once('error', () => resolve(null));
  });
}
