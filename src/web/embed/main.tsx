/**
 * Owns: the start of the panel: the chat in a frame of another site's page, and the keys that leave it.
 */
import { start } from '../start.tsx';
import { App } from '../ui/App.tsx';
import { isCovered } from '../ui/shortcuts.ts';
import { focusComposer } from '../ui/use-commands.ts';
import { HostLink } from './host-link.ts';

const around = window.parent === window ? null : window.parent;
const host = new HostLink({ search: location.search, around, onShown: focusComposer });
addEventListener('message', (event) => host.hear(event));
addEventListener('keydown', (event) => {
  const plain = !event.isComposing && !event.shiftKey && !event.ctrlKey && !event.altKey && !event.metaKey;
  if (event.key === 'Escape' && plain && !event.defaultPrevented && !isCovered()) host.close();
});
host.ready();
start(<App host={host} />);
