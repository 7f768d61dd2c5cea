/**
 * Owns: R14 as a question to one commit: the actions of the outbox that it changed, before and after. Written from spec/RULES.md and
 * spec/decisions/0029, not from the trigger.
 */
import type { LedgerReplay, Step, Touched } from './ledger-replay.ts';
import type { Row } from './test-decoding.ts';

/** What makes an action the only one of its kind. */
const NAMES = [['turn_id'], ['digest_id'], ['team_id', 'event_id']] as const;
const FIRST_STATES = new Set(['PENDING', 'RETRY']);
/** What an attempt itself can learn that proves that Slack has nothing of it. Everything else takes a reading, or an operator. */
const NOT_POSTED = new Set([
  ...['late', 'rate_limited', 'not_connected', 'service_unavailable', 'request_timeout', 'team_added_to_org', 'org_login_required'],
]);

export function outboxFaults(step: Step): readonly string[] {
  const changed = step.touched.filter(({ table }) => table === 'outbox_action');
  const twice = changed.some(({ was }) => !was) ? sameNames(step.after) : [];
  return [...changed.flatMap((one) => actionFaults(one, step)), ...twice, ...endFaults(step)];
}

function actionFaults({ was, is }: Touched, step: Step): readonly string[] {
  if (!is) return ['an action was deleted'];
  if (!was) return is['state'] === 'PENDING' && is['attempts'] === '0' ? [] : [`an action began as ${is['state']}`];
  if (was['state'] === is['state']) return sameStateFaults(was, is);
  const faults = onRecord(was, is, step.touched) ? [] : [`${was['state']} became ${is['state']} without a record`];
  return [...faults, ...stepFaults(was, is)];
}

function sameStateFaults(was: Row, is: Row): readonly string[] {
  if (was['attempts'] !== is['attempts']) return ['an attempt was counted without one'];
  const held = is['state'] === 'SENDING' || is['state'] === 'UNCERTAIN';
  if (held && was['lease_id'] !== is['lease_id']) return ['an attempt was taken over while nobody knew what became of it'];
  return was['state'] === 'SENT' && was['message_ts'] !== is['message_ts'] ? ['a message of an action was replaced'] : [];
}

function stepFaults(was: Row, is: Row): readonly string[] {
  const [from, to, attempts] = [was['state'], is['state'], Number(is['attempts']) - Number(was['attempts'])];
  if (from === 'SENT') return ['an action went on after it was sent'];
  if (to === 'SENDING') {
    if (!FIRST_STATES.has(String(from))) return [`an action was sent again that was ${from}`];
    return attempts === 1 && was['lease_id'] !== is['lease_id'] ? [] : ['a request left that is no attempt of its own'];
  }
  if (attempts !== 0) return ['an attempt was counted without one'];
  if (to === 'SENT' && is['moved_by'] === 'server' && !is['message_ts']) return ['an action was sent without a message'];
  if (to !== 'RETRY' || is['moved_by'] === 'operator' || !(from === 'SENDING' || from === 'UNCERTAIN')) return [];
  const learnt = is['reason'] === 'not_in_history' ? Number(is['reads']) > 0 : NOT_POSTED.has(String(is['reason']));
  return learnt && was['lease_id'] === is['lease_id'] ? [] : [`an action is repeated although nobody knows: ${is['reason']}`];
}

/** Each step stands in outbox_step, in the same commit. */
function onRecord(was: Row, is: Row, touched: Step['touched']): boolean {
  return touched.some(
    ({ table, is: row }) =>
      table === 'outbox_step' &&
      row?.['action_id'] === is['id'] &&
      row?.['from_state'] === was['state'] &&
      row?.['to_state'] === is['state'] &&
      row?.['moved_by'] === is['moved_by'],
  );
}

function sameNames(after: LedgerReplay): readonly string[] {
  const rows = [...after.rows('outbox_action').values()];
  return NAMES.flatMap((columns) => {
    const names = rows.filter((row) => columns.every((column) => row[column])).map((row) => columns.map((column) => row[column]).join(' '));
    return new Set(names).size < names.length ? [`two actions of one ${columns.join(', ')}`] : [];
  });
}

/** Each end of a turn of Slack has its action in the same commit, and none comes before. */
function endFaults({ touched, after }: Step): readonly string[] {
  const actionOf = (turnId: string) => [...after.rows('outbox_action').values()].some((row) => row['turn_id'] === turnId);
  const silent = touched.flatMap(({ table, was, is }) => {
    const ended = table === 'agent_run' && is?.['state'] === 'ENDED' && was?.['state'] !== 'ENDED' ? is['turn_id'] : null;
    return ended && after.rows('slack_turn').has(ended) && !actionOf(ended) ? ['a turn of Slack ended without a post'] : [];
  });
  const early = touched.flatMap(({ table, was, is }) => {
    const turnId = table === 'outbox_action' && !was ? is?.['turn_id'] : null;
    return turnId && after.runOfTurn(turnId)?.['state'] !== 'ENDED' ? ['a post of a turn that has not ended'] : [];
  });
  return [...silent, ...early];
}
