/**
 * Owns: one action on every turn of the list's filter: what it would do to how many, the count that the operator types, the results.
 */
import { useId, useState } from 'react';
import { BATCH_MAX_TURNS, type BatchPreview, type BatchResult } from '../../contract/operator-batch.ts';
import { TURN_ACTIONS, type TurnAction } from '../../contract/operators.ts';
import { uuidv7 } from '../../kernel/ids.ts';
import type { Address } from './address.ts';
import { DataTable } from './DataTable.tsx';
import { short } from './format.ts';
import { Link } from './Link.tsx';
import { ReasonForm, useHeld } from './ReasonForm.tsx';
import { useMay } from './role.ts';
import type { ViewProps } from './view.ts';
import { request } from './wire.ts';
import { t } from './words.ts';

interface BatchFormProps extends Pick<ViewProps, 'go' | 'done' | 'hold'> {
  readonly filter: Address;
}

const BATCH_TIMEOUT_MS = 120_000;

interface Batch {
  readonly opened: { readonly preview: BatchPreview; readonly key: string } | null;
  readonly result: BatchResult | null;
  readonly said: string;
  readonly busy: boolean;
  readonly open: () => void;
  readonly close: () => void;
  readonly confirm: (reason: string, form: FormData) => void;
}

/** The preview, and what came of the deed. One key for each preview. */
function useBatch(action: TurnAction, filter: Address, done: () => void): Batch {
  const [opened, setOpened] = useState<Batch['opened']>(null);
  const [result, setResult] = useState<BatchResult | null>(null);
  const [said, setSaid] = useState('');
  const [busy, setBusy] = useState(false);
  async function working(work: () => Promise<string>): Promise<void> {
    setBusy(true);
    setSaid(await work().catch((error: Error) => error.message));
    setBusy(false);
  }
  async function look(): Promise<string> {
    setResult(null);
    const preview = await request<BatchPreview>('batch?preview=true', { action, filter });
    if (preview.tooMany) return t('More than {n} turns match. Narrow the filter down.', { n: BATCH_MAX_TURNS });
    if (preview.count === 0) return t('No turn matches.');
    setOpened({ preview, key: uuidv7() });
    return '';
  }
  async function act(reason: string, count: number, key: string): Promise<string> {
    const body = { action, filter, count, reason, idempotencyKey: key };
    const answer = await request<BatchResult>('batch', body, BATCH_TIMEOUT_MS);
    setOpened(null);
    done();
    setResult(answer);
    const of = (outcome: string) => answer.results.filter((one) => one.outcome === outcome).length;
    return t('Done: {done}. Refused: {refused}. Failed: {failed}.', { done: of('done'), refused: of('refused'), failed: of('failed') });
  }
  return {
    ...{ opened, result, said, busy },
    open: () => void working(look),
    close: () => setOpened(null),
    confirm: (reason, form) => void (opened && working(() => act(reason, Number(form.get('count')), opened.key))),
  };
}

export function BatchForm({ filter, go, done, hold }: BatchFormProps) {
  const may = useMay('operator');
  const id = useId();
  const [action, setAction] = useState<TurnAction>('stop');
  const { opened, result, said, busy, open, close, confirm } = useBatch(action, filter, done);
  const isOpen = opened !== null;
  const opener = useHeld(isOpen, hold);
  if (!may) return null;
  return (
    <section className="batch" aria-label={t('All of these')}>
      <div className="batch-head">
        <label htmlFor={id}>{t('All of these:')}</label>
        <select id={id} value={action} disabled={isOpen} onChange={(event) => setAction(event.target.value as TurnAction)}>
          {TURN_ACTIONS.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
        <button ref={opener} type="button" className="button" onClick={open} disabled={busy || isOpen} aria-expanded={isOpen}>
          {t('Look what it would do…')}
        </button>
      </div>
      {opened && (
        <ReasonForm
          label={t('Do it to all: {action}', { action })}
          effect={<Effects preview={opened.preview} />}
          busy={busy}
          close={close}
          confirm={confirm}
        >
          <label htmlFor={`${id}-count`}>{t('How many turns do you mean?')}</label>
          <input id={`${id}-count`} name="count" required inputMode="numeric" pattern="[0-9]+" autoComplete="off" />
        </ReasonForm>
      )}
      <p role="status" className="note">
        {said}
      </p>
      {result && <Results result={result} go={go} />}
    </section>
  );
}

function Results({ result, go }: { readonly result: BatchResult } & Pick<ViewProps, 'go'>) {
  return (
    <DataTable
      caption={t('Results')}
      head={[t('Turn'), t('Outcome'), t('Detail')]}
      rows={result.results.map(({ turn, outcome, detail }) => ({
        key: turn,
        cells: [
          <Link key="id" to={{ tab: 'turns', id: turn }} go={go}>
            {short(turn)}
          </Link>,
          outcome,
          <span key="detail" className="words">
            {detail}
          </span>,
        ],
      }))}
      empty={t('Nothing was done.')}
    />
  );
}

function Effects({ preview: { count, allowed, effects } }: { readonly preview: BatchPreview }) {
  return (
    <>
      <p>{t('{count} turns match; it would be done to {allowed}.', { count, allowed })}</p>
      <ul>
        {effects.map((one) => (
          <li key={one.effect}>
            {one.count} {one.allowed ? t('done') : t('refused')}: {one.effect}
          </li>
        ))}
      </ul>
    </>
  );
}
