/**
 * Owns: the choice between light, dark and the system's colours, kept in this browser.
 */
import { readChoice, writeSetting } from '../settings.ts';
import { Store } from '../store/store.ts';

export const THEMES = ['auto', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

const name = 'heph.theme';

/** The choice in force. */
export const theme = new Store<Theme>(readChoice(name, THEMES));

export function applyTheme(): void {
  document.documentElement.dataset['theme'] = theme.get();
}

export function chooseTheme(choice: Theme): void {
  theme.set(choice);
  applyTheme();
  writeSetting(name, choice);
}
