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

export function waitText({ waiting, stuck }: OperatorTurn): string {
  const why = waiting === null ? [] : [waiting.behind === null ? waiting.why : `behind ${short(waiting.behind)}`];
  return [...why, ...stuck.map(({ rule }) => rule)].join(', ') || '–';
}

const FILTER = ['state', 'workspace', 'surface', 'conversation', 'why', 'rule'] as const;
const FIELDS = [
  { name: 'workspace', label: 'Workspace' },
  { name: 'surface', label: 'Surface', choices: ['app', 'slack'] },
  { name: 'why', label: 'Waits for', choices: WAIT_REASONS },
  { name: 'rule', label: 'Stuck by', choices: STUCK_RULES },
  { name: 'sort', label: 'First', choices: ['oldest'], none: 'newest' },
] as const;

export function Turns({ address, go, done, hold }: ViewProps) {
  const state = address['state'] ?? 'open';
  const here = { ...address, state };
  const filter = queryOf(here, FILTER);
  const data = useRead<OperatorTurns>(`turns?${new URLSearchParams({ ...filter, ...queryOf(here, ['sort', 'before']) })}`);
  return (
    <>
      <nav className="filters" aria-label="State of turns">
        {TURN_STATES.map((one) => (
          <Link key={one} to={{ ...address, state: one, before: '' }} go={go} current={one === state}>
            {one}
          </Link>
        ))}
      </nav>
      <Filters address={here} go={go} fields={FIELDS} />
      {data && <TurnTable caption={`Turns: ${state}`} turns={data.turns} go={go} empty={`No turn is ${state}.`} />}
      <Pages address={here} go={go} by="before" next={data?.nextBefore} />
      {state !== 'ended' && <BatchForm key={JSON.stringify(filter)} filter={filter} go={go} done={done} hold={hold} />}
    </>
  );
}

const HEAD = ['Turn', 'Workspace', 'State', 'Waits for, stuck by', 'Age', 'Attempt', 'Lease left', 'Deadline left', 'Server', 'Error'];

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
          turn.host === null ? '–' : `${short(turn.host.name)}${turn.host.alive ? '' : ' (dead)'}`,
          turn.error ?? '–',
        ],
      }))}
      empty={empty}
    />
  );
}
