/**
 * Owns: which question comes next above or below what the person sees.
 */
import type { Follow } from './use-follow.ts';

/** A question this close to the upper edge counts as the one that is being read. */
const edgeSlackPx = 24;

/** The nearest question above the upper edge, or below it; null when there is none. */
export function nearestQuestion({ scroller, content }: Follow, direction: 'up' | 'down'): Element | null {
  const box = scroller.current;
  if (box === null || content.current === null) return null;
  const edgePx = box.getBoundingClientRect().top;
  const questions = [...content.current.getElementsByClassName('question')];
  const offsetPx = (question: Element) => question.getBoundingClientRect().top - edgePx;
  if (direction === 'down') return questions.find((question) => offsetPx(question) > edgeSlackPx) ?? null;
  return questions.findLast((question) => offsetPx(question) < -1) ?? null;
}
