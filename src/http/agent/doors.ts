/**
 * Owns: unix sockets into the agent listener, one for each isolated runner. A socket serves only the sandbox that its runner was given to:
 * a credential that leaked into another sandbox is worth nothing there.
 * Does not own: which runner has which sandbox (sandbox-runner/host).
 */
import { once } from 'node:events';
import { chmodSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import type { SandboxId } from '../../kernel/ids.ts';
import type { HttpListener } from '../server.ts';

/** The sandbox that a socket belongs to; null: to none yet. */
type Owner = () => SandboxId | null;

const owners = new WeakMap<Socket, Owner>();
/** The folder is the sandbox user's alone; the server may be another user. */
const SOCKET_MODE = 0o666;

/** Serves the agent wire on a socket. Resolves with what closes it. */
export async function openDoor(listener: Pick<HttpListener, 'attach'>, path: string, owner: Owner): Promise<() => Promise<void>> {
  const sockets = new Set<Socket>();
  const server = createServer();
  server.on('connection', (socket) => {
    owners.set(socket, owner);
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  listener.attach(server);
  server.listen(path);
  await once(server, 'listening');
  chmodSync(path, SOCKET_MODE);
  return async () => {
    const closed = once(server, 'close');
    server.close();
    for (const socket of sockets) socket.destroy();
    await closed;
  };
}

/** Whether a call of this sandbox may come over this connection. TCP serves every sandbox. */
export function mayCome(socket: Socket, sandboxId: SandboxId): boolean {
  const owner = owners.get(socket);
  return owner === undefined || owner() === sandboxId;
}
