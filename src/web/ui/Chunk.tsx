/**
 * Owns: a piece of the conversation: drawn while it is near what the person sees, else an empty place as high as it was.
 * 10,000 messages are then as light as a hundred. Scrolling stays where it is when a height was wrong (use-follow.ts).
 */
import { memo, useEffect, useRef, useState } from 'react';
import type { Chunk as Piece } from '../store/chunks.ts';
import type { TimelineItem } from '../store/timeline.ts';
import { type Days, dayOf } from './days.ts';
import { Message } from './Message.tsx';

/** How high a message is taken to be before it was ever drawn. */
const guessedMessagePx = 110;
/** How far beyond the edges a piece is still drawn. More than a person scrolls between two frames. */
const nearPx = 2_000;

interface ChunkProps {
  chunk: Piece<TimelineItem>;
  /** The message above the piece: whether its first one begins a day. */
  above: TimelineItem | undefined;
  days: Days;
  /** The message of this piece above which the mark of what is new stands; such a piece is always drawn. */
  markId: string | null;
  /** The message of this piece to which the person went. */
  foundId: string | null;
  /** The message of this piece above which messages are missing. */
  gapId: string | null;
  /** It is at the end of the conversation, where a page opens. */
  atEnd: boolean;
}

/** Whether the piece is near, and how high it was when it was last drawn, in pixels. */
function useNearness(atEnd: boolean, messages: number) {
  const box = useRef<HTMLDivElement>(null);
  const [near, setNear] = useState(atEnd);
  const heightPx = useRef(messages * guessedMessagePx);
  useEffect(() => {
    const place = box.current;
    if (place === null) return;
    const watcher = new IntersectionObserver(
      (sightings) => {
        const sighting = sightings.at(-1);
        if (sighting === undefined) return;
        if (!sighting.isIntersecting && place.firstChild !== null) heightPx.current = place.offsetHeight;
        setNear(sighting.isIntersecting);
      },
      { root: place.closest('.scroller'), rootMargin: `${nearPx}px 0px ${nearPx}px 0px` },
    );
    watcher.observe(place);
    return () => watcher.disconnect();
  }, []);
  return { box, near, heightPx };
}

export const Chunk = memo(function Chunk({ chunk, above, days, markId, foundId, gapId, atEnd }: ChunkProps) {
  const { box, near, heightPx } = useNearness(atEnd, chunk.items.length);
  const drawn = near || markId !== null || foundId !== null;
  return (
    <div ref={box} className="chunk" style={drawn ? undefined : { blockSize: heightPx.current }}>
      {drawn &&
        chunk.items.map((item, index) => (
          <Message
            key={item.id}
            item={item}
            day={dayOf(days, index === 0 ? above : chunk.items[index - 1], item)}
            marked={item.id === markId}
            found={item.id === foundId}
            afterGap={item.id === gapId}
          />
        ))}
    </div>
  );
});
