/**
 * Owns: what the gateway is compared with: the least that a proxy can do. It passes a request to the provider and the answer back, with
 * Node's own streams and kept connections, and looks at nothing.
 */
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream';
import { serveParent } from './support/parent.ts';

const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });
let providerPort = 0;

function pass(incoming: IncomingMessage, response: ServerResponse): void {
  const { method, url, headers } = incoming;
  const outgoing = request({ agent, host: '127.0.0.1', port: providerPort, method, path: url, headers }, (answered) => {
    response.writeHead(answered.statusCode ?? 502, answered.headers);
    pipeline(answered, response, () => {}); // a reader that hangs up ends both
  });
  pipeline(incoming, outgoing, () => {}); // likewise
}

const server = createServer(pass);
const commands = {
  set: (port: number): void => {
    providerPort = port;
  },
  stop: (): void => {
    server.closeAllConnections();
    server.close();
    agent.destroy();
  },
};
export type PipeCommands = typeof commands;

server.listen(0, '127.0.0.1', () => serveParent(commands, { port: (server.address() as AddressInfo).port }));
