/**
 * Owns: R15 as a question to one commit: each model call is opened once with the price of its turn's admission, closed once, and what was spent is the
 * sum of what the closed calls cost, to the last digit.
 */
import type { Step } from './ledger-replay.ts';
import type { Row } from './test-decoding.ts';

/** What a call keeps from its opening on. */
const FROZEN = [
  ...['workspace_id', 'conversation_id', 'turn_id', 'run_id', 'epoch', 'attempt', 'model', 'connection_id', 'model_id', 'opened_at'],
  ...['price_kind', 'input_price', 'output_price', 'cache_read_price', 'cache_write_price'],
];
const PRICES = [
  ['input_price', 'inputPrice'],
  ['output_price', 'outputPrice'],
  ['cache_read_price', 'cacheReadPrice'],
  ['cache_write_price', 'cacheWritePrice'],
] as const;
const TOKENS = [
  ['input_tokens', 'input_price'],
  ['output_tokens', 'output_price'],
  ['cache_read_tokens', 'cache_read_price'],
  ['cache_write_tokens', 'cache_write_price'],
] as const;

const DIGITS = 24;

/** A decimal as a whole number of 10^-24; null is 0. */
function exact(decimal: string | number | null | undefined): bigint {
  const [whole = '0', fraction = ''] = String(decimal ?? 0).split('.');
  return BigInt(whole + fraction.padEnd(DIGITS, '0').slice(0, DIGITS));
}

export function billingFaults({ touched, after }: Step): readonly string[] {
  const calls = touched.filter(({ table }) => table === 'llm_usage_event');
  const faults = calls.flatMap(({ was, is }) => {
    if (!is) return ['a call was deleted'];
    if (!was) return openedRight(is, after.turn(is['turn_id']));
    if (was['state'] === 'CLOSED') return ['a call was written again after it was closed'];
    if (FROZEN.some((column) => was[column] !== is[column])) return ['a call changed what was frozen when it was opened'];
    return is['cost'] === null || exact(is['cost']) === costOf(is) ? [] : [`a call cost ${is['cost']}, which is not its price`];
  });
  const money = calls.length > 0 || touched.some(({ table }) => table === 'llm_spend');
  return money ? [...faults, ...spentFaults(after)] : faults;
}

function openedRight(call: Row, turn: Row | undefined): readonly string[] {
  if (call['state'] !== 'OPEN' || call['cost'] !== null) return ['a call was not on record before it was closed'];
  const admission = JSON.parse(turn?.['admission'] ?? '{}') as Record<string, string | number | null>;
  const same = PRICES.every(
    ([column, name]) => (call[column] === null) === ((admission[name] ?? null) === null) && exact(call[column]) === exact(admission[name]),
  );
  return same && call['price_kind'] === admission['priceKind'] ? [] : ['a call has another price than the admission of its turn'];
}

function costOf(call: Row): bigint {
  if (call['price_kind'] !== 'PRICED') return 0n;
  const perMillion = TOKENS.map(([tokens, price]) => BigInt(call[tokens] ?? 0) * exact(call[price] ?? call['input_price']));
  return perMillion.reduce((sum, one) => sum + one, 0n) / 1_000_000n;
}

function spentFaults(after: Step['after']): readonly string[] {
  const owed = new Map<string, bigint>();
  for (const call of after.rows('llm_usage_event').values()) {
    const key = `${call['opened_at']?.slice(0, 7)}-01 ${call['workspace_id']}`;
    owed.set(key, (owed.get(key) ?? 0n) + exact(call['cost']));
  }
  const spent = after.rows('llm_spend');
  return [...new Set([...owed.keys(), ...spent.keys()])]
    .filter((key) => (owed.get(key) ?? 0n) !== exact(spent.get(key)?.['cost']))
    .map((key) => `${spent.get(key)?.['cost'] ?? 0} is spent where the closed calls cost ${owed.get(key) ?? 0n} units of 10^-${DIGITS}`);
}
