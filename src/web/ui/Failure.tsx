import type { FailureItem } from '../store/timeline.ts';
import { t } from '../strings.ts';
import { usePage } from './context.ts';
import { AlertIcon } from './icons.tsx';

/** A turn without an answer: the server's own words say why, and the same question can be asked again. */
export function Failure({ item }: { item: FailureItem }) {
  const { controller } = usePage();
  const { question } = item;
  return (
    <div className="failure">
      <AlertIcon />
      <p dir="auto">{item.text === '' ? t.answer.failed : item.text}</p>
      {question !== null && (
        <button type="button" className="button small" onClick={() => void controller.ask(question)}>
          {t.actions.tryAgain}
        </button>
      )}
    </div>
  );
}
