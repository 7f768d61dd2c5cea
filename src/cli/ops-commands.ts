/**
 * Owns: the commands of an operator: what each is called, which options it takes, which request it makes and how its answer reads.
 */
import type { OperatorTurn, OperatorTurnPage, OperatorTurns, TurnAction } from '../contract/operators.ts';
import { ACT, act } from './act.ts';
import { type Command, type Given, optional } from './commands.ts';
import { table } from './table.ts';

const first = ({ positionals }: Given) => positionals[0] as string;
const SECOND_MS = 1_000;

/** `90000` -> `1m30s`; negative: over for so long. */
export function duration(ms: number | null): string {
  if (ms === null) return '-';
  const seconds = Math.round(Math.abs(ms) / SECOND_MS);
  const [h, m, s] = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60, seconds % 60];
  return `${ms < 0 ? '-' : ''}${h > 0 ? `${h}h` : ''}${h > 0 || m > 0 ? `${m}m` : ''}${s}s`;
}

function line(turn: OperatorTurn): Readonly<Record<string, unknown>> {
  const { waiting, stuck, host } = turn;
  const why = waiting === null ? null : waiting.behind === null ? waiting.why : `behind ${waiting.behind}`;
  return {
    ...{ id: turn.id, workspace: turn.workspace, state: turn.phase === 'ended' ? turn.status : turn.phase, attempt: turn.attempt },
    ...{ age: duration(turn.ageMs), waits: why, lease: duration(turn.leaseMs), deadline: duration(turn.deadlineMs) },
    ...{ server: host?.name ?? null, error: turn.error, stuck: stuck.length === 0 ? null : stuck.map(({ rule }) => rule).join(' ') },
  };
}

function showTurns(answer: unknown): string {
  const { turns, nextBefore } = answer as OperatorTurns;
  return table(turns.map(line)) + (nextBefore === null ? '' : `More: --before ${nextBefore}\n`);
}

function showTurn(answer: unknown): string {
  const { turn, timeline } = answer as OperatorTurnPage;
  const advice = turn.stuck.map(({ rule, text: what }) => `${rule}: ${what}\n`).join('');
  return `${table([line(turn)])}${advice}\n${table(timeline.map(({ at, what, detail }) => ({ at, what, detail })))}`;
}

const ofTurn = (action: TurnAction, about: string): Command => ({
  ...{ words: `turn ${action}`, about, arguments: 1, options: ACT.options, flags: ACT.flags, usage: `ID ${ACT.usage}` },
  request: (given) => act(given, `turns/${encodeURIComponent(first(given))}/${action}`),
});

const ofClaims = (what: 'pause' | 'resume', about: string): Command => ({
  ...{ words: `claims ${what}`, about, arguments: 0, options: [...ACT.options, 'workspace', 'surface'], flags: ACT.flags },
  usage: `[--workspace SLUG | --surface app|slack] ${ACT.usage}`,
  request(given) {
    const [workspace, surface] = [optional(given, 'workspace') ?? null, optional(given, 'surface') ?? null];
    return act(given, `claims/${what}`, { workspace, ...(surface === null ? {} : { surface }) });
  },
});

/** Which turns: the same for the list and for a batch. */
export const FILTER_OPTIONS = ['state', 'workspace', 'surface', 'conversation', 'why', 'rule'] as const;
export const FILTER_USAGE =
  '[--state open|queued|running|stuck|ended] [--workspace SLUG] [--surface app|slack] [--conversation ID] [--why WAITS] [--rule RULE]';

/** Of these options, those that were given. */
export function chosen(given: Given, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = optional(given, name);
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

export const OPS_COMMANDS: readonly Command[] = [
  {
    words: 'turns',
    usage: `${FILTER_USAGE} [--sort newest|oldest] [--limit N] [--before ID]`,
    about: 'what runs and what waits, and why; stuck: what a working installation would not have, by the rule that says so',
    ...{ options: [...FILTER_OPTIONS, 'sort', 'limit', 'before'], arguments: 0 },
    request: (given) => ({
      method: 'GET',
      path: `turns?${new URLSearchParams(chosen(given, [...FILTER_OPTIONS, 'sort', 'limit', 'before']))}`,
      show: showTurns,
    }),
  },
  {
    ...{ words: 'turn show', usage: 'ID', about: 'one turn: what happened when, without its words', options: [], arguments: 1 },
    request: (given) => ({ method: 'GET', path: `turns/${encodeURIComponent(first(given))}`, show: showTurn }),
  },
  ofTurn('stop', 'stop a turn as its person would; --preview only says what would happen'),
  ofTurn('requeue', 'take its first attempt back: its sandbox ends and it waits again'),
  ofTurn('release', 'take its lease back whatever it is: the last attempt fails with it, a stopped turn frees its slot'),
  ofTurn('skip', 'fail a question that waits, so that those behind it go on'),
  ofClaims('pause', 'start no turn any more; those that run go on'),
  ofClaims('resume', 'start turns again'),
  {
    ...{ words: 'actors', usage: '', about: 'the actors in the memory of this server', options: [], arguments: 0 },
    request: () => ({ method: 'GET', path: 'actors', list: 'actors' }),
  },
  {
    ...{ words: 'actions', usage: '', about: 'what operators did last, why, and what was so before and after', options: [], arguments: 0 },
    request: () => ({ method: 'GET', path: 'actions', list: 'actions' }),
  },
  {
    ...{ words: 'drain', arguments: 0, ...ACT, about: 'this server takes nothing new, hands its turns on and ends' },
    request: (given) => act(given, 'drain'),
  },
];
