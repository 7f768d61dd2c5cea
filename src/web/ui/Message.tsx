/**
 * Owns: one message: which kind it is, its frame and its day.
 */
import { memo } from 'react';
import type { TimelineItem } from '../store/timeline.ts';
import { t } from '../strings.ts';
import { Answer } from './Answer.tsx';
import { usePage } from './context.ts';
import { Failure } from './Failure.tsx';
import { Gap } from './Gap.tsx';
import { Question } from './Question.tsx';
import { MARK_CLASS } from './use-reading.ts';

function labelOf(item: TimelineItem, assistantName: string, time: string): string {
  const who = item.kind === 'question' ? t.you : item.kind === 'answer' && item.digest ? t.digest : assistantName;
  return `${who}, ${time}`;
}

interface MessageProps {
  item: TimelineItem;
  /** The name of the day when this is its first message, else null. */
  day: string | null;
  /** The mark of what is new stands above it. */
  marked: boolean;
  /** The person went to this message. */
  found: boolean;
  /** Messages above it are missing. */
  afterGap: boolean;
}

export const Message = memo(function Message({ item, day, marked, found, afterGap }: MessageProps) {
  const { dates, session, navigation } = usePage();
  return (
    <>
      {afterGap && <Gap />}
      {day !== null && <h2 className="day">{day}</h2>}
      {marked && <p className={MARK_CLASS}>{t.unread.marker}</p>}
      <article
        className={`message ${item.kind}${found ? ' found' : ''}`}
        tabIndex={-1}
        onBlur={(event) => found && event.relatedTarget !== null && navigation.goal.set(null)}
        data-message-id={item.id}
        data-entry-id={item.entryId ?? undefined}
        aria-label={labelOf(item, session.assistantName, dates.time(item.at))}
      >
        {item.kind === 'question' && <Question item={item} />}
        {item.kind === 'answer' && <Answer item={item} />}
        {item.kind === 'failure' && <Failure item={item} />}
      </article>
    </>
  );
});
