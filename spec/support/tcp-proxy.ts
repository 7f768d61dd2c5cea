/**
 * Owns: a wire between a client and a real server that a spec can cut: forward what comes, refuse (accept and hang up), or say nothing
 * (connections stay open and no byte passes, as after a cable was pulled).
 */
import { once } from 'node:events';
import { type AddressInfo, createServer, connect as openSocket, type Server, type Socket } from 'node:net';

export type WireMode = 'forward' | 'refuse' | 'silent';

export class TcpProxy {
  mode: WireMode = 'forward';
  /** Connections that were accepted, in any mode. */
  attempts = 0;
  readonly #server: Server;
  readonly #target: { readonly host: string; readonly port: number };
  readonly #sockets = new Set<Socket>();

  private constructor(server: Server, target: { readonly host: string; readonly port: number }) {
    this.#server = server;
    this.#target = target;
    server.on('connection', (client) => this.#accept(client));
  }

  static async open(targetUrl: string): Promise<TcpProxy> {
    const { hostname, port } = new URL(targetUrl);
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new TcpProxy(server, { host: hostname, port: Number(port) });
  }

  /** The same url, through the wire. */
  url(targetUrl: string): string {
    const url = new URL(targetUrl);
    url.hostname = '127.0.0.1';
    url.port = String((this.#server.address() as AddressInfo).port);
    return url.toString();
  }

  /** Ends every connection that passes now. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async close(): Promise<void> {
    this.#server.close();
    this.cut();
    await once(this.#server, 'close');
  }

  #accept(client: Socket): void {
    this.attempts += 1;
    if (this.mode === 'refuse') {
      client.destroy();
      return;
    }
    const server = openSocket(this.#target);
    this.#pass(client, server);
    this.#pass(server, client);
  }

  #pass(from: Socket, to: Socket): void {
    this.#sockets.add(from);
    from.on('data', (chunk) => this.mode === 'forward' && to.write(chunk));
    from.on('error', () => undefined); // 'close' follows
    from.on('close', () => {
      this.#sockets.delete(from);
      to.destroy();
    });
  }
}
