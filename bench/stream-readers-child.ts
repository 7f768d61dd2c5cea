/**
 * Owns: many readers of the event stream in a process of its own, over plain sockets, so that reading costs as little as it can. A partial
 * answer carries a mark with its number; the moment at which a reader has it is noted.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { nowMs } from './support/clock.ts';
import { serveParent } from './support/parent.ts';

/** When a reader had the partial answer of that number (support/clock.ts). */
export type Received = readonly [number: number, atMs: number];

export interface ReadersToOpen {
  readonly port: number;
  readonly count: number;
  /** They connect and never take a byte. */
  readonly deaf: boolean;
}

const OPEN_AT_ONCE = 50;
const MARK = /<(\d+)>/g;
const REQUEST = 'GET /workspaces/home/mentor/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n';

const sockets = new Set<Socket>();
const received: Received[] = [];

function hear(socket: Socket): void {
  let rest = '';
  socket.on('data', (chunk) => {
    const atMs = nowMs();
    const text = rest + chunk.toString('latin1');
    for (const [, number] of text.matchAll(MARK)) received.push([Number(number), atMs]);
    const open = text.lastIndexOf('<');
    rest = open !== -1 && text.indexOf('>', open) === -1 ? text.slice(open) : '';
  });
}

async function open(port: number, deaf: boolean): Promise<void> {
  const socket = connect(port, '127.0.0.1');
  sockets.add(socket);
  socket.on('error', () => socket.destroy());
  socket.on('close', () => sockets.delete(socket));
  await once(socket, 'connect');
  socket.write(REQUEST);
  if (deaf) return void socket.pause();
  const [head] = (await once(socket, 'data')) as [Buffer];
  if (!head.toString('latin1').startsWith('HTTP/1.1 200')) throw new Error(`a stream was refused: ${head.toString('latin1').slice(0, 80)}`);
  hear(socket);
}

const commands = {
  open: async ({ port, count, deaf }: ReadersToOpen): Promise<void> => {
    let left = count;
    const lane = async (): Promise<void> => {
      while (left-- > 0) await open(port, deaf);
    };
    await Promise.all(Array.from({ length: OPEN_AT_ONCE }, lane));
  },
  /** Readers that are still connected. */
  connected: (): number => sockets.size,
  collect: (): Received[] => received.splice(0),
  close: (): void => {
    for (const socket of sockets) socket.destroy();
  },
  stop: (): void => {
    for (const socket of sockets) socket.destroy();
  },
};
export type ReaderCommands = typeof commands;

serveParent(commands, null);
