/** What operators do to the whole: pause and resume claims, drain this server; and the log of everything that was done. */
import type { OperatorActionView } from '../../contract/operators.ts';
import { ActionForm } from './ActionForm.tsx';
import { DataTable } from './DataTable.tsx';
import { note, short, time } from './format.ts';
import { Link } from './Link.tsx';
import { useRead } from './use-read.ts';
import type { ViewProps } from './view.ts';

interface ActionsPage {
  readonly actions: readonly OperatorActionView[];
  readonly nextBefore: string | null;
}

/** A cell that may take several lines. */
function Words({ text }: { text: string }) {
  return <span className="words">{text}</span>;
}

export function Actions({ address, go, done, hold }: ViewProps) {
  const data = useRead<ActionsPage>(`actions${address['before'] ? `?before=${address['before']}` : ''}`);
  return (
    <>
      <div className="actions">
        <ActionForm label="Pause claims" path="claims/pause" workspace={null} done={done} hold={hold} />
        <ActionForm label="Resume claims" path="claims/resume" workspace={null} done={done} hold={hold} />
        <ActionForm label="Drain this server" path="drain" done={done} hold={hold} />
      </div>
      <p className="note">Of one workspace: heph claims pause --workspace SLUG. Of a turn: open it under Turns.</p>
      <h2>What was done</h2>
      {data && (
        <DataTable
          caption="What was done"
          head={['When', 'Action', 'Target', 'By', 'Why', 'Before', 'After']}
          rows={data.actions.map((one) => ({
            key: one.id,
            cells: [
              time(one.at),
              one.action,
              short(one.target),
              one.operator,
              <Words key="why" text={one.reason} />,
              <Words key="before" text={note(one.before)} />,
              <Words key="after" text={one.state === 'BEGUN' ? 'cut off: repeat it with its key' : note(one.after)} />,
            ],
          }))}
          empty="Nothing was done yet."
        />
      )}
      <p className="pages">
        {address['before'] && (
          <Link to={{ tab: 'actions' }} go={go}>
            First page
          </Link>
        )}
        {data?.nextBefore && (
          <Link to={{ tab: 'actions', before: data.nextBefore }} go={go}>
            Next page
          </Link>
        )}
      </p>
    </>
  );
}
