/**
 * Owns: the operators' commands beside turns: batches, conversations, the outbox, sandboxes, spending, a revealed entry, and who operates.
 */
import { BATCH_MAX_TURNS, type BatchPreview, type BatchResult, type RevealedEntry } from '../contract/operator-batch.ts';
import type { ConversationPage, OutboxPage, SandboxesPage, SpendingLine } from '../contract/operator-views.ts';
import { OPS_ROLES, TURN_ACTIONS } from '../contract/operators.ts';
import { ACT, act, because, isPreview, showAction } from './act.ts';
import { type Command, type Given, text, UsageError } from './commands.ts';
import { chosen, duration, FILTER_OPTIONS, FILTER_USAGE } from './ops-commands.ts';
import { table } from './table.ts';

const first = ({ positionals }: Given) => positionals[0] as string;
const more = (option: string, next: string | number | null) => (next === null ? '' : `More: --${option} ${next}\n`);
/** Of at most 500 turns. */
const BATCH_TIMEOUT_MS = 120_000;
const MIB = 1024 * 1024;

function list(
  words: string,
  about: string,
  { options, usage, show }: { options: readonly string[]; usage: string; show: (answer: unknown) => string },
): Command {
  const [path = ''] = words.split(' ');
  return {
    ...{ words, about, usage, options, arguments: 0 },
    request: (given) => ({ method: 'GET', path: `${path}?${new URLSearchParams(chosen(given, options))}`, show }),
  };
}

function showBatch(answer: unknown): string {
  if ('effects' in (answer as object)) {
    const { count, tooMany, allowed, effects } = answer as BatchPreview;
    if (tooMany) return `More than ${BATCH_MAX_TURNS} turns match. Narrow the filter down.\n`;
    const lines = effects.map((one) => `  ${one.count} ${one.allowed ? 'would be done' : 'would be refused'}: ${one.effect}\n`).join('');
    return `${count} turn(s) match, ${allowed} would be done. Say --count ${count} to mean these.\n${lines}`;
  }
  const { batchId, repeated, results } = answer as BatchResult;
  const head = batchId === null ? 'Nothing was done.\n' : `batch ${batchId}${repeated ? ' (begun before with this key)' : ''}\n`;
  return head + table(results.map(({ turn, outcome, detail }) => ({ turn, outcome, detail })));
}

const batch: Command = {
  ...{ words: 'batch', arguments: 1, options: [...ACT.options, ...FILTER_OPTIONS, 'count'], flags: ACT.flags },
  usage: `${TURN_ACTIONS.join('|')} ${FILTER_USAGE} --count N ${ACT.usage}`,
  about: `one action on every turn of a filter, at most ${BATCH_MAX_TURNS}; --preview says how many there are, and --count that you mean these`,
  request(given) {
    const body = { action: first(given), filter: chosen(given, FILTER_OPTIONS) };
    if (isPreview(given)) return { method: 'POST', path: 'batch?preview=true', body, show: showBatch };
    const count = Number(text(given, 'count'));
    if (!Number.isInteger(count)) throw new UsageError('--count must be a whole number.');
    return { method: 'POST', path: 'batch', body: { ...body, count, ...because(given) }, show: showBatch, timeoutMs: BATCH_TIMEOUT_MS };
  },
};

function showOutbox(answer: unknown): string {
  const { channels, outbox, nextAfter } = answer as OutboxPage;
  const lines = channels.map(({ oldestMs, ...one }) => ({ ...one, oldest: duration(oldestMs) }));
  return `${lines.length === 0 ? '' : `${table(lines)}\n`}${table(outbox.map((one) => ({ ...one })))}${more('after', nextAfter)}`;
}

const decide = (decision: 'sent' | 'again', about: string): Command => ({
  ...{ words: `outbox ${decision}`, usage: `ID ${ACT.usage}`, about, options: ACT.options, flags: ACT.flags, arguments: 1 },
  request: (given) => act(given, `outbox/${encodeURIComponent(first(given))}/${decision}`),
});

function showSandboxes(answer: unknown): string {
  const { sandboxes, nextBefore } = answer as SandboxesPage;
  const lines = sandboxes.map(({ id, state, workspace, conversation, host, ageMs, turn, runner }) => ({
    ...{ id, state, workspace, conversation, server: host.name + (host.alive ? '' : ' (dead)'), age: duration(ageMs), turn },
    memory: runner?.memoryBytes ? `${Math.round(runner.memoryBytes / MIB)}M` : null,
  }));
  return table(lines) + more('before', nextBefore);
}

