/**
 * Owns: a wire between a server and PostgreSQL that knows where one statement ends and which one it is. A spec arms a trap at a prepared
 * statement, before it reaches PostgreSQL or after it has committed and before its reply leaves, and decides there what becomes of it. The whole wire can
 * be stalled as well: nothing passes, nothing closes, and what was sent arrives late, when it heals.
 * Does not own: TLS; the connection's own start passes as it is.
 */
import { once } from 'node:events';
import { type AddressInfo, createServer, connect as openSocket, type Server, type Socket } from 'node:net';

/** `before`: the request has not reached PostgreSQL. `after`: it has committed, and its reply has not left. */
export type Point = 'before' | 'after';

export interface Hit {
  /** Of the connection's own backend in PostgreSQL. */
  readonly backendPid: number;
}

/** What becomes of the request, or of the reply: it passes, or the connection is reset in its place. */
export type Verdict = 'pass' | 'drop';

interface Trap {
  readonly statement: string;
  readonly point: Point;
  readonly spring: (hit: Hit) => Promise<Verdict> | Verdict;
}

export class PgWire {
  readonly #server: Server;
  readonly #target: { readonly host: string; readonly port: number };
  readonly #passages = new Set<Passage>();
  #trap: Trap | null = null;
  #stalled = false;

  private constructor(server: Server, target: { readonly host: string; readonly port: number }) {
    this.#server = server;
    this.#target = target;
    server.on('connection', (client) => this.#accept(client));
  }

  static async open(targetUrl: string): Promise<PgWire> {
    const { hostname, port } = new URL(targetUrl);
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new PgWire(server, { host: hostname, port: Number(port) });
  }

  /** The same url, through the wire. */
  url(targetUrl: string): string {
    const url = new URL(targetUrl);
    url.hostname = '127.0.0.1';
    url.port = String((this.#server.address() as AddressInfo).port);
    url.searchParams.set('sslmode', 'disable');
    return url.toString();
  }

  /** The next time that the statement comes to the point, and only then. */
  arm(statement: string, point: Point, spring: Trap['spring']): void {
    this.#trap = { statement, point, spring };
  }

  disarm(): void {
    this.#trap = null;
  }

  /** The trap, if it stands here; it is sprung once. */
  take(statement: string, point: Point): Trap['spring'] | null {
    if (this.#trap?.statement !== statement || this.#trap.point !== point) return null;
    const { spring } = this.#trap;
    this.#trap = null;
    return spring;
  }

  /** From now on no byte passes in either direction, and no connection is seen to close. */
  stall(): void {
    this.#stalled = true;
    for (const passage of this.#passages) passage.pause();
  }

  heal(): void {
    this.#stalled = false;
    for (const passage of this.#passages) passage.resume();
  }

  async close(): Promise<void> {
    this.#server.close();
    for (const passage of this.#passages) passage.cut();
    await once(this.#server, 'close');
  }

  #accept(client: Socket): void {
    const passage = new Passage(this, client, openSocket(this.#target));
    this.#passages.add(passage);
    client.once('close', () => this.#passages.delete(passage));
    if (this.#stalled) passage.pause();
  }
}

const SYNC = 0x53;
const QUERY = 0x51;
const BIND = 0x42;
const READY = 0x5a;
const KEY_DATA = 0x4b;
/** Parse, Bind, Describe, Execute, Close: the Sync after them ends the statement and commits it. */
const PARTS: ReadonlySet<number> = new Set(Buffer.from('PBDEC'));

/** Whole messages at the beginning of `bytes`, and what is left. A message is its type, its length and its body. */
function split(bytes: Buffer): { messages: Buffer[]; rest: Buffer } {
  const messages: Buffer[] = [];
  let at = 0;
  while (bytes.length - at >= 5) {
    const end = at + 1 + bytes.readUInt32BE(at + 1);
    if (end > bytes.length) break;
    messages.push(bytes.subarray(at, end));
    at = end;
  }
  return { messages, rest: bytes.subarray(at) };
}

/** The prepared statement that a Bind names: after the portal's name. */
function boundName(bind: Buffer): string {
  const portalEnd = bind.indexOf(0, 5);
  return bind.toString('utf8', portalEnd + 1, bind.indexOf(0, portalEnd + 1));
}

/** One connection, one statement at a time: a client of ours sends the next one when it has its reply. */
class Passage {
  readonly #wire: PgWire;
  readonly #client: Socket;
  readonly #server: Socket;
  #started = false;
  #fromClient: Buffer = Buffer.alloc(0);
  #fromServer: Buffer = Buffer.alloc(0);
  /** Messages of the statement that is being sent, up to its Sync. */
  #request: Buffer[] = [];
  #reply: Buffer[] = [];
  #name = '';
  #backendPid = 0;
  #paused = false;
  #held = false;

  constructor(wire: PgWire, client: Socket, server: Socket) {
    this.#wire = wire;
    this.#client = client;
    this.#server = server;
    client.on('data', (chunk) => void this.#ask(chunk));
    server.on('data', (chunk) => void this.#answer(chunk));
    for (const socket of [client, server]) {
      socket.on('error', () => undefined); // 'close' follows
      socket.on('close', () => this.cut());
    }
  }

  cut(): void {
    this.#client.destroy();
    this.#server.destroy();
  }

  pause(): void {
    this.#paused = true;
    this.#flow();
  }

  resume(): void {
    this.#paused = false;
    this.#flow();
  }

  #flow(): void {
    const stop = this.#paused || this.#held;
    for (const socket of [this.#client, this.#server]) {
      if (stop) socket.pause();
      else socket.resume();
    }
  }

  async #ask(chunk: Buffer): Promise<void> {
    if (!this.#started) {
      this.#started = true; // its length, its protocol, who asks: one message without a type
      this.#server.write(chunk);
      return;
    }
    const { messages, rest } = split(Buffer.concat([this.#fromClient, chunk]));
    this.#fromClient = rest;
    for (const message of messages) {
      const type = message[0] ?? 0;
      if (type === BIND) this.#name = boundName(message);
      if (type === QUERY) this.#name = '';
      this.#request.push(message);
      if (PARTS.has(type)) continue; // a statement is sent as a whole
      if (type === SYNC && !(await this.#passes('before'))) return;
      this.#send();
    }
  }

  #send(): void {
    for (const message of this.#request.splice(0)) this.#server.write(message);
  }

  async #answer(chunk: Buffer): Promise<void> {
    const { messages, rest } = split(Buffer.concat([this.#fromServer, chunk]));
    this.#fromServer = rest;
    for (const message of messages) {
      this.#reply.push(message);
      if (message[0] === KEY_DATA) this.#backendPid = message.readInt32BE(5);
      if (message[0] === READY) {
        if (!(await this.#passes('after'))) return;
        this.#name = '';
      }
    }
    // Nothing of a named statement's reply leaves before its commit; everything else at once.
    if (this.#name === '') for (const message of this.#reply.splice(0)) this.#client.write(message);
  }

  async #passes(point: Point): Promise<boolean> {
    const spring = this.#name === '' ? null : this.#wire.take(this.#name, point);
    if (!spring) return true;
    this.#held = true;
    this.#flow();
    const verdict = await spring({ backendPid: this.#backendPid });
    this.#held = false;
    if (verdict === 'drop') this.cut();
    else this.#flow();
    return verdict === 'pass';
  }
}
