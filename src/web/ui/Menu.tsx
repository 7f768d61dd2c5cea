/**
 * Owns: the menu in the header: commands, downloads, settings. What concerns the whole conversation gets its place here.
 * It is a popover of plain controls: the browser closes it with Escape and a press beside it, and gives the focus back.
 */
import { useId, useRef, useSyncExternalStore } from 'react';
import { LANGUAGE_CHOICES, savedLanguage } from '../language.ts';
import { exportUrl } from '../net/api.ts';
import { t } from '../strings.ts';
import { Account } from './Account.tsx';
import { useChat, usePage } from './context.ts';
import { useThreadId } from './conversation.ts';
import { MenuIcon } from './icons.tsx';
import { Keys } from './Keys.tsx';
import { SHORTCUTS, type Shortcut } from './shortcuts.ts';
import { chooseTheme, THEMES, theme } from './theme.ts';
import { chooseLanguage } from './use-commands.ts';

interface ChoiceProps<T extends string> {
  words: Readonly<Record<T | 'label', string>>;
  choices: readonly T[];
  value: T;
  onChoose(choice: T): void;
}

/** One of a few, all in sight. */
function Choice<T extends string>({ words, choices, value, onChoose }: ChoiceProps<T>) {
  const name = useId();
  return (
    <fieldset className="choice">
      <legend>{words.label}</legend>
      <div className="segments">
        {choices.map((choice) => (
          <label key={choice}>
            <input type="radio" name={name} value={choice} checked={choice === value} onChange={() => onChoose(choice)} />
            <span>{words[choice]}</span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}

function NotifySwitch() {
  const { notifier } = usePage();
  const state = useSyncExternalStore(notifier.state.subscribe, notifier.state.get);
  if (state === 'unsupported') return null;
  return (
    <div className="menu-switch">
      <label>
        <input type="checkbox" checked={state !== 'off'} onChange={(event) => void notifier.turn(event.target.checked)} />
        <span>{t.notify.label}</span>
      </label>
      {state === 'blocked' && <p role="status">{t.notify.blocked}</p>}
    </div>
  );
}

function Settings() {
  const chosen = useSyncExternalStore(theme.subscribe, theme.get);
  return (
    <section aria-label={t.menu.settings}>
      <Choice words={t.theme} choices={THEMES} value={chosen} onChoose={chooseTheme} />
      <Choice words={t.languages} choices={LANGUAGE_CHOICES} value={savedLanguage()} onChoose={chooseLanguage} />
      <NotifySwitch />
    </section>
  );
}

function Downloads() {
  const { slug } = usePage().session.workspace;
  const threadId = useThreadId();
  const hasConversation = useChat((state) => state.mainId !== null);
  if (!hasConversation) return null;
  return (
    <section aria-label={t.menu.conversation}>
      {(['markdown', 'json'] as const).map((format) => (
        <a key={format} className="menu-item" href={exportUrl(slug, format, threadId)} download="">
          {t.download[format]}
        </a>
      ))}
    </section>
  );
}

interface MenuProps {
  openPalette(): void;
  openShortcuts(): void;
}

export function Menu({ openPalette, openShortcuts }: MenuProps) {
  const id = useId();
  const panel = useRef<HTMLDivElement>(null);
  const item = (label: string, shortcut: Shortcut, open: () => void) => (
    <button
      type="button"
      className="menu-item"
      onClick={() => {
        panel.current?.hidePopover();
        open();
      }}
    >
      <span>{label}</span>
      <Keys shortcut={shortcut} />
    </button>
  );
  return (
    <>
      <button type="button" className="button quiet icon-only" popoverTarget={id} aria-label={t.menu.label} title={t.menu.label}>
        <MenuIcon />
      </button>
      <div ref={panel} id={id} popover="auto" className="menu" role="dialog" aria-label={t.menu.label}>
        <section>
          {item(t.commands.palette, SHORTCUTS.palette, openPalette)}
          {item(t.commands.shortcuts, SHORTCUTS.shortcuts, openShortcuts)}
        </section>
        <Downloads />
        <Settings />
        <Account />
      </div>
    </>
  );
}
