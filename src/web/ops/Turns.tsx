/** Pages of turns, filtered and sorted by the server; the filter and the page stand in the address. Below: one action on all of them. */
import { type OperatorTurn, type OperatorTurns, STUCK_RULES, TURN_STATES, WAIT_REASONS } from '../../contract/operators.ts';
import type { Address } from './address.ts';
import { BatchForm } from './BatchForm.tsx';
import { DataTable } from './DataTable.tsx';
import { Filters, Pages, queryOf } from './Filters.tsx';
import { duration, short } from './format.ts';
import { Link } from './Link.tsx';
import { useRead } from './use-read.ts';
import type { ViewProps } from './view.ts';
import { t } from './words.ts';

export function waitText({ waiting, stuck }: OperatorTurn): string {
  const why = waiting === null ? [] : [waiting.behind === null ? waiting.why : t('behind {turn}', { turn: short(waiting.behind) })];
  return [...why, ...stuck.map(({ rule }) => rule)].join(', ') || '–';
}

const FILTER = ['state', 'workspace', 'surface', 'conversation', 'why', 'rule'] as const;
const FIELDS = [
  { name: 'workspace', label: t('Workspace') },
  { name: 'surface', label: t('Surface'), choices: ['app', 'slack'] },
  { name: 'why', label: t('Waits for'), choices: WAIT_REASONS },
  { name: 'rule', label: t('Stuck by'), choices: STUCK_RULES },
  { name: 'sort', label: t('First'), choices: ['oldest'], none: t('newest') },
] as const;

export function Turns({ address, go, done, hold }: ViewProps) {
  const state = address['state'] ?? 'open';
  const here = { ...address, state };
  const filter = queryOf(here, FILTER);
  const data = useRead<OperatorTurns>(`turns?${new URLSearchParams({ ...filter, ...queryOf(here, ['sort', 'before']) })}`);
  return (
    <>
      <nav className="filters" aria-label={t('State of turns')}>
        {TURN_STATES.map((one) => (
          <Link key={one} to={{ ...address, state: one, before: '' }} go={go} current={one === state}>
            {one}
          </Link>
        ))}
      </nav>
      <Filters address={here} go={go} fields={FIELDS} />
      {data && <TurnTable caption={`${t('Turns')}: ${state}`} turns={data.turns} go={go} empty={t('No turn is {state}.', { state })} />}
      <Pages address={here} go={go} by="before" next={data?.nextBefore} />
      {state !== 'ended' && <BatchForm key={JSON.stringify(filter)} filter={filter} go={go} done={done} hold={hold} />}
    </>
  );
}

const HEAD = [
  ...[
    t('Turn'),
    t('Workspace'),
    t('State'),
    t('Waits for, stuck by'),
    t('Age'),
    t('Attempt'),
    t('Lease left'),
    t('Deadline left'),
    t('Server'),
  ],
  t('Error'),
];

interface TurnTableProps {
  readonly caption: string;
  readonly turns: readonly OperatorTurn[];
  readonly go: (to: Address) => void;
  readonly empty: string;
}

export function TurnTable({ caption, turns, go, empty }: TurnTableProps) {
  return (
    <DataTable
      caption={caption}
      head={HEAD}
      rows={turns.map((turn) => ({
        key: turn.id,
        cells: [
          <Link key="id" to={{ tab: 'turns', id: turn.id }} go={go}>
            {short(turn.id)}
          </Link>,
          turn.workspace,
          <span key="state" className={`chip ${turn.stuck.length > 0 ? 'alarm' : ''}`}>
            {turn.phase === 'ended' ? turn.status : turn.phase}
          </span>,
          waitText(turn),
          duration(turn.ageMs),
          turn.attempt,
          duration(turn.leaseMs),
          duration(turn.deadlineMs),
          turn.host === null ? '–' : `${short(turn.host.name)}${turn.host.alive ? '' : ` (${t('dead')})`}`,
          turn.error ?? '–',
        ],
      }))}
      empty={empty}
    />
  );
}
