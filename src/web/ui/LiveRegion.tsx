/**
 * Owns: what a screen reader hears: start, stage (seldom), end, failure. Never the words of an answer as they are written.
 */
import { useEffect, useRef, useState } from 'react';
import { type Announcement, announcements } from '../store/announce.ts';
import { t } from '../strings.ts';
import { usePage } from './context.ts';
import { useThreadId } from './conversation.ts';

/** Stages change several times a second; a listener wants to hear one now and then. */
const stageEveryMs = 8_000;

function wordsOf(announcement: Announcement, name: string): string {
  switch (announcement.kind) {
    case 'started':
      return t.live.started(name);
    case 'stage':
      return t.live.stage(name, announcement.stage);
    case 'failed':
      return t.live.failed(announcement.text);
    case 'done':
    case 'stopped':
    case 'unsent':
      return t.live[announcement.kind];
  }
}

export function LiveRegion() {
  const { controller, session } = usePage();
  const threadId = useThreadId();
  const [words, setWords] = useState('');
  const lastStageMs = useRef(Number.NEGATIVE_INFINITY);
  useEffect(() => {
    let before = controller.chat.get();
    return controller.chat.subscribe(() => {
      const after = controller.chat.get();
      const now = performance.now();
      const heard = announcements(before, after, threadId ?? after.mainId).filter(
        (item) => item.kind !== 'stage' || now - lastStageMs.current >= stageEveryMs,
      );
      before = after;
      if (heard.length === 0) return;
      lastStageMs.current = now;
      setWords(heard.map((item) => wordsOf(item, session.assistantName)).join(' '));
    });
  }, [controller, session, threadId]);
  return (
    <div className="visually-hidden" role="status" aria-live="polite">
      {words}
    </div>
  );
}
