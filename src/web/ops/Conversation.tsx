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

export function Conversation({ address, go, done, hold }: ViewProps) {
  const id = address['id'] ?? '';
  const [entry, setEntry] = useState<string | null>(null);
  const data = useRead<ConversationPage>(`conversations/${encodeURIComponent(id)}?${new URLSearchParams(queryOf(address, ['before']))}`);
  if (data === null) return null;
  const { mailbox, ended, attempts, ledger, sandboxes, outbox } = data;
  return (
    <>
      <h2 className="id">Conversation {id}</h2>
      <Facts page={data} go={go} />
      <h2>Mailbox</h2>
      <TurnTable caption="Mailbox" turns={mailbox} go={go} empty="Nothing runs and nothing waits." />
      <h2>Attempts</h2>
      <Attempts attempts={attempts} go={go} />
      <h2>Ledger</h2>
      <Ledger ledger={ledger} open={setEntry} />
      <Pages address={address} go={go} by="before" next={data.nextBefore} />
      {entry !== null && <Reveal key={entry} entryId={entry} close={() => setEntry(null)} done={done} hold={hold} />}
      <h2>Sandboxes</h2>
      <SandboxTable sandboxes={sandboxes} go={go} />
      {outbox.length > 0 && (
        <>
          <h2>Outbox</h2>
          <OutboxTable lines={outbox} go={go} />
        </>
      )}
      <h2>Ended turns</h2>
      <TurnTable caption="Ended turns" turns={ended} go={go} empty="None has ended." />
    </>
  );
}

function Facts({ page: { conversation, actor }, go }: { readonly page: ConversationPage } & Pick<ViewProps, 'go'>) {
  const here = actor ?? { state: 'not in the memory of this server', mailboxDepth: '–', oldestWaitMs: null, lastFault: null };
  const facts: readonly (readonly [string, string | number])[] = [
    ['Workspace', conversation.workspace],
    ['Account', conversation.account],
    ['Entries', `${conversation.entries}, ${conversation.erased} of them erased`],
    ['Version', conversation.version],
    ['Since', time(conversation.createdAt)],
    ['Actor', here.state],
    ['Commands in its mailbox', here.mailboxDepth],
    ['Oldest of them', duration(here.oldestWaitMs)],
    ['Last fault', here.lastFault ?? '–'],
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
            The conversation that it is a thread of
          </Link>
        </p>
      )}
    </>
  );
}

function Attempts({ attempts, go }: { readonly attempts: readonly AttemptLine[]; readonly go: (to: Address) => void }) {
  return (
    <DataTable
      caption="Attempts"
      head={['Turn', 'Epoch', 'How', 'Began', 'Over', 'Lease left', 'Server', 'Model calls']}
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
      empty="It was never claimed."
    />
  );
}

function Ledger({ ledger, open }: { readonly ledger: readonly LedgerLine[]; readonly open: (entryId: string) => void }) {
  const mayReveal = useMay('admin');
  return (
    <DataTable
      caption="Ledger"
      head={['Number', 'Kind', 'Bytes', 'When', ...(mayReveal ? ['Words'] : [])]}
      rows={ledger.map((line) => {
        if ('missing' in line)
          return { key: `gap ${line.seq}`, cells: [line.seq, `${line.missing} missing`, '–', '–', ...(mayReveal ? ['–'] : [])] };
        const words = line.erased ? 'erased' : <RevealLink key="words" entryId={line.id} seq={String(line.seq)} open={open} />;
        return { key: line.id, cells: [line.seq, line.kind, line.bytes, time(line.createdAt), ...(mayReveal ? [words] : [])] };
      })}
      empty="It has no entries."
    />
  );
}
