/** The actors in the memory of this server, those with work first; at most a hundred lines. */
import { DataTable } from './DataTable.tsx';
import { duration, short } from './format.ts';
import { Link } from './Link.tsx';
import { useRead } from './use-read.ts';
import type { ViewProps } from './view.ts';
import type { ActorLine } from './wire.ts';
import { t } from './words.ts';

const LINES_MAX = 100;

export function Actors({ go }: ViewProps) {
  const data = useRead<{ actors: readonly ActorLine[] }>('actors');
  if (data === null) return null;
  const urgent = [...data.actors].sort((a, b) => b.oldestWaitMs - a.oldestWaitMs || b.mailboxDepth - a.mailboxDepth);
  const { length } = urgent;
  return (
    <>
      <p className="note">
        {t('{n} in memory', { n: length })}
        {length > LINES_MAX && `; ${t('the {n} that wait longest are shown', { n: LINES_MAX })}`}.
      </p>
      <DataTable
        caption={t('Actors')}
        head={[t('Actor'), t('Kind'), t('State'), t('Mailbox'), t('Oldest wait'), t('Commands'), t('Last fault')]}
        rows={urgent.slice(0, LINES_MAX).map((actor) => ({
          key: `${actor.kind} ${actor.id}`,
          cells: [
            actor.kind === 'conversation' ? (
              <Link key="id" to={{ tab: 'actors', id: actor.id }} go={go}>
                {short(actor.id)}
              </Link>
            ) : (
              short(actor.id)
            ),
            actor.kind,
            actor.state,
            actor.mailboxDepth,
            duration(actor.oldestWaitMs),
            actor.commandsHandled,
            actor.lastFault ?? '–',
          ],
        }))}
        empty={t('No actor is in memory.')}
      />
    </>
  );
}
