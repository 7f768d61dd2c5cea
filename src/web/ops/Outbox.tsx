/** What is to be said in Slack and is not said yet: per channel in numbers, then action by action. No words: an action names its turn. */
import type { OutboxLine, OutboxPage } from '../../contract/operator-views.ts';
import { OUTBOX_STATES } from '../../contract/slack.ts';
import { ActionForm } from './ActionForm.tsx';
import { DataTable } from './DataTable.tsx';
import { Filters, Pages, queryOf } from './Filters.tsx';
import { duration, short, time } from './format.ts';
import { Link } from './Link.tsx';
import { useRead } from './use-read.ts';
import type { ViewProps } from './view.ts';
import { t } from './words.ts';

const FIELDS = [
  { name: 'state', label: t('State'), choices: OUTBOX_STATES },
  { name: 'workspace', label: t('Workspace') },
  { name: 'channel', label: t('Channel') },
] as const;

export function Outbox({ address, go, done, hold }: ViewProps) {
  const query = queryOf(address, ['state', 'workspace', 'channel', 'after']);
  const data = useRead<OutboxPage>(`outbox?${new URLSearchParams(query)}`);
  const settle = data?.outbox.find(({ id }) => id === address['action']);
  return (
    <>
      <Filters address={address} go={go} fields={FIELDS} />
      {data && (
        <>
          <h2>{t('Channels')}</h2>
          <DataTable
            caption={t('Channels')}
            head={[t('Channel'), t('Workspace'), t('Team'), t('Pending'), t('Uncertain'), t('Parked'), t('Dead'), t('Oldest')]}
            rows={data.channels.map((one) => ({
              key: `${one.team} ${one.channel}`,
              cells: [
                <Link key="channel" to={{ tab: 'outbox', channel: one.channel }} go={go}>
                  {one.channel}
                </Link>,
                ...[one.workspace, one.team, one.pending],
                <span key="uncertain" className={`chip ${one.uncertain > 0 ? 'alarm' : ''}`}>
                  {one.uncertain}
                </span>,
                ...[one.parked, one.dead, duration(one.oldestMs)],
              ],
            }))}
            empty={t('Everything is said.')}
          />
          <h2>{t('Actions')}</h2>
          <OutboxTable lines={data.outbox} go={go} choose={(id) => go({ ...address, action: id })} />
          <Pages address={address} go={go} by="after" next={data.nextAfter} />
        </>
      )}
      {settle && (
        <section aria-label={t('Settle an action')}>
          <h2 className="id">
            {t('Action')} {settle.id} ({settle.state})
          </h2>
          <div className="actions">
            <ActionForm label={t('Mark as sent')} path={`outbox/${settle.id}/sent`} done={done} hold={hold} />
            <ActionForm label={t('Send again')} path={`outbox/${settle.id}/again`} done={done} hold={hold} />
          </div>
        </section>
      )}
    </>
  );
}

interface OutboxTableProps extends Pick<ViewProps, 'go'> {
  readonly lines: readonly OutboxLine[];
  /** Absent: nothing is settled here. */
  readonly choose?: (id: string) => void;
}

export function OutboxTable({ lines, go, choose }: OutboxTableProps) {
  return (
    <DataTable
      caption={t('Actions of the outbox')}
      head={[t('Action'), t('State'), t('Why'), t('Channel'), t('Turn'), t('Attempts'), t('Since')]}
      rows={lines.map((one) => ({
        key: one.id,
        cells: [
          choose === undefined ? (
            short(one.id)
          ) : (
            <button
              key="id"
              type="button"
              className="button small"
              aria-label={t('Settle {action}', { action: short(one.id) })}
              onClick={() => choose(one.id)}
            >
              {short(one.id)}
            </button>
          ),
          <span key="state" className={`chip ${one.state === 'UNCERTAIN' ? 'alarm' : ''}`}>
            {one.state}
          </span>,
          one.reason ?? '–',
          one.channel,
          one.turn === null ? (
            '–'
          ) : (
            <Link key="turn" to={{ tab: 'turns', id: one.turn }} go={go}>
              {short(one.turn)}
            </Link>
          ),
          one.attempts,
          time(one.createdAt),
        ],
      }))}
      empty={t('There is none.')}
    />
  );
}
