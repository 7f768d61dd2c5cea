import { useRef } from 'react';
import { t } from '../strings.ts';
import { Dialog } from './Dialog.tsx';
import { CloseIcon } from './icons.tsx';
import { Keys } from './Keys.tsx';
import { SHORTCUTS, type Shortcut } from './shortcuts.ts';

/** Every shortcut, and what the keys of the message box do. */
const ROWS: readonly (readonly [string, Shortcut])[] = [
  [t.shortcuts.send, { modifiers: [], key: 'Enter' }],
  [t.shortcuts.newLine, { modifiers: ['shift'], key: 'Enter' }],
  ...(Object.keys(SHORTCUTS) as (keyof typeof SHORTCUTS)[]).map((id) => [t.commands[id], SHORTCUTS[id]] as const),
];

export function ShortcutsHelp({ onClose }: { onClose(): void }) {
  const box = useRef<HTMLDialogElement>(null);
  return (
    <Dialog box={box} label={t.commands.shortcuts} onClose={onClose} className="help">
      <div className="dialog-head">
        <h2>{t.commands.shortcuts}</h2>
        <button type="button" className="button quiet icon-only" aria-label={t.close} title={t.close} onClick={() => box.current?.close()}>
          <CloseIcon />
        </button>
      </div>
      <dl className="shortcuts">
        {ROWS.map(([what, shortcut]) => (
          <div key={what}>
            <dt>{what}</dt>
            <dd>
              <Keys shortcut={shortcut} />
            </dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
