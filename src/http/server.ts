/**
 * Owns: one HTTP server: its timeouts and bounds, start on a port, graceful stop. Every timeout is set here; none is left at its default.
 * Streams, parked pulls and model calls are long answers, which no timeout here cuts: `requestTimeoutMs` bounds the arrival of a request.
 */
import http from 'node:http';
import type net from 'node:net';
import type { AddressInfo } from 'node:net';
import { RuntimeFault } from '../kernel/faults.ts';
import { uuidv7 } from '../kernel/ids.ts';
import { toProblem } from './problem.ts';

export interface HttpListener {
  /** Listens; resolves to the real port (`port` 0 picks a free one). Rejects with an Error that names the variable to change. */
  start(host: string, port: number): Promise<number>;
  /** Takes no new connection, lets requests finish for at most `graceMs`, then cuts what is left. */
  stop(graceMs: number): Promise<void>;
  /** For servers of another kind. */
  callback(): http.RequestListener;
  /** Serves the connections of another server too, for example of a unix socket. */
  attach(server: net.Server): void;
}

export interface ServerOptions {
  readonly callback: http.RequestListener;
  /** The environment variable that sets the port, for the text of an error. */
  readonly portVariable: string;
  readonly connectionsMax: number;
  /** A connection on which nothing moves for this long is cut. Event streams switch it off for themselves. */
  readonly idleTimeoutMs: number;
  /** Called when the stop begins, before connections are waited for. */
  readonly onStop?: () => void;
}

const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 30_000;
/** Longer than the idle time of common load balancers (60 s), so that they close first. */
const KEEP_ALIVE_TIMEOUT_MS = 65_000;
const CHECK_EVERY_MS = 5_000;
const HEADERS_MAX_BYTES = 16 * 1024;
const CLOSE_IDLE_EVERY_MS = 50;

export function createServer(options: ServerOptions): HttpListener {
  let stopping = false;
  const handle: http.RequestListener = (request, response) => {
    if (stopping) response.setHeader('Connection', 'close');
    options.callback(request, response);
  };
  const server = http.createServer({
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    connectionsCheckingInterval: CHECK_EVERY_MS,
    maxHeaderSize: HEADERS_MAX_BYTES,
    noDelay: true,
  });
  server.timeout = options.idleTimeoutMs;
  server.maxConnections = options.connectionsMax;
  server.on('request', handle);
  server.on('checkContinue', handle); // body.ts says "continue" when it wants the body
  server.on('clientError', refuseBrokenRequest);
  const sockets = new Set<net.Socket>();
  server.on('connection', (socket: net.Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  return {
    start: (host, port) => listen(server, { host, port }, options.portVariable),
    async stop(graceMs) {
      stopping = true;
      server.close();
      options.onStop?.();
      await drained(server, sockets, graceMs);
    },
    callback: () => handle,
    attach: (other) => void other.on('connection', (socket) => server.emit('connection', socket)),
  };
}

function listen(server: http.Server, at: { host: string; port: number }, portVariable: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException) => reject(listenError(error, at, portVariable));
    server.once('error', failed);
    server.listen(at, () => {
      server.off('error', failed);
      resolve((server.address() as AddressInfo).port);
    });
  });
}

function listenError(error: NodeJS.ErrnoException, at: { host: string; port: number }, portVariable: string): Error {
  const known: Readonly<Record<string, string>> = {
    EADDRINUSE: `Port ${at.port} on ${at.host} is in use by another program. Stop that program, or set ${portVariable} to a free port.`,
    EACCES: `Port ${at.port} on ${at.host} may not be opened by this user. Set ${portVariable} to a port above 1023.`,
    EADDRNOTAVAIL: `${at.host} is no address of this machine, so port ${at.port} (${portVariable}) cannot be opened on it.`,
  };
  const text = known[error.code ?? ''] ?? `Port ${at.port} on ${at.host} cannot be opened (${error.code}). Check ${portVariable}.`;
  return new Error(text, { cause: error });
}

/** Resolves when every connection is gone; after `graceMs` the rest is cut. */
function drained(server: http.Server, sockets: ReadonlySet<net.Socket>, graceMs: number): Promise<void> {
  return new Promise((resolve) => {
    const deadlineMs = performance.now() + graceMs;
    const look = () => {
      server.closeIdleConnections();
      if (performance.now() >= deadlineMs) for (const socket of sockets) socket.destroy();
      if (sockets.size > 0) return;
      clearInterval(timer);
      resolve();
    };
    const timer = setInterval(look, CLOSE_IDLE_EVERY_MS);
    look();
  });
}

/** What is no HTTP, or comes too slowly or with too many headers, never reaches the app. */
function refuseBrokenRequest(error: NodeJS.ErrnoException, socket: net.Socket | import('node:stream').Duplex): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const status = error.code === 'HPE_HEADER_OVERFLOW' ? 431 : error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 408 : 400;
  const fault = new RuntimeFault('BAD_REQUEST', 'The server could not read this as an HTTP request. Check the client.');
  const body = JSON.stringify({ ...toProblem(fault, uuidv7<'request'>()), status });
  const head = `HTTP/1.1 ${status} ${http.STATUS_CODES[status]}\r\nContent-Type: application/problem+json\r\nConnection: close`;
  socket.end(`${head}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
}
