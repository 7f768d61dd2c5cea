/**
 * Owns: the choice between light, dark and the system's colours, kept in this browser.
 */
export const THEMES = ['auto', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

const key = 'heph.theme';

export function savedTheme(): Theme {
  try {
    const saved = localStorage.getItem(key);
    return THEMES.find((theme) => theme === saved) ?? 'auto';
  } catch {
    return 'auto';
  }
}

export function applyTheme(theme: Theme): void {
  document.documentElement.dataset['theme'] = theme;
}

export function saveTheme(theme: Theme): void {
  applyTheme(theme);
  try {
    localStorage.setItem(key, theme);
  } catch {
    // A browser that keeps nothing still shows the choice until it is closed.
  }
}
