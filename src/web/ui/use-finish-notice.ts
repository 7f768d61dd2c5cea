/**
 * Owns: telling the person through the system that a turn is over, when they look elsewhere.
 * The words of the answer are never shown: a notification may stand on a locked screen.
 */
import { useEffect, useRef } from 'react';
import { announcements } from '../store/announce.ts';
import { t } from '../strings.ts';
import { usePage } from './context.ts';
import { useThreadId } from './conversation.ts';
import { isLooking } from './use-looking.ts';

/** Who reads the answer on another page or device within this time needs no word about it. */
const elsewhereMs = 1_500;

export function useFinishNotice(unread: number): void {
  const { controller, session, notifier } = usePage();
  const threadId = useThreadId();
  const latestUnread = useRef(unread);
  latestUnread.current = unread;
  useEffect(() => {
    const tag = `heph.${session.account.id}`;
    const tell = (body: string, isNews: () => boolean) => {
      if (isLooking()) return;
      setTimeout(() => {
        if (!isLooking() && isNews()) notifier.show(session.assistantName, { body, tag });
      }, elsewhereMs);
    };
    let before = controller.chat.get();
    return controller.chat.subscribe(() => {
      const after = controller.chat.get();
      for (const news of announcements(before, after, threadId ?? after.mainId)) {
        if (news.kind === 'done') tell(t.notify.ready, () => latestUnread.current > 0);
        if (news.kind === 'failed') tell(t.notify.failed(news.text), () => true);
      }
      before = after;
    });
  }, [controller, session, notifier, threadId]);
}
