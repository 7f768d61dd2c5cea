import { t } from '../strings.ts';
import { usePage } from './context.ts';
import { FlameIcon, SearchIcon } from './icons.tsx';
import { Menu } from './Menu.tsx';
import { ThreadList } from './ThreadList.tsx';

interface HeaderProps {
  openPalette(): void;
  openSearch(): void;
  openShortcuts(): void;
}

export function Header({ openPalette, openSearch, openShortcuts }: HeaderProps) {
  const { session } = usePage();
  return (
    <header className="header">
      <FlameIcon className="header-mark" />
      <h1 dir="auto">{session.assistantName}</h1>
      <span className="header-workspace" dir="auto">
        {session.workspace.name}
      </span>
      <span className="header-space" />
      <button type="button" className="button quiet icon-only" onClick={openSearch} aria-label={t.search.label} title={t.search.label}>
        <SearchIcon />
      </button>
      <ThreadList />
      <Menu openPalette={openPalette} openShortcuts={openShortcuts} />
    </header>
  );
}
