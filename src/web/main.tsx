/**
 * Owns: the start of the page: theme, styles, the root.
 */
import { StrictMode } from 'react';
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
import { t } from './strings.ts';
import { App } from './ui/App.tsx';
import { ErrorBoundary } from './ui/ErrorBoundary.tsx';
import { PageMessage } from './ui/PageMessage.tsx';
import { applyTheme } from './ui/theme.ts';

applyTheme();
document.documentElement.lang = t.language;

const root = document.getElementById('root');
if (root !== null) {
  createRoot(root).render(
    <StrictMode>
      <ErrorBoundary fallback={<PageMessage text={t.start.crashed} reload />}>
        <App />
      </ErrorBoundary>
    </StrictMode>,
  );
}