function showSpending(answer: unknown): string {
  const { spending } = answer as { spending: readonly SpendingLine[] };
  return table(spending.map(({ tokens: { input, output, cacheRead }, ...line }) => ({ ...line, input, 'cache-read': cacheRead, output })));
}

function showConversation(answer: unknown): string {
  const { conversation, actor, mailbox, attempts, ledger, sandboxes, nextBefore } = answer as ConversationPage;
  const here = actor === null ? 'Its actor is not in the memory of this server.\n' : table([{ actor: actor.state, ...actor }]);
  const turns = mailbox.map(({ id, phase, waiting, ageMs }) => ({ id, state: phase, waits: waiting?.why ?? null, age: duration(ageMs) }));
  const epochs = attempts.map(({ turn, epoch, how, beganAt, endedAt, host, calls }) => ({
    turn,
    epoch,
    how,
    beganAt,
    endedAt,
    host,
    calls,
  }));
  const places = ledger.map((line) =>
    'missing' in line
      ? { seq: line.seq, kind: `${line.missing} missing`, bytes: null, entry: null }
      : { seq: line.seq, kind: line.kind, bytes: line.bytes, entry: line.erased ? 'erased' : line.id },
  );
  const boxes = sandboxes.map(({ id, state, host, ageMs }) => ({ id, state, server: host.name, age: duration(ageMs) }));
  const parts = { mailbox: turns, attempts: epochs, ledger: places, sandboxes: boxes };
  const said = Object.entries(parts).map(([name, rows]) => `\n${name}\n${table(rows)}`);
  return `${table([{ ...conversation }])}${here}${said.join('')}${more('before', nextBefore)}`;
}

function showReveal(answer: unknown): string {
  if ('effect' in (answer as object)) return showAction(answer);
  const { entry } = answer as RevealedEntry;
  return `${entry.kind} ${entry.seq} of ${entry.conversationId}${entry.cut ? ' (cut)' : ''}\n${entry.text ?? entry.payload ?? ''}\n`;
}

export const DESK_COMMANDS: readonly Command[] = [
  batch,
  {
    ...{ words: 'conversation show', usage: 'ID [--before SEQ]', options: ['before'], arguments: 1 },
    about: 'one conversation and its actor: mailbox, every attempt, its ledger by place and size, sandboxes; without its words',
    request: (given) => ({
      ...{ method: 'GET', show: showConversation },
      path: `conversations/${encodeURIComponent(first(given))}?${new URLSearchParams(chosen(given, ['before']))}`,
    }),
  },
  list('outbox list', 'what is not sent yet, or may not be; UNCERTAIN: nobody knows whether Slack has it', {
    ...{ options: ['state', 'workspace', 'channel', 'after'], show: showOutbox },
    usage: '[--state STATE] [--workspace SLUG] [--channel ID] [--after N]',
  }),
  decide('sent', 'an uncertain action is in Slack: you have seen it'),
  decide('again', 'send an action again: it is not in Slack, or its reason is gone'),
  list('sandboxes', 'sandboxes with their server, age, turn and (on this server) memory', {
    ...{ options: ['state', 'host', 'workspace', 'conversation', 'before'], show: showSandboxes },
    usage: '[--state live|ended|failed] [--host NAME] [--workspace SLUG] [--conversation ID] [--before ID]',
  }),
  list('spending', 'what each workspace spent with each model in a calendar month (UTC)', {
    ...{ options: ['month', 'workspace'], show: showSpending, usage: '[--month YYYY-MM] [--workspace SLUG]' },
  }),
  {
    ...{ words: 'entry reveal', usage: `ID ${ACT.usage}`, options: ACT.options, flags: ACT.flags, arguments: 1 },
    about: 'show the words of one entry; the log says who read them and why. Needs the role admin',
    request: (given) => ({ ...act(given, `entries/${encodeURIComponent(first(given))}/reveal`), show: showReveal }),
  },
  {
    ...{ words: 'operator list', usage: '', about: 'which accounts may operate, and as what', options: [], arguments: 0 },
    request: () => ({ method: 'GET', path: 'operators', list: 'operators' }),
  },
  {
    ...{
      words: 'operator set',
      usage: `EMAIL ${OPS_ROLES.join('|')}|none ${ACT.usage}`,
      options: ACT.options,
      flags: ACT.flags,
      arguments: 2,
    },
    about: 'what an account may do on the operations listener; the person must have been added to a workspace once',
    request(given) {
      const [member, role = ''] = given.positionals;
      if (role !== 'none' && !OPS_ROLES.some((one) => one === role)) throw new UsageError(`Say one of ${OPS_ROLES.join(', ')}, none.`);
      return act(given, 'operators', { member, role: role === 'none' ? null : role });
    },
  },
];
