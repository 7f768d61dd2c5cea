/**
 * Owns: the conversation's scrolling area: older messages, messages, the empty state, the way to the end.
 */
import { useEffect, useRef } from 'react';
import type { TimelineItem } from '../store/timeline.ts';
import { t } from '../strings.ts';
import { useChat, usePage } from './context.ts';
import type { Dates } from './dates.ts';
import { EmptyState } from './EmptyState.tsx';
import { DownIcon } from './icons.tsx';
import { Message } from './Message.tsx';
import type { Follow } from './use-follow.ts';
import type { Reading } from './use-reading.ts';
import { useToday } from './use-today.ts';

/** A button that also presses itself when it comes near the visible part. After a failure only a person presses it. */
function OlderMessages() {
  const { controller } = usePage();
  const range = useChat((state) => (state.mainId === null ? undefined : state.ranges[state.mainId]));
  const button = useRef<HTMLButtonElement>(null);
  const older = range?.older;
  useEffect(() => {
    const element = button.current;
    if (element === null || older !== 'idle') return;
    const observer = new IntersectionObserver(([entry]) => entry?.isIntersecting && void controller.loadOlder(), {
      root: element.closest('.scroller'),
      rootMargin: '300px 0px 0px 0px',
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, [controller, older]);
  if (range === undefined || range.nextBefore === null) return null;
  const text = { idle: t.actions.loadOlder, loading: t.actions.loadingOlder, failed: t.actions.olderFailed }[range.older];
  return (
    <div className="older">
      <button
        ref={button}
        type="button"
        className="button quiet small"
        onClick={() => void controller.loadOlder()}
        disabled={range.older === 'loading'}
      >
        {text}
      </button>
    </div>
  );
}

/** The name of the item's day when it is the first one of it. */
function dayOf({ dates, todayMs }: { dates: Dates; todayMs: number }, above: TimelineItem | undefined, item: TimelineItem): string | null {
  const sameDay = above !== undefined && dates.dayKey(above.at) === dates.dayKey(item.at);
  return sameDay ? null : dates.dayLabel(item.at, todayMs);
}

function Skeleton() {
  return (
    <div className="skeleton" aria-hidden="true">
      <span className="skeleton-question" />
      <span />
      <span />
      <span className="skeleton-short" />
    </div>
  );
}

interface ThreadProps {
  items: readonly TimelineItem[];
  ready: boolean;
  follow: Follow;
  reading: Reading;
}

export function Thread({ items, ready, follow, reading }: ThreadProps) {
  const { dates } = usePage();
  const days = { dates, todayMs: useToday(dates) };
  const { scroller, content, atEnd, toEnd } = follow;
  const lastQuestion = items.findLast((item) => item.kind === 'question');
  const sendingId = lastQuestion?.kind === 'question' && lastQuestion.status.kind === 'sending' ? lastQuestion.id : null;
  useEffect(() => {
    if (sendingId !== null) toEnd();
  }, [sendingId, toEnd]);
  const empty = ready && items.length === 0;
  return (
    <div className="thread">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard must be able to scroll the conversation. */}
      <main className="scroller" ref={scroller} tabIndex={0} aria-label={t.conversation} aria-busy={!ready}>
        <div className={empty ? 'column column-empty' : 'column'} ref={content}>
          {!ready && items.length === 0 && <Skeleton />}
          {empty && <EmptyState />}
          {items.length > 0 && <OlderMessages />}
          {items.map((item, index) => (
            <Message key={item.id} item={item} day={dayOf(days, items[index - 1], item)} marked={item.id === reading.markId} />
          ))}
        </div>
      </main>
      {!atEnd && items.length > 0 && (
        <button type="button" className="button jump" onClick={toEnd}>
          <DownIcon />
          {reading.unread > 0 ? t.unread.jump(reading.unread) : t.actions.jumpToLatest}
        </button>
      )}
    </div>
  );
}
