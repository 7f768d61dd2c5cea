/**
 * Owns: R1 to R9, R14 and R15 as questions to one commit of the change log: the rows that it changed, before and after. Written from spec/RULES.md, not
 * from the statements: a rule that a statement and its constraint both forget is still asked here.
 * Does not own: reading the log (change-log.ts), rows over time (ledger-replay.ts).
 */

import type { Rule, Step, Touched } from './ledger-replay.ts';
import { billingFaults } from './ledger-rules-billing.ts';
import { outboxFaults } from './ledger-rules-outbox.ts';
import { type Row, readTimeMs } from './test-decoding.ts';

const TERMINAL = new Set<string | null | undefined>(['DONE', 'STOPPED', 'FAILED']);
const CLOCK_STEP_MS = 1; // the log prints microseconds, we count milliseconds

function of(step: Pick<Step, 'touched'>, table: Touched['table']): readonly Touched[] {
  return step.touched.filter((one) => one.table === table);
}

const R1: Rule = ({ touched, after }) => {
  const conversations = new Set(touched.flatMap(({ table, is }) => (table === 'agent_run' && is ? [is['conversation_id']] : [])));
  for (const { is } of of({ touched }, 'mentor_turn')) conversations.add(is?.['conversation_id'] ?? null);
  return [...conversations].flatMap((id) => {
    const running = after.turnsOf(id).filter((turn) => turn['status'] === 'RUNNING').length;
    const leased = after.leased().filter((run) => run['conversation_id'] === id).length;
    return running > 1 || leased > 1 ? [`${running} running turns and ${leased} leased runs in one conversation`] : [];
  });
};

const REQUEST = ['request_id', 'account_id', 'workspace_id', 'surface'] as const;

const R2: Rule = ({ touched, after }) =>
  of({ touched }, 'mentor_turn').flatMap(({ was, is }) => {
    if (!is) return ['a turn was deleted'];
    if (was) return REQUEST.some((column) => was[column] !== is[column]) ? ['a turn changed its requestId'] : [];
    const same = [...after.rows('mentor_turn').values()].filter((turn) => REQUEST.every((column) => turn[column] === is[column]));
    return same.length > 1 ? [`${same.length} turns of one requestId`] : [];
  });

const R3: Rule = ({ touched, after }) => {
  const late = of({ touched }, 'mentor_entry').flatMap(({ was, is }) => {
    const before = after.seqBefore.get(String(is?.['conversation_id'])) ?? 0;
    if (was && was['seq'] !== is?.['seq']) return ['an entry changed its place'];
    return !was && Number(is?.['seq']) <= before ? [`an entry with seq ${is?.['seq']} after one with ${before}`] : [];
  });
  const early = of({ touched }, 'mentor_turn').flatMap(({ was, is }) => {
    if (was?.['status'] === 'RUNNING' || is?.['status'] !== 'RUNNING') return [];
    const older = after.turnsOf(is['conversation_id']).filter((turn) => Number(turn['question_seq']) < Number(is['question_seq']));
    return older.some((turn) => after.runOfTurn(turn['id'])?.['state'] !== 'ENDED') ? ['a turn started before an older one ended'] : [];
  });
  return [...late, ...early];
};

const R4: Rule = ({ touched, after, limits }) => {
  if (of({ touched }, 'agent_run').length + of({ touched }, 'turn_slot').length === 0) return [];
  const leased = after.leased().filter((run) => run['kind'] === 'TURN').length;
  const held = [...after.rows('turn_slot').values()].filter((slot) => slot['run_id'] !== null).length;
  return leased > limits.capacity || held !== leased ? [`${leased} leased turns hold ${held} of ${limits.capacity} slots`] : [];
};

const R5: Rule = ({ touched, after }) => {
  const runs = of({ touched }, 'agent_run').flatMap(({ was, is }) => {
    if (!is) return ['a run was deleted'];
    const claimed = is['state'] === 'LEASED' && was?.['state'] !== 'LEASED';
    const epoch = Number(was?.['epoch'] ?? 0) + (claimed ? 1 : 0);
    if (Number(is['epoch']) !== epoch) return [`epoch ${is['epoch']} where it had to be ${epoch}`];
    if (was?.['state'] === 'LEASED' && is['state'] === 'LEASED' && was['sandbox_id'] !== is['sandbox_id'])
      return ['an attempt changed its sandbox'];
    return was?.['state'] === 'ENDED' && is['state'] !== 'ENDED' ? ['a run went on after its end'] : [];
  });
  const turns = of({ touched }, 'mentor_turn').flatMap(({ was, is }) =>
    TERMINAL.has(was?.['status']) && was?.['status'] !== is?.['status']
      ? [`a turn became ${is?.['status']} after it was ${was?.['status']}`]
      : [],
  );
  const calls = of({ touched }, 'llm_usage_event').flatMap(({ was, is }) => {
    if (was || !is) return [];
    const [run, turn] = [after.run(is['run_id']), after.turn(is['turn_id'])];
    const mine = run?.['state'] === 'LEASED' && run['epoch'] === is['epoch'] && turn?.['attempt'] === is['attempt'];
    return mine && turn?.['status'] === 'RUNNING' ? [] : ['a model call of an attempt that does not have its run'];
  });
  return [...runs, ...turns, ...calls];
};

