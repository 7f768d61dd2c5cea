/**
 * The command `heph` as a process, against a running server.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

const command = path.join(fileURLToPath(new URL('../..', import.meta.url)), 'bin/heph');

/** Runs `heph …`; rejects nothing: its exit code and its words are the result. */
export async function heph(
  opsPort: number,
  args: readonly string[],
  given: string | { readonly input?: string; readonly env?: Readonly<Record<string, string>> } = '',
): Promise<{ code: number; said: string }> {
  const { input = '', env = {} } = typeof given === 'string' ? { input: given } : given;
  const child: ChildProcess = spawn(command, args, { env: { ...process.env, HEPH_OPS_PORT: String(opsPort), ...env } });
  child.stdin?.end(input);
  const [out, err, [code]] = await Promise.all([text(child.stdout as never), text(child.stderr as never), once(child, 'exit')]);
  return { code: code as number, said: out + err };
}
