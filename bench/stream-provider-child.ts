/**
 * Owns: a model behind HTTP whose streams have a size and a pace, in a process of its own.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { serveParent } from './support/parent.ts';

/** The shape of every answer from now on. */
export interface StreamShape {
  readonly events: number;
  /** Events that leave in one write. */
  readonly eventsPerWrite: number;
  /** Pause between writes, milliseconds; 0: as fast as they are taken. */
  readonly everyMs: number;
}

const event = (members: object): string =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 0, model: 'bench', ...members })}\n\n`;
/** About the size of a real delta. */
const DELTA = event({ choices: [{ index: 0, delta: { content: 'a few words of it ' }, finish_reason: null }] });
const LAST = [
  event({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }),
  event({ choices: [], usage: { prompt_tokens: 100, completion_tokens: 120, total_tokens: 220 } }),
  'data: [DONE]\n\n',
].join('');

let shape: StreamShape = { events: 1, eventsPerWrite: 1, everyMs: 0 };

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  for await (const _chunk of request); // the question does not matter
  const { events, eventsPerWrite, everyMs } = shape;
  const write = Buffer.from(DELTA.repeat(eventsPerWrite));
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (let left = events; left > 0; left -= eventsPerWrite) {
    if (!response.write(write)) await once(response, 'drain');
    if (everyMs > 0) await sleep(everyMs);
  }
  response.end(LAST);
}

const server = createServer((request, response) => void answer(request, response).catch(() => response.destroy()));
const commands = {
  set: (given: StreamShape): void => {
    shape = given;
  },
  stop: (): void => {
    server.closeAllConnections();
    server.close();
  },
};
export type StreamProviderCommands = typeof commands;

server.listen(0, '127.0.0.1', () => serveParent(commands, { port: (server.address() as AddressInfo).port }));
