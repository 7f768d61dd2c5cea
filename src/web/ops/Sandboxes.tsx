/** Sandboxes by state, server and workspace; the memory of those whose runner is this server's. */
import { SANDBOX_STATES, type SandboxesPage, type SandboxLine } from '../../contract/operator-views.ts';
import { DataTable } from './DataTable.tsx';
import { Filters, Pages, queryOf } from './Filters.tsx';
import { duration, short } from './format.ts';
import { Link } from './Link.tsx';
import { useRead } from './use-read.ts';
import type { ViewProps } from './view.ts';
import { t } from './words.ts';

const FIELDS = [
  { name: 'host', label: t('Server') },
  { name: 'workspace', label: t('Workspace') },
] as const;
const MIB = 1024 * 1024;

export function Sandboxes({ address, go }: ViewProps) {
  const state = address['state'] ?? 'live';
  const here = { ...address, state };
  const data = useRead<SandboxesPage>(`sandboxes?${new URLSearchParams(queryOf(here, ['state', 'host', 'workspace', 'before']))}`);
  return (
    <>
      <nav className="filters" aria-label={t('State of sandboxes')}>
        {SANDBOX_STATES.map((one) => (
          <Link key={one} to={{ ...address, state: one, before: '' }} go={go} current={one === state}>
            {one}
          </Link>
        ))}
      </nav>
      <Filters address={here} go={go} fields={FIELDS} />
      {data && <SandboxTable sandboxes={data.sandboxes} go={go} />}
      <Pages address={here} go={go} by="before" next={data?.nextBefore} />
    </>
  );
}

export function SandboxTable({ sandboxes, go }: { readonly sandboxes: readonly SandboxLine[] } & Pick<ViewProps, 'go'>) {
  return (
    <DataTable
      caption={t('Sandboxes')}
      head={[t('Sandbox'), t('State'), t('Conversation'), t('Workspace'), t('Server'), t('Age'), t('Turn'), t('Runner'), t('Memory')]}
      rows={sandboxes.map(({ id, state, conversation, workspace, host, ageMs, turn, runner }) => ({
        key: id,
        cells: [
          short(id),
          <span key="state" className={`chip ${state === 'START_FAILED' ? 'alarm' : ''}`}>
            {state}
          </span>,
          <Link key="conversation" to={{ tab: 'actors', id: conversation }} go={go}>
            {short(conversation)}
          </Link>,
          workspace,
          `${short(host.name)}${host.alive ? '' : ` (${t('dead')})`}`,
          duration(ageMs),
          turn === null ? (
            '–'
          ) : (
            <Link key="turn" to={{ tab: 'turns', id: turn }} go={go}>
              {short(turn)}
            </Link>
          ),
          runner?.state ?? '–',
          runner?.memoryBytes ? `${Math.round(runner.memoryBytes / MIB)} MiB` : '–',
        ],
      }))}
      empty={t('There are none.')}
    />
  );
}
