/**
 * Owns: the layout of the chat and the life of its controller.
 */
import { AssistantRuntimeProvider, ThreadPrimitive } from '@assistant-ui/react';
import { useEffect, useState } from 'react';
import type { Session } from '../../contract/web.ts';
import { t } from '../strings.ts';
import { Banners } from './Banners.tsx';
import { Composer } from './Composer.tsx';
import { PageContext, useChat, usePage } from './context.ts';
import { createPage } from './create-page.ts';
import { Header } from './Header.tsx';
import { LiveRegion } from './LiveRegion.tsx';
import { Thread } from './Thread.tsx';
import { useFollow } from './use-follow.ts';
import { usePageTitle } from './use-page-title.ts';
import { useReading } from './use-reading.ts';
import { useHephRuntime } from './use-runtime.ts';
import { useTimeline } from './use-timeline.ts';

export function ChatPage({ session }: { session: Session }) {
  const [page] = useState(() => createPage(session));
  useEffect(() => page.run(), [page]);
  return (
    <PageContext.Provider value={page}>
      <Conversation key="main" />
    </PageContext.Provider>
  );
}

/** One conversation: the runtime and its composer belong to it, so another conversation mounts anew (its `key`). */
function Conversation() {
  const { controller } = usePage();
  const items = useTimeline();
  const ready = useChat((state) => state.ready);
  const runtime = useHephRuntime(controller);
  const follow = useFollow();
  const reading = useReading(items, follow);
  usePageTitle(reading.unread);
  return (
    <AssistantRuntimeProvider runtime={runtime}>
      <ThreadPrimitive.Root className="page">
        <a className="skip-link" href="#composer-input">
          {t.skipToComposer}
        </a>
        <Header />
        <Banners />
        <Thread items={items} ready={ready} follow={follow} reading={reading} />
        <Composer />
        <LiveRegion />
      </ThreadPrimitive.Root>
    </AssistantRuntimeProvider>
  );
}
