/**
 * Owns: the start of the operator page.
 */
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import '../styles/tokens.css';
import '../styles/base.css';
import './ops.css';
import { App } from './App.tsx';
import { language, t } from './words.ts';

document.documentElement.lang = language;
document.title = t('Heph operations');

const root = document.getElementById('root');
if (root !== null)
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
