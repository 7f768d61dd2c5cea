/**
 * Owns: the layout of the chat and the life of its controller.
 */
import { AssistantRuntimeProvider, ThreadPrimitive } from '@assistant-ui/react';
import { useContext, useEffect, useState, useSyncExternalStore } from 'react';
import { t } from '../strings.ts';
import { Banners } from './Banners.tsx';
import { Composer } from './Composer.tsx';
import { type Page, PageContext, usePage } from './context.ts';
import { ThreadContext, ThreadsContext, useConversationState, useKnownThreads, useMainNews, useThreadId } from './conversation.ts';
import { createPage } from './create-page.ts';
import { Header } from './Header.tsx';
import { LiveRegion } from './LiveRegion.tsx';
import { Palette } from './Palette.tsx';
import { PanelHeader } from './Panel.tsx';
import { ShortcutsHelp } from './ShortcutsHelp.tsx';
import { Thread } from './Thread.tsx';
import { ThreadHead } from './ThreadHead.tsx';
import { useAsk } from './use-ask.ts';
import { useCommands, useShortcuts } from './use-commands.ts';
import { useFinishNotice } from './use-finish-notice.ts';
import { useFollow } from './use-follow.ts';
import { useGap } from './use-gap.ts';
import { useGoal } from './use-goal.ts';
import { usePageTitle } from './use-page-title.ts';
import { useReading } from './use-reading.ts';
import { useHephRuntime } from './use-runtime.ts';
import { useTimeline } from './use-timeline.ts';

export function ChatPage({ session, navigation, host }: Pick<Page, 'session' | 'navigation' | 'host'>) {
  const [page] = useState(() => createPage(session, { navigation, host }));
  useEffect(() => page.run(), [page]);
  return (
    <PageContext.Provider value={page}>
      <Conversations />
    </PageContext.Provider>
  );
}

function Conversations() {
  const { controller, navigation } = usePage();
  const { threadId } = useSyncExternalStore(navigation.route.subscribe, navigation.route.get);
  const threads = useKnownThreads();
  useEffect(() => controller.opener.show(threadId), [controller, threadId]);
  return (
    <ThreadsContext.Provider value={threads}>
      <ThreadContext.Provider value={threadId}>
        <Conversation key={threadId ?? 'main'} />
      </ThreadContext.Provider>
    </ThreadsContext.Provider>
  );
}

/** One conversation: the runtime and its composer belong to it, so another conversation mounts anew (its `key`). */
function Conversation() {
  const page = usePage();
  const items = useTimeline();
  const threadId = useThreadId();
  const state = useConversationState();
  const runtime = useHephRuntime(useAsk());
  const follow = useFollow();
  const reading = useReading(items, follow);
  const { foundId, news } = useGoal(items, follow);
  const gapId = useGap(items, follow);
  const newElsewhere = useContext(ThreadsContext).list.filter(({ id, unread }) => unread && id !== threadId).length;
  const unread = reading.unread + newElsewhere + (useMainNews() ? 1 : 0);
  usePageTitle(unread);
  useFinishNotice(unread);
  const [over, setOver] = useState<'palette' | 'search' | 'shortcuts' | null>(null);
  const openPalette = () => setOver('palette');
  const openSearch = () => setOver('search');
  const openShortcuts = () => setOver('shortcuts');
  // A command of the palette may have opened something else by the time the palette is closed.
  const closed = (what: typeof over) => setOver((now) => (now === what ? null : now));
  const commands = useCommands({ items, follow, marked: reading.markId !== null, openPalette, openSearch, openShortcuts });
  useShortcuts(commands);
  return (
    <AssistantRuntimeProvider runtime={runtime}>
      <ThreadPrimitive.Root className="page">
        <a className="skip-link" href="#composer-input">
          {t.skipToComposer}
        </a>
        {page.host === null ? (
          <Header openPalette={openPalette} openSearch={openSearch} openShortcuts={openShortcuts} />
        ) : (
          <PanelHeader host={page.host} openSearch={openSearch} />
        )}
        <Banners />
        <ThreadHead />
        <p className={news === null ? 'visually-hidden' : 'goal-news'} role="status">
          {news !== null && t.search[news]}
        </p>
        <Thread items={items} follow={follow} reading={reading} foundId={foundId} gapId={gapId} />
        {state !== 'gone' && <Composer />}
        <LiveRegion />
        {over === 'palette' && <Palette commands={commands.filter(({ id }) => id !== 'palette')} onClose={() => closed('palette')} />}
        {over === 'search' && <Palette commands={null} onClose={() => closed('search')} />}
        {over === 'shortcuts' && <ShortcutsHelp onClose={() => closed('shortcuts')} />}
      </ThreadPrimitive.Root>
    </AssistantRuntimeProvider>
  );
}
