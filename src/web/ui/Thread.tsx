/**
 * Owns: the conversation's scrolling area: older messages, messages, the empty state, the way to the end.
 */
import { useEffect, useMemo, useRef } from 'react';
import { chunked, type Chunk as Piece } from '../store/chunks.ts';
import type { TimelineItem } from '../store/timeline.ts';
import { t } from '../strings.ts';
import { Chunk } from './Chunk.tsx';
import { useChat, usePage } from './context.ts';
import { useConversationId, useConversationState } from './conversation.ts';
import { EmptyState } from './EmptyState.tsx';
import { DownIcon } from './icons.tsx';
import { ThreadTrouble } from './ThreadHead.tsx';
import type { Follow } from './use-follow.ts';
import type { Reading } from './use-reading.ts';
import { useToday } from './use-today.ts';

/** A button that also presses itself when it comes near the visible part. After a failure only a person presses it. */
function OlderMessages() {
  const { controller } = usePage();
  const conversationId = useConversationId();
  const range = useChat((state) => (conversationId === null ? undefined : state.ranges[conversationId]));
  const load = () => void controller.loadOlder(conversationId);
  const button = useRef<HTMLButtonElement>(null);
  const older = range?.older;
  const nextBefore = range?.island === undefined ? range?.nextBefore : range.island.from;
  // A page that comes at once leaves `older` as it was, and the button in sight: each page needs an observer of its own.
  // biome-ignore lint/correctness/useExhaustiveDependencies: see above.
  useEffect(() => {
    const element = button.current;
    if (element === null || older !== 'idle') return;
    // Several sightings may come at once; the last one is true now.
    const observer = new IntersectionObserver((sightings) => sightings.at(-1)?.isIntersecting && load(), {
      root: element.closest('.scroller'),
      rootMargin: '300px 0px 0px 0px',
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, [controller, conversationId, older, nextBefore]);
  if (range === undefined || nextBefore === null) return null;
  const text = { idle: t.actions.loadOlder, loading: t.actions.loadingOlder, failed: t.actions.olderFailed }[range.older];
  return (
    <div className="older">
      <button ref={button} type="button" className="button quiet small" onClick={load} disabled={range.older === 'loading'}>
        {text}
      </button>
    </div>
  );
}

/** As many pieces as a page needs to fill a window when it opens. */
const piecesAtEnd = 3;

function useChunks(items: readonly TimelineItem[]): readonly Piece<TimelineItem>[] {
  const known = useRef<readonly Piece<TimelineItem>[]>([]);
  return useMemo(() => {
    known.current = chunked(items, known.current);
    return known.current;
  }, [items]);
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
  follow: Follow;
  reading: Reading;
  /** The item to which the person went. */
  foundId: string | null;
  /** The item above which messages are missing. */
  gapId: string | null;
}

export function Thread({ items, follow, reading, foundId, gapId }: ThreadProps) {
  const { dates } = usePage();
  const conversation = useConversationState();
  const ready = conversation !== 'loading';
  const todayMs = useToday(dates);
  const days = useMemo(() => ({ dates, todayMs }), [dates, todayMs]);
  const chunks = useChunks(items);
  const { scroller, content, atEnd, toEnd } = follow;
  const lastQuestion = items.findLast((item) => item.kind === 'question');
  const sendingId = lastQuestion?.kind === 'question' && lastQuestion.status.kind === 'sending' ? lastQuestion.id : null;
  useEffect(() => {
    if (sendingId !== null) toEnd();
  }, [sendingId, toEnd]);
  const troubled = conversation === 'failed' || conversation === 'gone';
  const empty = ready && items.length === 0;
  return (
    <div className="thread">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard must be able to scroll the conversation. */}
      <main className="scroller" ref={scroller} tabIndex={0} aria-label={t.conversation} aria-busy={!ready}>
        <div className={empty ? 'column column-empty' : 'column'} ref={content}>
          {!ready && items.length === 0 && <Skeleton />}
          {troubled && <ThreadTrouble gone={conversation === 'gone'} />}
          {empty && !troubled && <EmptyState />}
          {items.length > 0 && <OlderMessages />}
          {chunks.map((chunk, index) => (
            <Chunk
              key={chunk.key}
              chunk={chunk}
              above={chunks[index - 1]?.items.at(-1)}
              days={days}
              atEnd={index >= chunks.length - piecesAtEnd}
              markId={chunk.items.some(({ id }) => id === reading.markId) ? reading.markId : null}
              foundId={chunk.items.some(({ id }) => id === foundId) ? foundId : null}
              gapId={chunk.items.some(({ id }) => id === gapId) ? gapId : null}
            />
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
