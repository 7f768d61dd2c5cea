/**
 * Owns: the start of the page.
 */
import { start } from './start.tsx';
import { App } from './ui/App.tsx';

start(<App host={null} />);
