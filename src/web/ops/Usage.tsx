/** What was spent in a month: by the installation and by workspace with its budget, then by model. */
import type { UsageView } from '../../contract/admin.ts';
import type { SpendingLine } from '../../contract/operator-views.ts';
import { DataTable } from './DataTable.tsx';
import { Filters, queryOf } from './Filters.tsx';
import { useRead } from './use-read.ts';
import type { ViewProps } from './view.ts';

const FIELDS = [
  { name: 'month', label: 'Month (2026-11)' },
  { name: 'workspace', label: 'Workspace' },
] as const;

export function Usage({ address, go }: ViewProps) {
  const query = new URLSearchParams(queryOf(address, ['month', 'workspace']));
  return (
    <>
      <Filters address={address} go={go} fields={FIELDS} />
      <p className="note">Months are those of UTC. Calls of unknown cost are in no sum. Prices and budgets: heph model budget.</p>
      <Purses query={query} />
      <Models query={query} />
    </>
  );
}

function Purses({ query }: { readonly query: URLSearchParams }) {
  const data = useRead<{ usage: readonly UsageView[] }>(`usage?${query}`);
  if (data === null) return null;
  return (
    <DataTable
      caption="Usage of this month"
      head={['Purse', 'Month (UTC)', 'Spent', 'Budget', 'Calls', 'Of unknown cost']}
      rows={data.usage.map((purse) => ({
        key: purse.workspace ?? '',
        cells: [purse.workspace ?? 'installation', purse.month, purse.spent, purse.budget ?? '–', purse.calls, purse.unknownCalls],
      }))}
      empty="Nothing was spent."
    />
  );
}

function Models({ query }: { readonly query: URLSearchParams }) {
  const data = useRead<{ spending: readonly SpendingLine[] }>(`spending?${query}`);
  if (data === null) return null;
  return (
    <>
      <h2>By workspace and model</h2>
      <DataTable
        caption="By workspace and model"
        head={['Workspace', 'Model', 'Cost', 'Calls', 'Open', 'Of unknown cost', 'Tokens in', 'Cached', 'Tokens out']}
        rows={data.spending.map(({ workspace, model, cost, calls, open, unknown, tokens }) => ({
          key: `${workspace} ${model}`,
          cells: [workspace, model, cost, calls, open, unknown, tokens.input, tokens.cacheRead, tokens.output],
        }))}
        empty="No model was called."
      />
    </>
  );
}