const PAIRS = new Set(['QUEUED WAITING', 'RUNNING LEASED', 'STOPPED LEASED', 'STOPPED ENDED', 'DONE ENDED', 'FAILED ENDED']);

const R6: Rule = ({ touched, after }) => {
  const ids = touched.flatMap(({ table, was, is }) => {
    if (table === 'mentor_turn') return [after.runOfTurn(is?.['id'])?.['id'] ?? `none of turn ${is?.['id']}`];
    if (table === 'agent_run') return [is?.['id']];
    return table === 'turn_slot' ? [was?.['run_id'], is?.['run_id']] : [];
  });
  return [...new Set(ids)].flatMap((id) => {
    if (!id) return [];
    const run = after.run(id);
    if (!run) return [`there is no run ${id}`];
    if (run['kind'] !== 'TURN') return [];
    const pair = `${after.turn(run['turn_id'])?.['status']} ${run['state']}`;
    const slots = after.slotsOf(id);
    const right = PAIRS.has(pair) && slots === (run['state'] === 'LEASED' ? 1 : 0);
    return right ? [] : [`turn and run are ${pair} with ${slots} slots`];
  });
};

const R7: Rule = ({ touched, after }) =>
  of({ touched }, 'mentor_entry').flatMap(({ was, is }) => {
    if (was || !is?.['turn_id']) return [];
    const turnBefore = of({ touched }, 'mentor_turn').find((one) => one.is?.['id'] === is['turn_id']);
    if (is['kind'] === 'QUESTION') return turnBefore && !turnBefore.was ? [] : ['a question without its turn'];
    const run = of({ touched }, 'agent_run').find((one) => one.is?.['turn_id'] === is['turn_id']);
    if (run?.was?.['state'] !== 'LEASED' || run.is?.['state'] !== 'ENDED')
      return [`an entry ${is['kind']} of a turn that did not end with it`];
    const failed = after.turn(is['turn_id'])?.['status'] === 'FAILED';
    return failed && is['kind'] !== 'SUMMARY' ? [`a failed turn stored an entry ${is['kind']}`] : [];
  });

const R8: Rule = ({ touched, after, atMs, limits }) =>
  of({ touched }, 'agent_run').flatMap(({ was, is }) => {
    const late = (column: string, row: Row | null, maxMs: number) => {
      const time = row?.[column];
      return time && time !== was?.[column] && readTimeMs(time) > atMs + maxMs + CLOCK_STEP_MS
        ? [`${column} is ${readTimeMs(time) - atMs} ms after its commit, ${maxMs} are allowed`]
        : [];
    };
    const early = was?.['state'] === 'LEASED' && is?.['state'] === 'WAITING' && !handedOn({ touched }, is);
    const over = readTimeMs(was?.['lease_until'] ?? '2000-01-01 00:00:00') <= atMs + CLOCK_STEP_MS;
    const orphan = after.rows('sandbox').get(String(was?.['sandbox_id']))?.['state'] === 'ENDED';
    return [
      ...late('lease_until', is, limits.leaseTtlMs),
      ...late('deadline_at', is, limits.deadlineMs),
      ...(early && !over && !orphan ? ['an attempt was taken back before its lease was over'] : []),
    ];
  });

/** The run's turn got its attempt back in the same commit. */
function handedOn(step: Pick<Step, 'touched'>, run: Row): boolean {
  const turn = of(step, 'mentor_turn').find((one) => one.is?.['id'] === run['turn_id']);
  return Number(turn?.is?.['attempt']) === Number(turn?.was?.['attempt']) - 1;
}

const R9: Rule = ({ touched, after }) =>
  of({ touched }, 'mentor_turn').flatMap(({ was, is }) => {
    const [before, now] = [Number(was?.['attempt'] ?? 0), Number(is?.['attempt'])];
    const run = of({ touched }, 'agent_run').find((one) => one.is?.['turn_id'] === is?.['id']);
    const claimed = run?.is?.['state'] === 'LEASED' && run.was?.['state'] !== 'LEASED';
    const returned = run?.was?.['state'] === 'LEASED' && run.is?.['state'] === 'WAITING';
    const allowed = claimed ? [before + 1] : returned ? [before, before - 1] : [before];
    const inTime = now <= 2 && (after.runOfTurn(is?.['id'])?.['state'] !== 'LEASED' || now >= 1);
    return allowed.includes(now) && inTime ? [] : [`attempt ${now} after ${before}${claimed ? ' at a claim' : ''}`];
  });

const R14: Rule = (step) => outboxFaults(step);

const R15: Rule = (step) => billingFaults(step);

export const LEDGER_RULES: Readonly<Record<string, Rule>> = { R1, R2, R3, R4, R5, R6, R7, R8, R9, R14, R15 };
