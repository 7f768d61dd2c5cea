/**
 * Owns: where the conversation is scrolled to. At the end it follows what is written; anywhere else the first visible message keeps its
 * place, whatever is added above it or below it.
 * The browser's own scroll anchoring is switched off for this element (styles/thread.css): it does nothing at the very top, where older
 * messages are added.
 */
import { type RefObject, useCallback, useEffect, useRef, useState } from 'react';

/** Closer to the end than this counts as at the end. */
const endSlackPx = 40;
/** What is shown on purpose stands this far below the upper edge. */
const shownBelowPx = 16;

interface Anchor {
  element: Element;
  topPx: number;
}

function distanceToEndPx(scroller: HTMLElement): number {
  return scroller.scrollHeight - scroller.clientHeight - scroller.scrollTop;
}

/** The first message (or place of messages that are not drawn) that is at least partly visible, and where it is. */
function findAnchor(scroller: HTMLElement, content: HTMLElement): Anchor | null {
  const edgePx = scroller.getBoundingClientRect().top;
  for (const element of content.querySelectorAll('[data-message-id], .chunk:empty')) {
    const { top, bottom } = element.getBoundingClientRect();
    if (bottom > edgePx) return { element, topPx: top - edgePx };
  }
  return null;
}

function restore(scroller: HTMLElement, anchor: Anchor): void {
  const { top } = anchor.element.getBoundingClientRect();
  scroller.scrollTop += top - scroller.getBoundingClientRect().top - anchor.topPx;
}

interface Watched {
  box: HTMLElement;
  inner: HTMLElement;
  /** Whether the end is followed. */
  following: { current: boolean };
  setAtEnd(atEnd: boolean): void;
}

/** Follows or keeps the place from now on. Returns the way to undo it. */
function keepPlace({ box, inner, following, setAtEnd }: Watched): () => void {
  let anchor: Anchor | null = null;
  let lastTopPx = box.scrollTop;
  let lastSizesPx = '';
  const sizesPx = () => `${box.scrollHeight}/${box.clientHeight}`;
  const remember = () => {
    lastTopPx = box.scrollTop;
    lastSizesPx = sizesPx();
    anchor = following.current ? null : findAnchor(box, inner);
  };
  const onScroll = () => {
    if (sizesPx() !== lastSizesPx) {
      // Something grew or shrank in the same frame, and `onResize` is about to run: it needs the anchor from before that, where the
      // person has scrolled it to.
      if (anchor !== null) anchor = { element: anchor.element, topPx: anchor.topPx - (box.scrollTop - lastTopPx) };
      lastTopPx = box.scrollTop;
      return;
    }
    const near = distanceToEndPx(box) <= endSlackPx;
    // Only a person leaves the end, and only upwards.
    const upByHand = box.scrollTop < lastTopPx - 1;
    if (upByHand) following.current = distanceToEndPx(box) <= 1;
    else if (near) following.current = true;
    setAtEnd(near || following.current);
    remember();
  };
  // While words arrive in every frame, the wheel itself is the surest sign.
  const onWheel = (event: WheelEvent) => {
    if (event.deltaY < 0 && box.scrollTop > 0) following.current = false;
  };
  const onResize = () => {
    if (following.current) box.scrollTop = box.scrollHeight;
    else if (anchor?.element.isConnected) restore(box, anchor);
    setAtEnd(following.current || distanceToEndPx(box) <= endSlackPx);
    remember();
  };
  const observer = new ResizeObserver(onResize);
  observer.observe(box);
  observer.observe(inner);
  box.addEventListener('scroll', onScroll, { passive: true });
  box.addEventListener('wheel', onWheel, { passive: true });
  return () => {
    observer.disconnect();
    box.removeEventListener('scroll', onScroll);
    box.removeEventListener('wheel', onWheel);
  };
}

export interface Follow {
  scroller: RefObject<HTMLDivElement | null>;
  content: RefObject<HTMLDivElement | null>;
  atEnd: boolean;
  toEnd(): void;
  /** Brings an element of the conversation below its upper edge, and stays there. */
  show(element: Element): void;
}

export function useFollow(): Follow {
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const following = useRef(true);
  const [atEnd, setAtEnd] = useState(true);

  const toEnd = useCallback(() => {
    following.current = true;
    setAtEnd(true);
    if (scroller.current !== null) scroller.current.scrollTop = scroller.current.scrollHeight;
  }, []);

  const show = useCallback((element: Element) => {
    const box = scroller.current;
    if (box === null) return;
    following.current = false;
    box.scrollTop += element.getBoundingClientRect().top - box.getBoundingClientRect().top - shownBelowPx;
    setAtEnd(distanceToEndPx(box) <= endSlackPx);
  }, []);

  useEffect(() => {
    const [box, inner] = [scroller.current, content.current];
    if (box !== null && inner !== null) return keepPlace({ box, inner, following, setAtEnd });
  }, []);

  return { scroller, content, atEnd, toEnd, show };
}
