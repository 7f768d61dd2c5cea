/** What was spent in a month: by the installation and by workspace with its budget, then by model. */
import type { UsageView } from '../../contract/admin.ts';
import type { SpendingLine } from '../../contract/operator-views.ts';
import { DataTable } from './DataTable.tsx';
import { Filters, queryOf } from './Filters.tsx';
import { useRead } from './use-read.ts';
import type { ViewProps } from './view.ts';
import { t } from './words.ts';

const FIELDS = [
  { name: 'month', label: t('Month (2026-11)') },
  { name: 'workspace', label: t('Workspace') },
] as const;

export function Usage({ address, go }: ViewProps) {
  const query = new URLSearchParams(queryOf(address, ['month', 'workspace']));
  return (
    <>
      <Filters address={address} go={go} fields={FIELDS} />
      <p className="note">{t('Months are those of UTC. Calls of unknown cost are in no sum. Prices and budgets: heph model budget.')}</p>
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
      caption={t('Usage of this month')}
      head={[t('Purse'), t('Month (UTC)'), t('Spent'), t('Budget'), t('Calls'), t('Of unknown cost')]}
      rows={data.usage.map((purse) => ({
        key: purse.workspace ?? '',
        cells: [purse.workspace ?? t('installation'), purse.month, purse.spent, purse.budget ?? '–', purse.calls, purse.unknownCalls],
      }))}
      empty={t('Nothing was spent.')}
    />
  );
}

function Models({ query }: { readonly query: URLSearchParams }) {
  const data = useRead<{ spending: readonly SpendingLine[] }>(`spending?${query}`);
  if (data === null) return null;
  return (
    <>
      <h2>{t('By workspace and model')}</h2>
      <DataTable
        caption={t('By workspace and model')}
        head={[
          t('Workspace'),
          t('Model'),
          t('Cost'),
          t('Calls'),
          t('Open'),
          t('Of unknown cost'),
          t('Tokens in'),
          t('Cached'),
          t('Tokens out'),
        ]}
        rows={data.spending.map(({ workspace, model, cost, calls, open, unknown, tokens }) => ({
          key: `${workspace} ${model}`,
          cells: [workspace, model, cost, calls, open, unknown, tokens.input, tokens.cacheRead, tokens.output],
        }))}
        empty={t('No model was called.')}
      />
    </>
  );
}
