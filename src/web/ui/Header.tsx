import { useState } from 'react';
import { t } from '../strings.ts';
import { usePage } from './context.ts';
import { AutoThemeIcon, FlameIcon, MoonIcon, SunIcon } from './icons.tsx';
import { savedTheme, saveTheme, THEMES, type Theme } from './theme.ts';

const icons = { auto: AutoThemeIcon, light: SunIcon, dark: MoonIcon } satisfies Record<Theme, () => React.ReactNode>;

/** One button that goes through the choices; its name says which one is in force. */
function ThemeButton() {
  const [theme, setTheme] = useState(savedTheme);
  const Icon = icons[theme];
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? 'auto';
  const label = `${t.theme.label}: ${t.theme[theme]}`;
  const choose = () => {
    saveTheme(next);
    setTheme(next);
  };
  return (
    <button type="button" className="button quiet icon-only" onClick={choose} aria-label={label} title={label}>
      <Icon />
    </button>
  );
}

export function Header() {
  const { session } = usePage();
  return (
    <header className="header">
      <FlameIcon className="header-mark" />
      <h1 dir="auto">{session.assistantName}</h1>
      <span className="header-workspace" dir="auto">
        {session.workspace.name}
      </span>
      <span className="header-space" />
      <ThemeButton />
    </header>
  );
}
