/**
 * Owns: one message: which kind it is, its frame and its day.
 */
import { memo } from 'react';
import type { TimelineItem } from '../store/timeline.ts';
import { t } from '../strings.ts';
import { Answer } from './Answer.tsx';
import { usePage } from './context.ts';
import { Failure } from './Failure.tsx';
import { Question } from './Question.tsx';

function labelOf(item: TimelineItem, assistantName: string, time: string): string {
  const who = item.kind === 'question' ? t.you : item.kind === 'answer' && item.digest ? t.digest : assistantName;
  return `${who}, ${time}`;
}

/** @param day the name of the day when this is its first message, else null */
export const Message = memo(function Message({ item, day }: { item: TimelineItem; day: string | null }) {
  const { dates, session } = usePage();
  return (
    <>
      {day !== null && <h2 className="day">{day}</h2>}
      <article
        className={`message ${item.kind}`}
        data-message-id={item.id}
        aria-label={labelOf(item, session.assistantName, dates.time(item.at))}
      >
        {item.kind === 'question' && <Question item={item} />}
        {item.kind === 'answer' && <Answer item={item} />}
        {item.kind === 'failure' && <Failure item={item} />}
      </article>
    </>
  );
});
