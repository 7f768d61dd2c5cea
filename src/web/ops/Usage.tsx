/** What was spent this month, by the installation and by workspace. */
import type { UsageView } from '../../contract/admin.ts';
import { DataTable } from './DataTable.tsx';
import { useRead } from './use-read.ts';

export function Usage() {
  const data = useRead<{ usage: readonly UsageView[] }>('usage');
  if (data === null) return null;
  return (
    <>
      <p className="note">Calls of unknown cost are in no sum. Prices and budgets: heph model budget.</p>
      <DataTable
        caption="Usage of this month"
        head={['Purse', 'Month (UTC)', 'Spent', 'Budget', 'Calls', 'Of unknown cost']}
        rows={data.usage.map((purse) => ({
          key: purse.workspace ?? '',
          cells: [purse.workspace ?? 'installation', purse.month, purse.spent, purse.budget ?? '–', purse.calls, purse.unknownCalls],
        }))}
        empty="Nothing was spent."
      />
    </>
  );
}
