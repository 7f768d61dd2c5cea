import { usePage } from './context.ts';
import { FlameIcon } from './icons.tsx';
import { Menu } from './Menu.tsx';

interface HeaderProps {
  openPalette(): void;
  openShortcuts(): void;
}

export function Header({ openPalette, openShortcuts }: HeaderProps) {
  const { session } = usePage();
  return (
    <header className="header">
      <FlameIcon className="header-mark" />
      <h1 dir="auto">{session.assistantName}</h1>
      <span className="header-workspace" dir="auto">
        {session.workspace.name}
      </span>
      <span className="header-space" />
      <Menu openPalette={openPalette} openShortcuts={openShortcuts} />
    </header>
  );
}
