import { t } from '../strings.ts';
import { usePage } from './context.ts';
import { useThreadId } from './conversation.ts';
import { FlameIcon } from './icons.tsx';
import { useAsk } from './use-ask.ts';
import { useReadOnly } from './use-connection.ts';

/** Before the first question: what this is, and three questions to start with. */
export function EmptyState() {
  const { session } = usePage();
  const ask = useAsk();
  const readOnly = useReadOnly();
  const threadId = useThreadId();
  if (threadId !== null) return <p className="thread-empty">{t.thread.empty}</p>;
  return (
    <div className="empty">
      <FlameIcon className="empty-mark" />
      <h2 dir="auto">{t.empty.heading(session.assistantName)}</h2>
      <p>{t.empty.text}</p>
      {!readOnly && (
        <ul className="examples">
          {t.empty.examples.map((example) => (
            <li key={example}>
              <button type="button" className="example" onClick={() => ask(example)}>
                {example}
              </button>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
