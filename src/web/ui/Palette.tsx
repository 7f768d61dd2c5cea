/**
 * Owns: the command palette: everything that can be done now, found by its words, with the keyboard or without.
 * A combobox with a list (ARIA practices): the focus stays in the field, the arrows move through the list.
 */
import { type KeyboardEvent, useEffect, useId, useRef, useState } from 'react';
import { t } from '../strings.ts';
import { type Command, findCommands } from './commands.ts';
import { Dialog } from './Dialog.tsx';
import { Keys } from './Keys.tsx';

const STEPS: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1 };

export function Palette({ commands, onClose }: { commands: readonly Command[]; onClose(): void }) {
  const box = useRef<HTMLDialogElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const id = useId();
  const [query, setQuery] = useState('');
  const [active, setActive] = useState(0);
  const found = findCommands(commands, query);
  const chosen = found[Math.min(active, found.length - 1)];
  useEffect(() => {
    list.current?.children[active]?.scrollIntoView({ block: 'nearest' });
  }, [active]);
  const pick = (command: Command | undefined) => {
    if (command === undefined) return;
    // Closing gives the focus back; what the command does with it comes after that.
    box.current?.close();
    command.run();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = STEPS[event.key];
    if (event.nativeEvent.isComposing || (step === undefined && event.key !== 'Enter')) return;
    event.preventDefault();
    if (step === undefined) pick(chosen);
    else if (found.length > 0) setActive((found.indexOf(chosen as Command) + step + found.length) % found.length);
  };
  return (
    <Dialog box={box} label={t.palette.label} onClose={onClose} className="palette">
      <input
        className="palette-query"
        role="combobox"
        aria-label={t.palette.placeholder}
        aria-expanded={found.length > 0}
        aria-controls={`${id}-list`}
        aria-activedescendant={chosen === undefined ? undefined : `${id}-${chosen.id}`}
        aria-autocomplete="list"
        autoComplete="off"
        placeholder={t.palette.placeholder}
        value={query}
        onKeyDown={onKeyDown}
        onChange={(event) => {
          setQuery(event.target.value);
          setActive(0);
        }}
      />
      <div ref={list} id={`${id}-list`} className="palette-list" role="listbox" aria-label={t.palette.label}>
        {found.map((command) => (
          // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the field, which names the active option.
          // biome-ignore lint/a11y/useKeyWithClickEvents: Enter in the field picks it.
          <div
            key={command.id}
            id={`${id}-${command.id}`}
            className="palette-option"
            role="option"
            aria-selected={command === chosen}
            onClick={() => pick(command)}
          >
            <span>{command.label}</span>
            {command.shortcut !== undefined && <Keys shortcut={command.shortcut} />}
          </div>
        ))}
      </div>
      {found.length === 0 && (
        <p className="palette-none" role="status">
          {t.palette.none}
        </p>
      )}
    </Dialog>
  );
}
