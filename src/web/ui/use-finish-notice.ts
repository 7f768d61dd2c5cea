/**
 * Owns: telling the person through the system that a turn is over, when they look elsewhere.
 * The words of the answer are never shown: a notification may stand on a locked screen.
 */
import { useEffect, useRef } from 'react';
import { announcements } from '../store/announce.ts';
import { t } from '../strings.ts';
import { usePage } from './context.ts';
import { isLooking } from './use-looking.ts';

/** Who reads the answer on another page or device within this time needs no word about it. */
const elsewhereMs = 1_500;

export function useFinishNotice(unread: number): void {
  const { controller, session, notifier } = usePage();
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
      // Whichever conversation it was: a thread may answer while the main one is in view, and the other way round.
      const ids = after.turns === before.turns ? [] : Object.keys(after.conversations);
      for (const news of ids.flatMap((id) => announcements(before, after, id))) {
        if (news.kind === 'done') tell(t.notify.ready, () => latestUnread.current > 0);
        if (news.kind === 'failed') tell(t.notify.failed(news.text), () => true);
      }
      before = after;
    });
  }, [controller, session, notifier]);
}
