/**
 * Owns: a model that answers at once, over HTTP, in a process of its own, and notes when each request reached it.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { nowMs } from './support/clock.ts';
import { serveParent } from './support/parent.ts';
import { ANSWER_PIECES, lastQuestionIn } from './support/question.ts';

/** When a model request arrived: the number of its question and the moment (support/clock.ts). */
export type Arrival = readonly [question: number, atMs: number];

const event = (members: object): string =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 0, model: 'bench', ...members })}\n\n`;
const ANSWER = Buffer.from(
  [
    ...ANSWER_PIECES.map((content) => event({ choices: [{ index: 0, delta: { content }, finish_reason: null }] })),
    event({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }),
    event({ choices: [], usage: { prompt_tokens: 100, completion_tokens: 120, total_tokens: 220 } }),
    'data: [DONE]\n\n',
  ].join(''),
);

const arrivals: Arrival[] = [];

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const atMs = nowMs();
  const chunks = await Array.fromAsync(request as AsyncIterable<Buffer>);
  arrivals.push([lastQuestionIn(Buffer.concat(chunks).toString('utf8')), atMs]);
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.end(ANSWER);
}

const server = createServer((request, response) => void answer(request, response).catch(() => response.destroy()));
const commands = {
  /** What has arrived since the last time. */
  collect: (): Arrival[] => arrivals.splice(0),
  stop: (): void => {
    server.closeAllConnections();
    server.close();
  },
};
export type ProviderCommands = typeof commands;

server.listen(0, '127.0.0.1', () => serveParent(commands, { port: (server.address() as AddressInfo).port }));
