/**
 * Owns: asking a remote what it has, and where it may be asked. A host name is looked up once, judged, and git connects to that very answer
 * (`http.curloptResolve`), so that a name cannot lead elsewhere in between; redirects are off for the same reason.
 */
import { isIP } from 'node:net';
import type { Git, GitResult } from './git-command.ts';
import { isRefName } from './ref-names.ts';

/** Looks a host name up. Rejects when it is unknown, and with an error named AddressRefused when it leads where nothing may be called. */
export type ResolveHost = (hostname: string) => Promise<readonly string[]>;

export interface RemoteFacts {
  /** Where HEAD points; null: the repository is empty, or HEAD names no branch. */
  readonly headBranch: string | null;
  /** Newest first, at most REQUESTS_MAX. Those that are open where the host tells (it publishes their merge), else all. */
  readonly requests: readonly { readonly number: number; readonly ref: string }[];
}

/** Why a remote does not do. A sentence without its address and without its words. */
export interface RemoteFailure {
  readonly kind: 'failed';
  readonly reason: 'address' | 'name' | 'login' | 'missing' | 'timeout' | 'tls' | 'unreachable' | 'unknown';
  readonly why: string;
}

export type RemoteReply = { readonly kind: 'answered'; readonly facts: RemoteFacts } | RemoteFailure;

/** Requests of one repository that are known. */
export const REQUESTS_MAX = 10;

export interface RemoteCall {
  readonly url: URL;
  readonly cwd: string;
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
}

export class Remotes {
  readonly #git: Git;
  readonly #resolveHost: ResolveHost;

  constructor(git: Git, resolveHost: ResolveHost) {
    this.#git = git;
    this.#resolveHost = resolveHost;
  }

  /** What HEAD is, and which requests there are. */
  async ask(call: RemoteCall): Promise<RemoteReply> {
    const wanted = ['HEAD', 'refs/pull/*/head', 'refs/pull/*/merge', 'refs/merge-requests/*/head', 'refs/merge-requests/*/merge'];
    const reply = await this.#call(['ls-remote', '--symref', '--', call.url.href, ...wanted], call);
    return reply.kind === 'failed' ? reply : { kind: 'answered', facts: readFacts(reply.stdout.toString('utf8')) };
  }

  /** Fetches into the repository in `cwd`. null: done. */
  async fetch(refspecs: readonly string[], { prune, ...call }: RemoteCall & { readonly prune: boolean }): Promise<RemoteFailure | null> {
    const options = ['--quiet', '--force', '--no-tags', '--no-write-fetch-head', '--no-auto-gc', ...(prune ? ['--prune'] : [])];
    const reply = await this.#call(['--git-dir=.', 'fetch', ...options, '--', call.url.href, ...refspecs], call);
    return reply.kind === 'failed' ? reply : null;
  }

  async #call(args: readonly string[], call: RemoteCall): Promise<{ readonly kind: 'done'; readonly stdout: Buffer } | RemoteFailure> {
    const pin = await this.#pin(call.url);
    if (!Array.isArray(pin)) return pin as RemoteFailure;
    const { cwd, signal, timeoutMs } = call;
    const result = await this.#git.run(args, { cwd, signal, timeoutMs, config: pin });
    return result.how === 'exited' && result.code === 0 ? { kind: 'done', stdout: result.stdout } : failure(result);
  }

  /** The setting that makes git connect to the addresses that were judged. */
  async #pin(url: URL): Promise<readonly string[] | RemoteFailure> {
    if (url.protocol === 'file:') return [];
    const host = url.hostname.replace(/^\[|\]$/g, '');
    try {
      const addresses = await this.#resolveHost(host);
      if (isIP(host) !== 0) return [];
      const list = addresses.map((address) => (isIP(address) === 6 ? `[${address}]` : address)).join(',');
      return [`http.curloptResolve=${host}:${url.port || 443}:${list}`];
    } catch (error) {
      const refused = error instanceof Error && error.name === 'AddressRefused';
      return refused
        ? { kind: 'failed', reason: 'address', why: 'Its host leads to an address that may not be called from here.' }
        : { kind: 'failed', reason: 'name', why: 'Its host name is not known.' };
    }
  }
}

/** git's own words, to a reason. It speaks English here (LC_ALL=C). */
const REASONS: readonly (readonly [RegExp, RemoteFailure['reason'], string])[] = [
  [
    /terminal prompts disabled|Authentication failed|could not read (Username|Password)|error: 40[13]/i,
    'login',
    'It needs a login, or does not exist.',
  ],
  [/SSL|certificate|TLS/i, 'tls', 'Its certificate is not accepted.'],
  [
    /not found|does not appear to be a git repository|does not exist|not a git repository|error: 404/i,
    'missing',
    'There is no repository at its address.',
  ],
  [/Could not resolve host/i, 'name', 'Its host name is not known.'],
  [/too slow|Operation timed out/i, 'timeout', 'It answers too slowly.'],
  [/Failed to connect|Couldn't connect|unable to access|Connection (refused|reset)/i, 'unreachable', 'It cannot be reached.'],
];

function failure({ how, stderr, code }: GitResult): RemoteFailure {
  if (how === 'timeout') return { kind: 'failed', reason: 'timeout', why: 'It did not answer in time.' };
  if (how === 'missing') return { kind: 'failed', reason: 'unknown', why: 'git is not installed on this server.' };
  const known = REASONS.find(([words]) => words.test(stderr));
  if (known) return { kind: 'failed', reason: known[1], why: known[2] };
  return { kind: 'failed', reason: 'unknown', why: `git could not read it (exit code ${code}).` };
}

function readFacts(listing: string): RemoteFacts {
  const lines = listing.split('\n');
  const head = lines.map((line) => /^ref: refs\/heads\/(.+)\tHEAD$/.exec(line)?.[1]).find((branch) => branch !== undefined);
  const refs = lines.map((line) => line.split('\t')[1] ?? '');
  const numbered = (what: 'head' | 'merge') =>
    refs.flatMap((ref) => {
      const parts = /^refs\/(pull|merge-requests)\/([1-9]\d{0,8})\/(head|merge)$/.exec(ref);
      return parts?.[3] === what ? [{ number: Number(parts[2]), ref: `refs/${parts[1]}/${parts[2]}/head` }] : [];
    });
  const open = numbered('merge');
  const requests = (open.length > 0 ? open : numbered('head')).sort((a, b) => b.number - a.number).slice(0, REQUESTS_MAX);
  return { headBranch: head !== undefined && isRefName(head) ? head : null, requests };
}
