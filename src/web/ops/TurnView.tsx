/** One turn: what it is now, what an operator may do, and what happened when. */
import { useState } from 'react';
import type { OperatorTurnPage } from '../../contract/operators.ts';
import { ActionForm } from './ActionForm.tsx';
import { DataTable } from './DataTable.tsx';
import { duration, time } from './format.ts';
import { Link } from './Link.tsx';
import { Reveal, RevealLink } from './Reveal.tsx';
import { useMay } from './role.ts';
import { waitText } from './Turns.tsx';
import { useRead } from './use-read.ts';
import type { ViewProps } from './view.ts';
import { t } from './words.ts';

export function TurnView({ address, go, done, hold }: ViewProps) {
  const id = address['id'] ?? '';
  const [entry, setEntry] = useState<string | null>(null);
  const mayReveal = useMay('admin');
  const data = useRead<OperatorTurnPage>(`turns/${encodeURIComponent(id)}`);
  if (data === null) return null;
  const { turn, timeline } = data;
  const facts: readonly (readonly [string, string | number])[] = [
    [t('State'), turn.phase === 'ended' ? turn.status : turn.phase],
    [t('Waits for, stuck by'), waitText(turn)],
    [t('Age'), duration(turn.ageMs)],
    [t('Attempt'), t('{n} (epoch {epoch})', { n: turn.attempt, epoch: turn.epoch })],
    [t('Lease left'), duration(turn.leaseMs)],
    [t('Deadline left'), duration(turn.deadlineMs)],
    [t('Workspace'), turn.workspace],
    [t('Server'), turn.host === null ? '–' : `${turn.host.name}${turn.host.alive ? '' : ` (${t('dead')})`}`],
    [t('Error'), turn.error ?? '–'],
  ];
  return (
    <>
      <h2 className="id">
        {t('Turn')} {turn.id}
      </h2>
      {turn.stuck.map(({ rule, text }) => (
        <p key={rule} className="banner alarm">
          <strong>{rule}</strong>: {text}
        </p>
      ))}
      <dl className="facts">
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {turn.phase !== 'ended' && (
        <div className="actions">
          <ActionForm label={t('Stop')} path={`turns/${turn.id}/stop`} done={done} hold={hold} />
          <ActionForm label={t('Requeue')} path={`turns/${turn.id}/requeue`} done={done} hold={hold} />
          <ActionForm label={t('Skip')} path={`turns/${turn.id}/skip`} done={done} hold={hold} />
          <ActionForm label={t('Release lease')} path={`turns/${turn.id}/release`} done={done} hold={hold} />
        </div>
      )}
      <p>
        <Link to={{ tab: 'actors', id: turn.conversationId }} go={go}>
          {t('Its conversation: mailbox, attempts, ledger')}
        </Link>
      </p>
      <h2>{t('Timeline')}</h2>
      <DataTable
        caption={t('Timeline')}
        head={[t('When'), t('What'), t('Detail'), ...(mayReveal ? [t('Words')] : [])]}
        rows={timeline.map(({ at, what, detail, entryId }, nth) => {
          const words = entryId ? <RevealLink key="words" entryId={entryId} seq={detail} open={setEntry} /> : '';
          return { key: `${nth}`, cells: [time(at), what, detail, ...(mayReveal ? [words] : [])] };
        })}
        empty={t('Nothing is known of it.')}
      />
      {entry !== null && <Reveal key={entry} entryId={entry} close={() => setEntry(null)} done={done} hold={hold} />}
    </>
  );
}
