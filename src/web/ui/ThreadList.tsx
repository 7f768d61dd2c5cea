/**
 * Owns: the list of threads in the header, and the way into a thread.
 */
import { type MouseEvent, type ReactNode, useContext, useId, useRef, useState } from 'react';
import type { ThreadSummary } from '../store/threads.ts';
import { t } from '../strings.ts';
import { usePage } from './context.ts';
import { ThreadsContext, useThreadId } from './conversation.ts';
import { ThreadIcon } from './icons.tsx';

/** Threads that are listed at once; the others are behind a press. */
const shownAtFirst = 10;

interface ThreadLinkProps {
  /** null: the main conversation. */
  threadId: string | null;
  /** A message to be shown there. */
  entryId?: string | null;
  /** The message at which the link stands. */
  from?: string | null;
  className: string;
  label?: string;
  current?: boolean;
  onGo?(): void;
  children: ReactNode;
}

/** A link that opens in this page, and in another tab when the person asks the browser for that. */
export function ThreadLink({ threadId, entryId = null, from = null, className, label, current = false, onGo, children }: ThreadLinkProps) {
  const { navigation } = usePage();
  const onClick = (event: MouseEvent) => {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    onGo?.();
    navigation.open(threadId, { entryId, from });
  };
  return (
    <a
      className={className}
      href={navigation.href(threadId)}
      onClick={onClick}
      title={label}
      {...(current ? { 'aria-current': 'page' } : {})}
    >
      {children}
    </a>
  );
}

function Row({ thread, current, onGo }: { thread: ThreadSummary; current: boolean; onGo(): void }) {
  const { dates } = usePage();
  return (
    <li>
      <ThreadLink threadId={thread.id} className="menu-item thread-row" current={current} onGo={onGo}>
        <span className={thread.title === '' ? 'thread-title erased' : 'thread-title'} dir="auto">
          {thread.title === '' ? t.erased : thread.title}
        </span>
        {thread.unsent && <span className="chip">{t.status.unsent}</span>}
        {thread.answering && <span className="chip">{t.thread.answering}</span>}
        {thread.unread && <span className="unread-dot" role="img" aria-label={t.thread.fresh} />}
        <time dateTime={thread.at} title={dates.full(thread.at)}>
          {dates.dayLabel(thread.at, Date.now())}
        </time>
      </ThreadLink>
    </li>
  );
}

export function ThreadList() {
  const id = useId();
  const panel = useRef<HTMLDivElement>(null);
  const { list } = useContext(ThreadsContext);
  const threadId = useThreadId();
  const [all, setAll] = useState(false);
  const news = list.filter(({ unread, id: thread }) => unread && thread !== threadId).length;
  const label = news > 0 ? t.thread.listNews(news) : t.thread.list;
  const shown = all ? list : list.slice(0, shownAtFirst);
  const close = () => panel.current?.hidePopover();
  return (
    <>
      <button type="button" className="button quiet icon-only with-dot" popoverTarget={id} aria-label={label} title={label}>
        <ThreadIcon />
        {news > 0 && <span className="unread-dot" aria-hidden="true" />}
      </button>
      <div ref={panel} id={id} popover="auto" className="menu" role="dialog" aria-label={t.thread.list}>
        {list.length === 0 && <p className="menu-note">{t.thread.none}</p>}
        <ul className="menu-list">
          {shown.map((thread) => (
            <Row key={thread.id} thread={thread} current={thread.id === threadId} onGo={close} />
          ))}
        </ul>
        {shown.length < list.length && (
          <button type="button" className="menu-item" onClick={() => setAll(true)}>
            {t.thread.all(list.length)}
          </button>
        )}
      </div>
    </>
  );
}
