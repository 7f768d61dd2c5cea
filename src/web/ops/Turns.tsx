/** Pages of turns, filtered by state; the filter and the page stand in the address. */
import { type OperatorTurn, type OperatorTurns, TURN_STATES } from '../../contract/operators.ts';
import { DataTable } from './DataTable.tsx';
import { duration, short } from './format.ts';
import { Link } from './Link.tsx';
import { useRead } from './use-read.ts';
import type { ViewProps } from './view.ts';

export function waitText({ waiting, stuck }: OperatorTurn): string {
  const why = waiting === null ? [] : [waiting.behind === null ? waiting.why : `behind ${short(waiting.behind)}`];
  return [...why, ...stuck.map(({ rule }) => rule)].join(', ') || '–';
}

export function Turns({ address, go }: ViewProps) {
  const state = address['state'] ?? 'open';
  const query = new URLSearchParams({ state, ...(address['before'] ? { before: address['before'] } : {}) });
  const data = useRead<OperatorTurns>(`turns?${query}`);
  return (
    <>
      <nav className="filters" aria-label="State of turns">
        {TURN_STATES.map((one) => (
          <Link key={one} to={{ tab: 'turns', state: one }} go={go} current={one === state}>
            {one}
          </Link>
        ))}
      </nav>
      {data && (
        <DataTable
          caption={`Turns: ${state}`}
          head={['Turn', 'Workspace', 'State', 'Waits for, stuck by', 'Age', 'Attempt', 'Lease left', 'Deadline left', 'Server', 'Error']}
          rows={data.turns.map((turn) => ({
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
          empty={`No turn is ${state}.`}
        />
      )}
      <p className="pages">
        {address['before'] && (
          <Link to={{ tab: 'turns', state }} go={go}>
            First page
          </Link>
        )}
        {data?.nextBefore && (
          <Link to={{ tab: 'turns', state, before: data.nextBefore }} go={go}>
            Next page
          </Link>
        )}
      </p>
    </>
  );
}
