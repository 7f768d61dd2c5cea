/**
 * Owns: what can be done with one message: talk about it in a thread, vote, delete it.
 */
import { type KeyboardEvent, useContext, useEffect, useRef, useState } from 'react';
import type { Vote } from '../store/state.ts';
import { t } from '../strings.ts';
import { usePage } from './context.ts';
import { ThreadsContext, useThreadId } from './conversation.ts';
import { ThreadIcon, ThumbIcon, TrashIcon } from './icons.tsx';
import { ThreadLink } from './ThreadList.tsx';
import { useReadOnly } from './use-connection.ts';

/** Begins a thread at a message of the main conversation, or leads to the one that is there. */
export function ThreadAction({ entryId }: { entryId: string }) {
  const { controller, navigation } = usePage();
  const inThread = useThreadId() !== null;
  const thread = useContext(ThreadsContext).byParent.get(entryId);
  const readOnly = useReadOnly();
  const [beginning, setBeginning] = useState(false);
  if (inThread) return null;
  if (thread !== undefined) {
    return (
      <ThreadLink threadId={thread.id} from={entryId} className="button quiet small thread-chip" label={t.thread.open}>
        <ThreadIcon />
        <span>{t.thread.one}</span>
        {thread.unread && <span className="unread-dot" role="img" aria-label={t.thread.fresh} />}
      </ThreadLink>
    );
  }
  if (readOnly) return null;
  const begin = async () => {
    setBeginning(true);
    const threadId = await controller.wishes.beginThread(entryId);
    setBeginning(false);
    if (threadId !== null) navigation.open(threadId, { from: entryId });
  };
  const label = beginning ? t.thread.beginning : t.thread.begin;
  return (
    <button
      type="button"
      className="button quiet small icon-only"
      disabled={beginning}
      onClick={() => void begin()}
      aria-label={label}
      title={label}
    >
      <ThreadIcon />
    </button>
  );
}

/** Good or bad. Pressing the same again takes it back. */
export function Votes({ entryId, vote }: { entryId: string; vote: Vote }) {
  const { controller } = usePage();
  const readOnly = useReadOnly();
  if (readOnly) return null;
  return (['up', 'down'] as const).map((which) => (
    <button
      key={which}
      type="button"
      className="button quiet small icon-only vote"
      aria-pressed={vote === which}
      onClick={() => void controller.wishes.vote(entryId, vote === which ? null : which)}
      aria-label={t.vote[which]}
      title={t.vote[which]}
    >
      <ThumbIcon down={which === 'down'} />
    </button>
  ));
}

/** Asks once more in the same place, because nothing brings the words back. */
export function DeleteAction({ entryId, deleting }: { entryId: string; deleting: boolean }) {
  const { controller } = usePage();
  const readOnly = useReadOnly();
  const [asking, setAsking] = useState(false);
  const start = useRef<HTMLButtonElement>(null);
  const keep = useRef<HTMLButtonElement>(null);
  const wasAsking = useRef(false);
  useEffect(() => {
    if (asking) keep.current?.focus();
    else if (wasAsking.current) start.current?.focus();
    wasAsking.current = asking;
  }, [asking]);
  if (readOnly) return null;
  if (!asking) {
    return (
      <button
        ref={start}
        type="button"
        className="button quiet small icon-only"
        onClick={() => setAsking(true)}
        aria-label={t.remove.start}
        title={t.remove.start}
      >
        <TrashIcon />
      </button>
    );
  }
  const erase = async (message: Element | null) => {
    const done = await controller.wishes.erase(entryId);
    // The buttons go with the words: what is left of the message has the focus.
    if (done && message instanceof HTMLElement) message.focus({ preventScroll: true });
    else setAsking(false);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Escape') return;
    event.preventDefault();
    setAsking(false);
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: it stands inside of a line of text, where a fieldset is no phrase.
    <span className="confirm" role="group" aria-label={t.remove.sure} onKeyDown={onKeyDown}>
      <span>{t.remove.sure}</span>
      <span className="status-actions">
        <button
          type="button"
          className="button small danger"
          disabled={deleting}
          onClick={(event) => void erase(event.currentTarget.closest('.message'))}
        >
          {deleting ? t.remove.busy : t.remove.yes}
        </button>
        <button ref={keep} type="button" className="button quiet small" disabled={deleting} onClick={() => setAsking(false)}>
          {t.remove.no}
        </button>
      </span>
    </span>
  );
}
