import type { FailureCause } from '../store/failures.ts';
import type { FailureItem } from '../store/timeline.ts';
import { t } from '../strings.ts';
import { AlertIcon, ClockIcon, LockIcon } from './icons.tsx';
import { useAsk } from './use-ask.ts';
import { useReadOnly } from './use-connection.ts';

const icons = { wait: ClockIcon, settings: LockIcon, final: LockIcon, fault: AlertIcon } satisfies Record<FailureCause, unknown>;

/** A turn without an answer: the server's own words say why, and the same question can be asked again where that can help. */
export function Failure({ item }: { item: FailureItem }) {
  const ask = useAsk();
  const readOnly = useReadOnly();
  const { question, cause } = item;
  const Icon = icons[cause];
  return (
    <div className={`failure-box ${cause}`}>
      <Icon />
      <p dir="auto" {...(item.text === '' ? {} : { lang: t.serverLanguage })}>
        {item.text === '' ? t.answer.failed : item.text}
      </p>
      {question !== null && cause !== 'final' && !readOnly && (
        <button type="button" className="button small" onClick={() => ask(question)}>
          {t.actions.tryAgain}
        </button>
      )}
    </div>
  );
}
