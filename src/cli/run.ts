/**
 * Owns: running one admin command: its arguments, its request to the running server, what is printed.
 * Does not own: which commands there are (commands.ts, people-commands.ts, slack-commands.ts, ops-commands.ts, desk-commands.ts).
 */
import { parseArgs } from 'node:util';
import { type AdminRequest, type Command, COMMANDS as MODEL_COMMANDS, UsageError } from './commands.ts';
import { DESK_COMMANDS } from './desk-commands.ts';
import { OPS_COMMANDS } from './ops-commands.ts';
import { PEOPLE_COMMANDS } from './people-commands.ts';
import { SLACK_COMMANDS } from './slack-commands.ts';
import { table } from './table.ts';

const COMMANDS: readonly Command[] = [...MODEL_COMMANDS, ...PEOPLE_COMMANDS, ...SLACK_COMMANDS, ...OPS_COMMANDS, ...DESK_COMMANDS];

export interface CliContext {
  /** The operations listener, for example `http://127.0.0.1:9090`. */
  readonly opsUrl: string;
  /** Says who the operator is: a token of a role, or the key that a server printed; null or absent: this machine is. */
  readonly token?: string | null;
  readonly readInput: () => Promise<string>;
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
}

const REQUEST_TIMEOUT_MS = 15_000;

/** True when these arguments are an admin command, right or wrong. */
export function isAdminCommand([group]: readonly string[]): boolean {
  return COMMANDS.some(({ words }) => words.split(' ')[0] === group);
}

/** The help of all admin commands. */
export function adminHelp(): string {
  return COMMANDS.map(({ words, usage, about }) => `  heph ${[words, usage].filter(Boolean).join(' ')}\n      ${about}\n`).join('');
}

/** Exit codes: 0 done, 1 the server refused or does not answer, 2 wrong arguments. */
export async function runAdminCommand(args: readonly string[], context: CliContext): Promise<number> {
  const command = COMMANDS.find(({ words }) => words.split(' ').every((word, at) => args[at] === word));
  try {
    if (!command) throw new UsageError(`There is no command "${args.slice(0, 2).join(' ')}".`);
    const request = await readRequest(command, args.slice(command.words.split(' ').length), context);
    return await send(request, context);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    const usage = command ? `  heph ${command.words} ${command.usage}\n` : adminHelp();
    context.err(`${error.message}\n\n${usage}`);
    return 2;
  }
}

async function readRequest(command: Command, args: readonly string[], { readInput }: CliContext): Promise<AdminRequest> {
  const { values, positionals } = parse(command, args);
  if (positionals.length !== command.arguments) throw new UsageError(`"${command.words}" takes ${command.arguments} argument(s).`);
  const readKey = async () => {
    const key = (await readInput()).trim();
    if (key === '') throw new UsageError('There is no key on standard input. Send it, for example: printf %s "$KEY" | heph …');
    return key;
  };
  return command.request({ positionals, options: values, readKey });
}

function parse({ options, flags = [] }: Command, args: readonly string[]) {
  const known = {
    ...Object.fromEntries(options.map((option) => [option, { type: 'string' as const }])),
    ...Object.fromEntries(flags.map((flag) => [flag, { type: 'boolean' as const }])),
  };
  try {
    return parseArgs({ args: [...args], options: known, allowPositionals: true });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

async function send(
  { method, path, body, list, show, done, timeoutMs }: AdminRequest,
  { opsUrl, token = null, out, err }: CliContext,
): Promise<number> {
  const headers = {
    ...(token === null ? {} : { authorization: `Bearer ${token}` }),
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
  };
  const sent = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
  let response: Response;
  try {
    response = await fetch(`${opsUrl}/admin/api/${path}`, { ...sent, signal: AbortSignal.timeout(timeoutMs ?? REQUEST_TIMEOUT_MS) });
  } catch {
    err(`No server answers at ${opsUrl}. Start Heph, or set HEPH_OPS_PORT (and HEPH_BIND) to where it is.\n`);
    return 1;
  }
  const text = await response.text();
  if (!response.ok) {
    err(`${refusal(text) ?? `The server answered ${response.status}.`}\n`);
    return 1;
  }
  if (list !== undefined) out(table(JSON.parse(text)[list]));
  if (show !== undefined) out(show(JSON.parse(text)));
  if (done !== undefined) out(`${done}\n`);
  return 0;
}

/** The sentence of a problem document. */
function refusal(text: string): string | null {
  try {
    const { detail } = JSON.parse(text);
    return typeof detail === 'string' ? detail : null;
  } catch {
    return null;
  }
}
