/**
 * Owns: where the conversation is scrolled to. At the end it follows what is written; anywhere else the first visible message keeps its
 * place, whatever is added above it or below it.
 * The browser's own scroll anchoring is switched off for this element (styles/thread.css): it does nothing at the very top, where older
 * messages are added.
 */
import { type RefObject, useCallback, useEffect, useRef, useState } from 'react';

/** Closer to the end than this counts as at the end. */
const endSlackPx = 40;

interface Anchor {
  element: Element;
  topPx: number;
}

function distanceToEndPx(scroller: HTMLElement): number {
  return scroller.scrollHeight - scroller.clientHeight - scroller.scrollTop;
}

/** The first message that is at least partly visible, and where it is. */
function findAnchor(scroller: HTMLElement, content: HTMLElement): Anchor | null {
  const edgePx = scroller.getBoundingClientRect().top;
  for (const element of content.querySelectorAll('[data-message-id]')) {
    const { top, bottom } = element.getBoundingClientRect();
    if (bottom > edgePx) return { element, topPx: top - edgePx };
  }
  return null;
}

function restore(scroller: HTMLElement, anchor: Anchor): void {
  const { top } = anchor.element.getBoundingClientRect();
  scroller.scrollTop += top - scroller.getBoundingClientRect().top - anchor.topPx;
}

export interface Follow {
  scroller: RefObject<HTMLDivElement | null>;
  content: RefObject<HTMLDivElement | null>;
  atEnd: boolean;
  toEnd(): void;
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

  useEffect(() => {
    const box = scroller.current;
    const inner = content.current;
    if (box === null || inner === null) return;
    let anchor: Anchor | null = null;
    let lastTopPx = box.scrollTop;
    let lastHeightPx = box.scrollHeight;
    const remember = () => {
      lastTopPx = box.scrollTop;
      lastHeightPx = box.scrollHeight;
      anchor = following.current ? null : findAnchor(box, inner);
    };
    const onScroll = () => {
      const near = distanceToEndPx(box) <= endSlackPx;
      // Up by hand leaves the end at once, even by a little: otherwise the next words would pull the reader back.
      const byHand = box.scrollTop < lastTopPx - 1 && box.scrollHeight === lastHeightPx;
      following.current = near && !(byHand && distanceToEndPx(box) > 1);
      setAtEnd(near);
      remember();
    };
    const onResize = () => {
      if (following.current) box.scrollTop = box.scrollHeight;
      else if (anchor?.element.isConnected) restore(box, anchor);
      setAtEnd(distanceToEndPx(box) <= endSlackPx);
      remember();
    };
    const observer = new ResizeObserver(onResize);
    observer.observe(box);
    observer.observe(inner);
    box.addEventListener('scroll', onScroll, { passive: true });
    return () => {
      observer.disconnect();
      box.removeEventListener('scroll', onScroll);
    };
  }, []);

  return { scroller, content, atEnd, toEnd };
}
