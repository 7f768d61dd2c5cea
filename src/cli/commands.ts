/**
 * Owns: the admin commands: what each is called, which options it takes and which request it makes. A table without I/O.
 */
import type { BindingInput, BudgetInput, ConnectionChange, ConnectionInput, MemberChange, ModelInput, Price } from '../contract/admin.ts';
import type { LlmApi } from '../contract/agent.ts';
import type { RepositoryInput } from '../contract/repositories.ts';

/** What is wrong with a command line, for the person who typed it. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

export interface AdminRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Below `/admin/api/`, with its query. */
  readonly path: string;
  readonly body?: unknown;
  /** The member of the answer that is a list to print. */
  readonly list?: string;
  /** The answer as text. */
  readonly show?: (answer: unknown) => string;
  /** Said when it is done. */
  readonly done?: string;
  /** Longer than other requests may take. */
  readonly timeoutMs?: number;
}

export interface Given {
  readonly positionals: readonly string[];
  readonly options: Readonly<Record<string, string | boolean | undefined>>;
  /** The key from standard input. */
  readonly readKey: () => Promise<string>;
}

export interface Command {
  readonly words: string;
  /** Of the arguments and options, for the help. */
  readonly usage: string;
  readonly about: string;
  /** Options with a value; `flags` have none. */
  readonly options: readonly string[];
  readonly flags?: readonly string[];
  /** How many arguments follow the words. */
  readonly arguments: number;
  request(given: Given): AdminRequest | Promise<AdminRequest>;
}

const PRICES = ['input-price', 'output-price', 'cache-read-price', 'cache-write-price', 'no-charge'];
const PRICE_USAGE = '(--input-price N --output-price N [--cache-read-price N] [--cache-write-price N] | --no-charge NOTE | --unpriced)';
const UNIT_MS = { s: 1_000, m: 60_000 } as const;

/** The value of an option that must be there. Throws a UsageError. */
export function text({ options }: Given, name: string): string {
  const value = options[name];
  if (typeof value === 'string' && value !== '') return value;
  throw new UsageError(`--${name} is missing.`);
}

function wholeNumber(given: Given, name: string): number {
  const value = text(given, name);
  if (/^\d{1,9}$/.test(value)) return Number(value);
  throw new UsageError(`--${name} must be a whole number.`);
}

/** The value of an option; undefined when it is not there. */
export function optional({ options }: Given, name: string): string | undefined {
  const value = options[name];
  return typeof value === 'string' ? value : undefined;
}

function priceOf(given: Given): Price {
  const note = optional(given, 'no-charge');
  const unpriced = given.options['unpriced'] === true;
  const priced = PRICES.some((name) => name !== 'no-charge' && given.options[name] !== undefined);
  if ([note !== undefined, unpriced, priced].filter(Boolean).length !== 1)
    throw new UsageError(`Say what it costs, in one way: ${PRICE_USAGE}.`);
  if (note !== undefined) return { kind: 'NO_CHARGE', note };
  if (unpriced) return { kind: 'UNPRICED' };
  const [cacheRead, cacheWrite] = [optional(given, 'cache-read-price'), optional(given, 'cache-write-price')];
  const cached = { ...(cacheRead === undefined ? {} : { cacheRead }), ...(cacheWrite === undefined ? {} : { cacheWrite }) };
  return { kind: 'PRICED', input: text(given, 'input-price'), output: text(given, 'output-price'), ...cached };
}

function timeoutMs(given: Given): { timeoutMs?: number } {
  const value = optional(given, 'timeout');
  if (value === undefined) return {};
  const parts = /^(\d{1,6})(s|m)$/.exec(value);
  if (!parts) throw new UsageError('--timeout must be a duration such as 90s or 5m.');
  return { timeoutMs: Number(parts[1]) * UNIT_MS[parts[2] as keyof typeof UNIT_MS] };
}

const name = ({ positionals }: Given) => positionals[0] as string;
const workspace = (given: Given) => optional(given, 'workspace') ?? null;
const where = (given: Given) => (workspace(given) === null ? 'every workspace without its own' : `the workspace ${workspace(given)}`);

