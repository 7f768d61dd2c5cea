/**
 * Owns: what stands above a thread: the message that it is about, and the way back. And what is said when a thread cannot be shown.
 */
import { t } from '../strings.ts';
import { useChat, usePage } from './context.ts';
import { useMainNews, useThreadId } from './conversation.ts';
import { AlertIcon, BackIcon } from './icons.tsx';
import { ThreadLink } from './ThreadList.tsx';

export function ThreadHead() {
  const threadId = useThreadId();
  const info = useChat((state) => (threadId === null ? undefined : state.conversations[threadId]));
  const parentId = info?.parentEntryId ?? null;
  const parent = useChat((state) => (parentId === null ? null : (state.entries[parentId] ?? state.quotes[parentId] ?? null)));
  const news = useMainNews();
  if (threadId === null) return null;
  const words = parent?.text ?? info?.title ?? '';
  return (
    <section className="thread-head" aria-label={t.thread.about}>
      <ThreadLink threadId={null} entryId={parentId} className="button quiet small">
        <BackIcon />
        {t.thread.back}
        {news && <span className="unread-dot" role="img" aria-label={t.thread.fresh} />}
      </ThreadLink>
      {info !== undefined && (
        <blockquote className="thread-parent" dir="auto">
          {words === '' ? <em>{t.erased}</em> : words}
        </blockquote>
      )}
    </section>
  );
}

export function ThreadTrouble({ gone }: { gone: boolean }) {
  const { controller } = usePage();
  return (
    <div className={gone ? 'failure-box final' : 'failure-box wait'} role="alert">
      <AlertIcon />
      <p>{gone ? t.thread.gone : t.thread.failed}</p>
      {!gone && (
        <button type="button" className="button small" onClick={() => controller.opener.retry()}>
          {t.actions.tryAgain}
        </button>
      )}
    </div>
  );
}
