/** The overview: the numbers that say whether people wait, each with a link to what it counts. */
import type { Overview as OverviewData } from '../../contract/operators.ts';
import type { Address } from './address.ts';
import { DataTable } from './DataTable.tsx';
import { duration, time } from './format.ts';
import { Link } from './Link.tsx';
import { placeName } from './places.ts';
import { useRead } from './use-read.ts';
import type { ViewProps } from './view.ts';
import { t } from './words.ts';

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
        head={[t('What'), t('Count')]}
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
        <dt>{t('Oldest waiting turn')}</dt>
        <dd>{turns.oldestWaitingMs === null ? t('none') : duration(turns.oldestWaitingMs)}</dd>
      </div>
      <div>
        <dt>{t('Slots held')}</dt>
        <dd>
          {t('{n} of {all}', { n: slots.held, all: slots.limit })}
          {slots.retiring > 0 && ` (${t('{n} retiring', { n: slots.retiring })})`}
        </dd>
      </div>
      <div>
        <dt>
          <Link to={{ tab: 'turns', state: 'running' }} go={go}>
            {t('Running')}
          </Link>
        </dt>
        <dd>
          {turns.running}
          {turns.stopping > 0 && ` + ${t('{n} stopping', { n: turns.stopping })}`}
        </dd>
      </div>
      <div>
        <dt>
          <Link to={{ tab: 'turns', state: 'queued' }} go={go}>
            {t('Queued')}
          </Link>
        </dt>
        <dd>{turns.queued}</dd>
      </div>
      <div className={stuckCount > 0 ? 'alarm' : ''}>
        <dt>
          <Link to={{ tab: 'turns', state: 'stuck' }} go={go}>
            {t('Stuck')}
          </Link>
        </dt>
        <dd>
          {stuckCount}
          {!stuck.complete && ` ${t('of the oldest {n}', { n: stuck.lookedAt })}`}
        </dd>
      </div>
      <div className={outbox.uncertain > 0 ? 'alarm' : ''}>
        <dt>
          <Link to={{ tab: 'outbox' }} go={go}>
            {t('Outbox')}
          </Link>
        </dt>
        <dd>
          {outbox.pending}
          {outbox.uncertain > 0 && ` + ${t('{n} uncertain', { n: outbox.uncertain })}`}
          {outbox.oldestMs !== null && `, ${duration(outbox.oldestMs)}`}
        </dd>
      </div>
    </dl>
  );
}

export function Overview({ go }: ViewProps) {
  const data = useRead<OverviewData>('overview');
  if (data === null) return null;
  const { stuck, servers, pauses } = data;
  return (
    <>
      {pauses.map(({ workspace, surface, reason, operator, pausedAt }) => (
        <p className="banner warning" key={`${workspace} ${surface}`}>
          {t('Claims of {place} are paused since {when} by {who}: “{why}”', {
            ...{ place: placeName({ workspace, surface }), when: time(pausedAt), who: operator, why: reason },
          })}
        </p>
      ))}
      <Numbers data={data} go={go} />
      <div className="columns">
        <Counts
          title={t('Stuck, by rule')}
          of={stuck.byRule}
          empty={t('Nothing is stuck.')}
          to={(rule) => ({ tab: 'turns', state: 'stuck', rule })}
          go={go}
        />
        <Counts title={t('Failures of the last hour')} of={data.failures} empty={t('No turn failed.')} go={go} />
        <Counts title={t('Model calls of the last hour')} of={data.modelCalls} empty={t('There were none.')} go={go} />
        <Counts title={t('Sandboxes')} of={data.sandboxes} empty={t('There are none.')} to={() => ({ tab: 'sandboxes' })} go={go} />
      </div>
      <h2>{t('Servers')}</h2>
      <DataTable
        caption={t('Servers')}
        head={[t('Server'), t('State'), t('Build'), t('Started'), t('Running'), t('Sandboxes')]}
        rows={servers.map((server) => ({
          key: server.id,
          cells: [
            server.name + (server.self ? ` (${t('this one')})` : ''),
            <span key="state" className={`chip ${server.state}`}>
              {server.state}
            </span>,
            server.build ?? t('unknown'),
            time(server.startedAt),
            server.running,
            t('{n} of {all}', { n: server.sandboxes, all: server.sandboxesMax }),
          ],
        }))}
        empty={t('No server is there.')}
      />
    </>
  );
}