const list = (words: string, about: string, path: string): Command => ({
  ...{ words, about, usage: '', options: [], arguments: 0 },
  request: () => ({ method: 'GET', path, list: path }),
});

/** A list that options narrow down: each one that is given goes into the query. */
const narrowed = (
  words: string,
  about: string,
  { path, usage, options }: { path: string; usage: string; options: readonly string[] },
): Command => ({
  ...{ words, usage, about, options, arguments: 0 },
  request(given) {
    const query = options.flatMap((option) => (optional(given, option) === undefined ? [] : [[option, optional(given, option) as string]]));
    return { method: 'GET', path: query.length === 0 ? path : `${path}?${new URLSearchParams(query)}`, list: path };
  },
});

const switched = (word: 'disable' | 'enable', about: string): Command => ({
  ...{ words: `connection ${word}`, usage: 'NAME', about, options: [], arguments: 1 },
  request: (given) => ({
    method: 'PATCH',
    path: `connections/${encodeURIComponent(name(given))}`,
    body: { disabled: word === 'disable' } satisfies ConnectionChange,
    done: `The connection ${name(given)} is ${word}d.`,
  }),
});

export const COMMANDS: readonly Command[] = [
  list('connection list', 'every connection, and whether it is paused or disabled', 'connections'),
  {
    words: 'connection add',
    usage: 'NAME --api openai-completions|openai-responses|anthropic-messages --base-url URL [--key-stdin]',
    about: 'a provider; its key is read from standard input',
    ...{ options: ['api', 'base-url'], flags: ['key-stdin'], arguments: 1 },
    async request(given) {
      const key = given.options['key-stdin'] === true ? { apiKey: await given.readKey() } : {};
      const body: ConnectionInput = { name: name(given), api: text(given, 'api') as LlmApi, baseUrl: text(given, 'base-url'), ...key };
      return { method: 'POST', path: 'connections', body, done: `The connection ${name(given)} is added. Next: heph model add.` };
    },
  },
  {
    ...{ words: 'connection key', usage: 'NAME', about: 'replace its key by the one on standard input', options: [], arguments: 1 },
    request: async (given) => ({
      method: 'PATCH',
      path: `connections/${encodeURIComponent(name(given))}`,
      body: { apiKey: await given.readKey() } satisfies ConnectionChange,
      done: `The connection ${name(given)} has a new key, from the next model call on.`,
    }),
  },
  switched('disable', 'call it no more, also for turns that run'),
  switched('enable', 'call it again'),
  list('model list', 'every model with its price', 'models'),
  {
    words: 'model add',
    usage: `NAME --connection NAME --provider-model NAME --context N --output N ${PRICE_USAGE}`,
    about: 'a model of a connection; prices are per million tokens',
    ...{ options: ['connection', 'provider-model', 'context', 'output', ...PRICES], flags: ['unpriced'], arguments: 1 },
    request(given) {
      const body: ModelInput = {
        ...{ name: name(given), connection: text(given, 'connection'), providerModel: text(given, 'provider-model') },
        ...{ contextTokens: wholeNumber(given, 'context'), outputTokens: wholeNumber(given, 'output'), price: priceOf(given) },
      };
      return { method: 'POST', path: 'models', body, done: `The model ${name(given)} is added. Next: heph model bind ${name(given)}.` };
    },
  },
  {
    ...{ words: 'model price', usage: `NAME ${PRICE_USAGE}`, about: 'what it costs, from the next turn on' },
    ...{ options: PRICES, flags: ['unpriced'], arguments: 1 },
    request: (given) => ({
      method: 'PATCH',
      path: `models/${encodeURIComponent(name(given))}`,
      body: { price: priceOf(given) },
      done: `The model ${name(given)} has its new price, from the next turn on.`,
    }),
  },
  list('model bindings', 'which model answers where', 'bindings'),
  {
    words: 'model bind',
    usage: 'NAME [--workspace SLUG] [--timeout 5m]',
    about: 'let it answer, everywhere or in one workspace; --timeout is the deadline of a turn, at most 15m',
    ...{ options: ['workspace', 'timeout'], arguments: 1 },
    request: (given) => ({
      method: 'PUT',
      path: 'bindings',
      body: { workspace: workspace(given), model: name(given), ...timeoutMs(given) } satisfies Partial<BindingInput>,
      done: `The model ${name(given)} answers in ${where(given)}, from the next turn on.`,
    }),
  },
  {
    ...{ words: 'model unbind', usage: '[--workspace SLUG]', about: 'take a binding back', options: ['workspace'], arguments: 0 },
    request: (given) => ({
      method: 'PUT',
      path: 'bindings',
      body: { workspace: workspace(given), model: null } satisfies Partial<BindingInput>,
      done: `The binding of ${where(given)} is taken back.`,
    }),
  },
  list('model budgets', 'every budget, and what was spent this month (UTC)', 'budgets'),
  {
    words: 'model budget',
    usage: 'LIMIT|none [--workspace SLUG]',
    about: 'what may be spent in a calendar month, by the installation or by one workspace',
    ...{ options: ['workspace'], arguments: 1 },
    request: (given) => ({
      method: 'PUT',
      path: 'budgets',
      body: { workspace: workspace(given), monthlyLimit: name(given) === 'none' ? null : name(given) } satisfies BudgetInput,
      done: 'The budget is set. heph model budgets lists it.',
    }),
  },
  {
    words: 'member ai',
    usage: 'ACCOUNT on|off [--workspace SLUG]',
    about: 'whether an AI model may work for a member, from the next turn that starts; the member may choose it too',
    ...{ options: ['workspace'], arguments: 2 },
    request(given) {
      const [account = '', choice = ''] = given.positionals;
      if (choice !== 'on' && choice !== 'off') throw new UsageError('Say on or off.');
      return {
        method: 'PATCH',
        path: `members/${encodeURIComponent(account)}`,
        body: { workspace: workspace(given), aiAllowed: choice === 'on' } satisfies MemberChange,
        done: `AI is switched ${choice} for ${account}.`,
      };
    },
  },
  narrowed('usage', 'what each purse spent in a calendar month (UTC), and how many calls are of unknown cost', {
    ...{ path: 'usage', usage: '[--month YYYY-MM] [--workspace SLUG]', options: ['month', 'workspace'] },
  }),
  {
    ...{ words: 'calls', usage: '--turn ID', about: 'every model call of a turn', options: ['turn'], arguments: 0 },
    request: (given) => ({ method: 'GET', path: `calls?${new URLSearchParams({ turn: text(given, 'turn') })}`, list: 'calls' }),
  },
  list('repo list', 'every repository that turns can load', 'repositories'),
  {
    words: 'repo add',
    usage: 'CLONE-URL [--name NAME] [--workspace SLUG] [--branch NAME]',
    about: 'let turns load a repository that needs no login; it is asked once, at once',
    ...{ options: ['name', 'workspace', 'branch'], arguments: 1 },
    request(given) {
      const [called, branch] = [optional(given, 'name') ?? null, optional(given, 'branch') ?? null];
      const body: RepositoryInput = { cloneUrl: name(given), name: called, workspace: workspace(given), branch };
      return {
        method: 'POST',
        path: 'repositories',
        body,
        done: 'The repository is added: turns can load it. heph repo list shows its name.',
      };
    },
  },
  {
    ...{ words: 'repo remove', usage: 'NAME [--workspace SLUG]', about: 'take it back, and its mirror on this server' },
    ...{ options: ['workspace'], arguments: 1 },
    request(given) {
      const slug = workspace(given);
      const query = slug === null ? '' : `?workspace=${encodeURIComponent(slug)}`;
      return {
        method: 'DELETE',
        path: `repositories/${encodeURIComponent(name(given))}${query}`,
        done: `The repository ${name(given)} is removed. Turns that have loaded it keep their copy until they end.`,
      };
    },
  },
];
