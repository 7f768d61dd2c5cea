/** One conversation and its actor: the mailbox in order, every attempt, the ledger by place and size, sandboxes, the outbox. Never its words. */
import { useState } from 'react';
import type { AttemptLine, ConversationPage, LedgerLine } from '../../contract/operator-views.ts';
import type { Address } from './address.ts';
import { DataTable } from './DataTable.tsx';
import { Pages, queryOf } from './Filters.tsx';
import { duration, short, time } from './format.ts';
import { Link } from './Link.tsx';
import { OutboxTable } from './Outbox.tsx';
import { Reveal, RevealLink } from './Reveal.tsx';
import { useMay } from './role.ts';
import { SandboxTable } from './Sandboxes.tsx';
import { TurnTable } from './Turns.tsx';
import { useRead } from './use-read.ts';
import type { ViewProps } from './view.ts';
import { t } from './words.ts';

export function Conversation({ address, go, done, hold }: ViewProps) {
  const id = address['id'] ?? '';
  const [entry, setEntry] = useState<string | null>(null);
  const data = useRead<ConversationPage>(`conversations/${encodeURIComponent(id)}?${new URLSearchParams(queryOf(address, ['before']))}`);
  if (data === null) return null;
  const { mailbox, ended, attempts, ledger, sandboxes, outbox } = data;
  return (
    <>
      <h2 className="id">
        {t('Conversation')} {id}
      </h2>
      <Facts page={data} go={go} />
      <h2>{t('Mailbox')}</h2>
      <TurnTable caption={t('Mailbox')} turns={mailbox} go={go} empty={t('Nothing runs and nothing waits.')} />
      <h2>{t('Attempts')}</h2>
      <Attempts attempts={attempts} go={go} />
      <h2>{t('Ledger')}</h2>
      <Ledger ledger={ledger} open={setEntry} />
      <Pages address={address} go={go} by="before" next={data.nextBefore} />
      {entry !== null && <Reveal key={entry} entryId={entry} close={() => setEntry(null)} done={done} hold={hold} />}
      <h2>{t('Sandboxes')}</h2>
      <SandboxTable sandboxes={sandboxes} go={go} />
      {outbox.length > 0 && (
        <>
          <h2>{t('Outbox')}</h2>
          <OutboxTable lines={outbox} go={go} />
        </>
      )}
      <h2>{t('Ended turns')}</h2>
      <TurnTable caption={t('Ended turns')} turns={ended} go={go} empty={t('None has ended.')} />
    </>
  );
}

function Facts({ page: { conversation, actor }, go }: { readonly page: ConversationPage } & Pick<ViewProps, 'go'>) {
  const here = actor ?? { state: t('not in the memory of this server'), mailboxDepth: '–', oldestWaitMs: null, lastFault: null };
  const facts: readonly (readonly [string, string | number])[] = [
    [t('Workspace'), conversation.workspace],
    [t('Account'), conversation.account],
    [t('Entries'), t('{n}, {erased} of them erased', { n: conversation.entries, erased: conversation.erased })],
    [t('Version'), conversation.version],
    [t('Since'), time(conversation.createdAt)],
    [t('Actor'), here.state],
    [t('Commands in its mailbox'), here.mailboxDepth],
    [t('Oldest of them'), duration(here.oldestWaitMs)],
    [t('Last fault'), here.lastFault ?? '–'],
  ];
  return (
    <>
      <dl className="facts">
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {conversation.parent !== null && (
        <p>
          <Link to={{ tab: 'actors', id: conversation.parent }} go={go}>
            {t('The conversation that it is a thread of')}
          </Link>
        </p>
      )}
    </>
  );
}

function Attempts({ attempts, go }: { readonly attempts: readonly AttemptLine[]; readonly go: (to: Address) => void }) {
  return (
    <DataTable
      caption={t('Attempts')}
      head={[t('Turn'), t('Epoch'), t('How'), t('Began'), t('Over'), t('Lease left'), t('Server'), t('Model calls')]}
      rows={attempts.map((one) => ({
        key: `${one.turn} ${one.epoch}`,
        cells: [
          <Link key="turn" to={{ tab: 'turns', id: one.turn }} go={go}>
            {short(one.turn)}
          </Link>,
          one.epoch,
          one.how,
          time(one.beganAt),
          time(one.endedAt),
          duration(one.leaseMs),
          one.host === null ? '–' : short(one.host),
          one.calls,
        ],
      }))}
      empty={t('It was never claimed.')}
    />
  );
}

function Ledger({ ledger, open }: { readonly ledger: readonly LedgerLine[]; readonly open: (entryId: string) => void }) {
  const mayReveal = useMay('admin');
  return (
    <DataTable
      caption={t('Ledger')}
      head={[t('Number'), t('Kind'), t('Bytes'), t('When'), ...(mayReveal ? [t('Words')] : [])]}
      rows={ledger.map((line) => {
        if ('missing' in line)
          return {
            key: `gap ${line.seq}`,
            cells: [line.seq, t('{n} missing', { n: line.missing }), '–', '–', ...(mayReveal ? ['–'] : [])],
          };
        const words = line.erased ? t('erased') : <RevealLink key="words" entryId={line.id} seq={String(line.seq)} open={open} />;
        return { key: line.id, cells: [line.seq, line.kind, line.bytes, time(line.createdAt), ...(mayReveal ? [words] : [])] };
      })}
      empty={t('It has no entries.')}
    />
  );
}
