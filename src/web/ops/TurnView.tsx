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

export function TurnView({ address, go, done, hold }: ViewProps) {
  const id = address['id'] ?? '';
  const [entry, setEntry] = useState<string | null>(null);
  const mayReveal = useMay('admin');
  const data = useRead<OperatorTurnPage>(`turns/${encodeURIComponent(id)}`);
  if (data === null) return null;
  const { turn, timeline } = data;
  const facts: readonly (readonly [string, string | number])[] = [
    ['State', turn.phase === 'ended' ? turn.status : turn.phase],
    ['Waits for, stuck by', waitText(turn)],
    ['Age', duration(turn.ageMs)],
    ['Attempt', `${turn.attempt} (epoch ${turn.epoch})`],
    ['Lease left', duration(turn.leaseMs)],
    ['Deadline left', duration(turn.deadlineMs)],
    ['Workspace', turn.workspace],
    ['Server', turn.host === null ? '–' : `${turn.host.name}${turn.host.alive ? '' : ' (dead)'}`],
    ['Error', turn.error ?? '–'],
  ];
  return (
    <>
      <h2 className="id">Turn {turn.id}</h2>
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
          <ActionForm label="Stop" path={`turns/${turn.id}/stop`} done={done} hold={hold} />
          <ActionForm label="Requeue" path={`turns/${turn.id}/requeue`} done={done} hold={hold} />
          <ActionForm label="Skip" path={`turns/${turn.id}/skip`} done={done} hold={hold} />
          <ActionForm label="Release lease" path={`turns/${turn.id}/release`} done={done} hold={hold} />
        </div>
      )}
      <p>
        <Link to={{ tab: 'actors', id: turn.conversationId }} go={go}>
          Its conversation: mailbox, attempts, ledger
        </Link>
      </p>
      <h2>Timeline</h2>
      <DataTable
        caption="Timeline"
        head={['When', 'What', 'Detail', ...(mayReveal ? ['Words'] : [])]}
        rows={timeline.map(({ at, what, detail, entryId }, nth) => {
          const words = entryId ? <RevealLink key="words" entryId={entryId} seq={detail} open={setEntry} /> : '';
          return { key: `${nth}`, cells: [time(at), what, detail, ...(mayReveal ? [words] : [])] };
        })}
        empty="Nothing is known of it."
      />
      {entry !== null && <Reveal key={entry} entryId={entry} close={() => setEntry(null)} done={done} hold={hold} />}
    </>
  );
}
