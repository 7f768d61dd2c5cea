/**
 * Owns: what the page and the panel start with: theme, styles, the root.
 */
import { type ReactNode, StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import './styles/tokens.css';
import './styles/base.css';
import './styles/layout.css';
import './styles/thread.css';
import './styles/threads.css';
import './styles/message.css';
import './styles/composer.css';
import './styles/markdown.css';
import './styles/overlays.css';
import './styles/palette.css';
import './styles/panel.css';
import { t } from './strings.ts';
import { ErrorBoundary } from './ui/ErrorBoundary.tsx';
import { PageMessage } from './ui/PageMessage.tsx';
import { applyTheme } from './ui/theme.ts';

export function start(app: ReactNode): void {
  applyTheme();
  document.documentElement.lang = t.language;
  const root = document.getElementById('root');
  if (root === null) return;
  createRoot(root).render(
    <StrictMode>
      <ErrorBoundary fallback={<PageMessage text={t.start.crashed} reload />}>{app}</ErrorBoundary>
    </StrictMode>,
  );
}
