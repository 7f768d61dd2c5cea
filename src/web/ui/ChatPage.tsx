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
import { Palette } from './Palette.tsx';
import { ShortcutsHelp } from './ShortcutsHelp.tsx';
import { Thread } from './Thread.tsx';
import { useCommands, useShortcuts } from './use-commands.ts';
import { useFinishNotice } from './use-finish-notice.ts';
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
  useFinishNotice(reading.unread);
  const [over, setOver] = useState<'palette' | 'shortcuts' | null>(null);
  const openPalette = () => setOver('palette');
  const openShortcuts = () => setOver('shortcuts');
  // A command of the palette may have opened something else by the time the palette is closed.
  const closed = (what: typeof over) => setOver((now) => (now === what ? null : now));
  const commands = useCommands({ items, follow, marked: reading.markId !== null, openPalette, openShortcuts });
  useShortcuts(commands);
  return (
    <AssistantRuntimeProvider runtime={runtime}>
      <ThreadPrimitive.Root className="page">
        <a className="skip-link" href="#composer-input">
          {t.skipToComposer}
        </a>
        <Header openPalette={openPalette} openShortcuts={openShortcuts} />
        <Banners />
        <Thread items={items} ready={ready} follow={follow} reading={reading} />
        <Composer />
        <LiveRegion />
        {over === 'palette' && <Palette commands={commands.filter(({ id }) => id !== 'palette')} onClose={() => closed('palette')} />}
        {over === 'shortcuts' && <ShortcutsHelp onClose={() => closed('shortcuts')} />}
      </ThreadPrimitive.Root>
    </AssistantRuntimeProvider>
  );
}
