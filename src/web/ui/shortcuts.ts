/**
 * Owns: which keys do what, in one table that the keyboard, the palette and the help all read.
 * Every shortcut has a modifier or is Escape: single letters would fire while somebody speaks to their computer (WCAG 2.1.4).
 */
import { t } from '../strings.ts';

/** `mod` is Ctrl, and Command on Apple's keyboards. */
export interface Shortcut {
  readonly modifiers: readonly ('mod' | 'alt' | 'shift')[];
  /** `KeyboardEvent.key`, letters in lower case. */
  readonly key: string;
}

export const SHORTCUTS = {
  palette: { modifiers: ['mod'], key: 'k' },
  search: { modifiers: ['mod', 'shift'], key: 'f' },
  shortcuts: { modifiers: ['mod'], key: '/' },
  write: { modifiers: ['shift'], key: 'Escape' },
  stop: { modifiers: [], key: 'Escape' },
  previousQuestion: { modifiers: ['alt'], key: 'ArrowUp' },
  nextQuestion: { modifiers: ['alt'], key: 'ArrowDown' },
  latest: { modifiers: ['alt'], key: 'End' },
} as const satisfies Readonly<Record<string, Shortcut>>;

const isApple = /Mac|iPhone|iPad/.test(navigator.platform ?? '');

export function matches({ modifiers, key }: Shortcut, event: KeyboardEvent): boolean {
  const wants = (modifier: Shortcut['modifiers'][number]) => modifiers.includes(modifier);
  const [mod, other] = isApple ? [event.metaKey, event.ctrlKey] : [event.ctrlKey, event.metaKey];
  // A slash may need Shift on the person's keyboard.
  const shiftFits = key === '/' || event.shiftKey === wants('shift');
  return event.key.toLowerCase() === key.toLowerCase() && mod === wants('mod') && !other && event.altKey === wants('alt') && shiftFits;
}

const KEY_NAMES: Readonly<Record<string, string>> = {
  Escape: t.keys.escape,
  Enter: t.keys.enter,
  ArrowUp: t.keys.up,
  ArrowDown: t.keys.down,
  End: t.keys.end,
};

/** The keys as they are printed on the person's keyboard, in the order in which they are pressed. */
export function keyNames({ modifiers, key }: Shortcut): string[] {
  const names = modifiers.map((modifier) => (modifier === 'mod' && isApple ? '⌘' : t.keys[modifier]));
  return [...names, KEY_NAMES[key] ?? key.toUpperCase()];
}

/** Something lies over the conversation and has the keyboard. */
export function isCovered(): boolean {
  return document.querySelector('dialog[open], [popover]:popover-open') !== null;
}
