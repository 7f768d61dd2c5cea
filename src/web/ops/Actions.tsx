/** What operators do to the whole: pause and resume claims, drain this server; and the log of everything that was done. */
import { useId, useState } from 'react';
import type { OperatorActionView } from '../../contract/operators.ts';
import { ActionForm } from './ActionForm.tsx';
import { DataTable } from './DataTable.tsx';
import { Pages } from './Filters.tsx';
import { note, short, time } from './format.ts';
import { surfaceName } from './places.ts';
import { useMay } from './role.ts';
import { useRead } from './use-read.ts';
import type { ViewProps } from './view.ts';
import { t } from './words.ts';

interface ActionsPage {
  readonly actions: readonly OperatorActionView[];
  readonly nextBefore: string | null;
}

/** A cell that may take several lines. */
function Words({ text }: { text: string }) {
  return <span className="words">{text}</span>;
}

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
          <label htmlFor={id}>{t('Claims of')}</label>
          <select id={id} value={where} onChange={(event) => setWhere(event.target.value)}>
            <option value="">{t('the installation')}</option>
            {(['app', 'slack'] as const).map((name) => (
              <option key={name} value={name}>
                {surfaceName(name)}
              </option>
            ))}
            <option value="workspace">{t('one workspace')}</option>
          </select>
        </div>
        {where === 'workspace' && (
          <div>
            <label htmlFor={`${id}-slug`}>{t('Its slug')}</label>
            <input id={`${id}-slug`} value={slug} onChange={(event) => setSlug(event.target.value)} autoComplete="off" />
          </div>
        )}
      </div>
      <div className="actions">
        <ActionForm key={`pause ${key}`} label={t('Pause claims')} path="claims/pause" place={place} done={done} hold={hold} />
        <ActionForm key={`resume ${key}`} label={t('Resume claims')} path="claims/resume" place={place} done={done} hold={hold} />
      </div>
    </div>
  );
}

export function Actions({ address, go, done, hold }: ViewProps) {
  const data = useRead<ActionsPage>(`actions${address['before'] ? `?before=${address['before']}` : ''}`);
  return (
    <>
      <Claims done={done} hold={hold} />
      <div className="actions">
        <ActionForm label={t('Drain this server')} path="drain" done={done} hold={hold} />
      </div>
      <p className="note">{t('Of a turn: open it under Turns. Of the outbox: under Outbox.')}</p>
      <h2>{t('What was done')}</h2>
      {data && (
        <DataTable
          caption={t('What was done')}
          head={[t('When'), t('Action'), t('Target'), t('By'), t('Why'), t('Before'), t('After')]}
          rows={data.actions.map((one) => ({
            key: one.id,
            cells: [
              time(one.at),
              one.action,
              short(one.target),
              one.operator,
              <Words key="why" text={one.reason} />,
              <Words key="before" text={note(one.before)} />,
              <Words key="after" text={one.state === 'BEGUN' ? t('cut off: repeat it with its key') : note(one.after)} />,
            ],
          }))}
          empty={t('Nothing was done yet.')}
        />
      )}
      <Pages address={address} go={go} by="before" next={data?.nextBefore} />
    </>
  );
}
