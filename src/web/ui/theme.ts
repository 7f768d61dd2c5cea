/**
 * Owns: the choice between light, dark and the system's colours, kept in this browser.
 */
import { readChoice, writeSetting } from '../settings.ts';

export const THEMES = ['auto', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

const name = 'heph.theme';

export function savedTheme(): Theme {
  return readChoice(name, THEMES);
}

export function applyTheme(theme: Theme): void {
  document.documentElement.dataset['theme'] = theme;
}

export function saveTheme(theme: Theme): void {
  applyTheme(theme);
  writeSetting(name, theme);
}
