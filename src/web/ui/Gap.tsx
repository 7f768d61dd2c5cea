/**
 * Owns: what stands where messages between two pieces of the conversation are not loaded: a button that also presses itself when it comes near.
 */
import { useEffect, useRef } from 'react';
import { t } from '../strings.ts';
import { useChat, usePage } from './context.ts';
import { useConversationId } from './conversation.ts';

export function Gap() {
  const { controller } = usePage();
  const conversationId = useConversationId();
  const island = useChat(({ ranges }) => (conversationId === null ? undefined : ranges[conversationId]?.island));
  const button = useRef<HTMLButtonElement>(null);
  const load = () => conversationId !== null && void controller.opener.loadNewer(conversationId);
  const newer = island?.newer;
  const to = island?.to;
  // Each page needs an observer of its own: one that comes at once leaves the button in sight. After a failure only a person presses it.
  // biome-ignore lint/correctness/useExhaustiveDependencies: see above.
  useEffect(() => {
    const element = button.current;
    if (element === null || newer !== 'idle') return;
    const observer = new IntersectionObserver((sightings) => sightings.at(-1)?.isIntersecting && load(), {
      root: element.closest('.scroller'),
      rootMargin: '0px 0px 300px 0px',
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, [controller, conversationId, newer, to]);
  if (island === undefined) return null;
  const text = { idle: t.actions.loadNewer, loading: t.actions.loadingNewer, failed: t.actions.newerFailed }[island.newer];
  return (
    <div className="older gap">
      <button ref={button} type="button" className="button quiet small" onClick={load} disabled={island.newer === 'loading'}>
        {text}
      </button>
    </div>
  );
}
