/** What operators do to the whole: pause and resume claims, drain this server; and the log of everything that was done. */
import { useId, useState } from 'react';
import type { OperatorActionView } from '../../contract/operators.ts';
import { ActionForm } from './ActionForm.tsx';
import { DataTable } from './DataTable.tsx';
import { note, short, time } from './format.ts';
import { Link } from './Link.tsx';
import { useMay } from './role.ts';
import { useRead } from './use-read.ts';
import type { ViewProps } from './view.ts';

interface ActionsPage {
  readonly actions: readonly OperatorActionView[];
  readonly nextBefore: string | null;
}

/** A cell that may take several lines. */
function Words({ text }: { text: string }) {
  return <span className="words">{text}</span>;
}

const SURFACES = { app: 'the web chat', slack: 'Slack' } as const;

/** Pausing and resuming, of everything, of one workspace or of one surface. */
function Claims({ done, hold }: Pick<ViewProps, 'done' | 'hold'>) {
  const id = useId();
  const may = useMay('operator');
  const [where, setWhere] = useState('');
  const [slug, setSlug] = useState('');
  if (!may) return null;
  const place = where === 'workspace' ? { workspace: slug } : where === '' ? {} : { surface: where };
  const key = JSON.stringify(place); // another place is another form
  return (
    <div className="claims">
      <div className="filter-form">
        <div>
          <label htmlFor={id}>Claims of</label>
          <select id={id} value={where} onChange={(event) => setWhere(event.target.value)}>
            <option value="">the installation</option>
            {Object.entries(SURFACES).map(([name, said]) => (
              <option key={name} value={name}>
                {said}
              </option>
            ))}
            <option value="workspace">one workspace</option>
          </select>
        </div>
        {where === 'workspace' && (
          <div>
            <label htmlFor={`${id}-slug`}>Its slug</label>
            <input id={`${id}-slug`} value={slug} onChange={(event) => setSlug(event.target.value)} autoComplete="off" />
          </div>
        )}
      </div>
      <div className="actions">
        <ActionForm key={`pause ${key}`} label="Pause claims" path="claims/pause" place={place} done={done} hold={hold} />
        <ActionForm key={`resume ${key}`} label="Resume claims" path="claims/resume" place={place} done={done} hold={hold} />
      </div>
    </div>
  );
}

export function Actions({ address, go, done, hold }: ViewProps) {
  const data = useRead<ActionsPage>(`actions${address['before'] ? `?before=${address['before']}` : ''}`);
  return (
    <>
      <div className="actions">
        <Claims done={done} hold={hold} />
        <ActionForm label="Drain this server" path="drain" done={done} hold={hold} />
      </div>
      <p className="note">Of a turn: open it under Turns. Of the outbox: under Outbox.</p>
      <h2>What was done</h2>
      {data && (
        <DataTable
          caption="What was done"
          head={['When', 'Action', 'Target', 'By', 'Why', 'Before', 'After']}
          rows={data.actions.map((one) => ({
            key: one.id,
            cells: [
              time(one.at),
              one.action,
              short(one.target),
              one.operator,
              <Words key="why" text={one.reason} />,
              <Words key="before" text={note(one.before)} />,
              <Words key="after" text={one.state === 'BEGUN' ? 'cut off: repeat it with its key' : note(one.after)} />,
            ],
          }))}
          empty="Nothing was done yet."
        />
      )}
      <p className="pages">
        {address['before'] && (
          <Link to={{ tab: 'actions' }} go={go}>
            First page
          </Link>
        )}
        {data?.nextBefore && (
          <Link to={{ tab: 'actions', before: data.nextBefore }} go={go}>
            Next page
          </Link>
        )}
      </p>
    </>
  );
}
