/** The overview: the numbers that say whether people wait, each with a link to what it counts. */
import type { Overview as OverviewData } from '../../contract/operators.ts';
import type { Address } from './address.ts';
import { DataTable } from './DataTable.tsx';
import { duration, time } from './format.ts';
import { Link } from './Link.tsx';
import { useRead } from './use-read.ts';
import type { ViewProps } from './view.ts';

interface CountsProps {
  readonly title: string;
  readonly of: OverviewData['failures'];
  readonly empty: string;
  /** Where a line leads; absent: nowhere. */
  readonly to?: (name: string) => Address;
  readonly go: ViewProps['go'];
}

function Counts({ title, of, empty, to, go }: CountsProps) {
  return (
    <section>
      <h2>{title}</h2>
      <DataTable
        caption={title}
        head={['What', 'Count']}
        rows={of.map(({ name, count }) => {
          const label = to ? (
            <Link key="name" to={to(name)} go={go}>
              {name}
            </Link>
          ) : (
            name
          );
          return { key: name, cells: [label, count] };
        })}
        empty={empty}
      />
    </section>
  );
}

function Numbers({ data: { slots, turns, stuck, outbox }, go }: { data: OverviewData; go: ViewProps['go'] }) {
  const stuckCount = stuck.byRule.reduce((sum, { count }) => sum + count, 0);
  return (
    <dl className="numbers">
      <div>
        <dt>Oldest waiting turn</dt>
        <dd>{turns.oldestWaitingMs === null ? 'none' : duration(turns.oldestWaitingMs)}</dd>
      </div>
      <div>
        <dt>Slots held</dt>
        <dd>
          {slots.held} of {slots.limit}
          {slots.retiring > 0 && ` (${slots.retiring} retiring)`}
        </dd>
      </div>
      <div>
        <dt>
          <Link to={{ tab: 'turns', state: 'running' }} go={go}>
            Running
          </Link>
        </dt>
        <dd>
          {turns.running}
          {turns.stopping > 0 && ` + ${turns.stopping} stopping`}
        </dd>
      </div>
      <div>
        <dt>
          <Link to={{ tab: 'turns', state: 'queued' }} go={go}>
            Queued
          </Link>
        </dt>
        <dd>{turns.queued}</dd>
      </div>
      <div className={stuckCount > 0 ? 'alarm' : ''}>
        <dt>
          <Link to={{ tab: 'turns', state: 'stuck' }} go={go}>
            Stuck
          </Link>
        </dt>
        <dd>
          {stuckCount}
          {!stuck.complete && ` of the oldest ${stuck.lookedAt}`}
        </dd>
      </div>
      <div className={outbox.uncertain > 0 ? 'alarm' : ''}>
        <dt>
          <Link to={{ tab: 'outbox' }} go={go}>
            Outbox
          </Link>
        </dt>
        <dd>
          {outbox.pending}
          {outbox.uncertain > 0 && ` + ${outbox.uncertain} uncertain`}
          {outbox.oldestMs !== null && `, ${duration(outbox.oldestMs)}`}
        </dd>
      </div>
    </dl>
  );
}

const SURFACES = { app: 'the web chat', slack: 'Slack' } as const;

function placeOf({ workspace, surface }: Pick<OverviewData['pauses'][number], 'workspace' | 'surface'>): string {
  if (surface !== null) return SURFACES[surface];
  return workspace === null ? 'the installation' : `the workspace ${workspace}`;
}

export function Overview({ go }: ViewProps) {
  const data = useRead<OverviewData>('overview');
  if (data === null) return null;
  const { stuck, servers, pauses } = data;
  return (
    <>
      {pauses.map(({ workspace, surface, reason, operator, pausedAt }) => (
        <p className="banner warning" key={`${workspace} ${surface}`}>
          Claims of {placeOf({ workspace, surface })} are paused since {time(pausedAt)} by {operator}: “{reason}”
        </p>
      ))}
      <Numbers data={data} go={go} />
      <div className="columns">
        <Counts
          title="Stuck, by rule"
          of={stuck.byRule}
          empty="Nothing is stuck."
          to={(rule) => ({ tab: 'turns', state: 'stuck', rule })}
          go={go}
        />
        <Counts title="Failures of the last hour" of={data.failures} empty="No turn failed." go={go} />
        <Counts title="Model calls of the last hour" of={data.modelCalls} empty="There were none." go={go} />
        <Counts title="Sandboxes" of={data.sandboxes} empty="There are none." to={() => ({ tab: 'sandboxes' })} go={go} />
      </div>
      <h2>Servers</h2>
      <DataTable
        caption="Servers"
        head={['Server', 'State', 'Build', 'Started', 'Running', 'Sandboxes']}
        rows={servers.map((server) => ({
          key: server.id,
          cells: [
            server.name + (server.self ? ' (this one)' : ''),
            <span key="state" className={`chip ${server.state}`}>
              {server.state}
            </span>,
            server.build ?? 'unknown',
            time(server.startedAt),
            server.running,
            `${server.sandboxes} of ${server.sandboxesMax}`,
          ],
        }))}
        empty="No server is there."
      />
    </>
  );
}
