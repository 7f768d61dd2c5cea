/**
 * Owns: the command palette: type a few letters, pick a command or a message with the arrows and Enter. Opened as the search it holds
 * messages only. A combobox (WAI-ARIA): the focus stays in the field, the arrows move through the list.
 */
import { type KeyboardEvent, type ReactNode, useEffect, useId, useRef, useState } from 'react';
import { piecesOf } from '../store/excerpts.ts';
import { t } from '../strings.ts';
import { type Command, findCommands } from './commands.ts';
import { useChat, usePage } from './context.ts';
import { Dialog } from './Dialog.tsx';
import { Keys } from './Keys.tsx';
import { type Search, type SearchHit, useSearch } from './use-search.ts';

const STEPS: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1 };

interface Option {
  readonly id: string;
  readonly content: ReactNode;
  readonly className: string;
  run(): void;
}

function HitView({ hit }: { hit: SearchHit }) {
  const { dates, session } = usePage();
  const mainId = useChat((state) => state.mainId);
  const who = { question: t.you, answer: session.assistantName, digest: t.digest }[hit.kind];
  const where = hit.conversationId === mainId ? '' : ` · ${t.search.inThread}`;
  return (
    <>
      <span className="hit-head">
        {who} · {dates.dayLabel(hit.createdAt, Date.now())}
        {where}
      </span>
      <span className="hit-words" dir="auto">
        {piecesOf(hit.excerpt, hit.matches).map(({ text, marked }, index) =>
          // biome-ignore lint/suspicious/noArrayIndexKey: the pieces of one excerpt never change places.
          marked ? <mark key={index}>{text}</mark> : <span key={index}>{text}</span>,
        )}
      </span>
    </>
  );
}

function commandOption(command: Command): Option {
  const content = (
    <>
      <span>{command.label}</span>
      {command.shortcut !== undefined && <Keys shortcut={command.shortcut} />}
    </>
  );
  return { id: command.id, content, className: 'palette-option', run: () => command.run() };
}

function useHitOptions(hits: readonly SearchHit[]): readonly Option[] {
  const { navigation } = usePage();
  const mainId = useChat((state) => state.mainId);
  return hits.map((hit) => ({
    id: hit.entryId,
    content: <HitView hit={hit} />,
    className: 'palette-option hit',
    run: () => navigation.open(hit.conversationId === mainId ? null : hit.conversationId, { entryId: hit.entryId }),
  }));
}

function statusOf(search: Search, commandCount: number | null): string {
  if (search.kind === 'searching') return t.search.searching;
  if (search.kind === 'failed') return search.problem;
  if (search.hits.length > 0) return `${t.search.found(search.hits.length)}${search.truncated ? `. ${t.search.more}` : ''}`;
  if (commandCount === null) return search.kind === 'found' ? t.search.none : '';
  return commandCount === 0 ? t.palette.none : '';
}

interface GroupProps {
  label: string;
  options: readonly Option[];
  chosen: Option | undefined;
  listId: string;
  onPick(option: Option): void;
}

function Group({ label, options, chosen, listId, onPick }: GroupProps) {
  if (options.length === 0) return null;
  return (
    // biome-ignore lint/a11y/useSemanticElements: a group of options inside of a listbox (WAI-ARIA).
    <div role="group" aria-label={label} className="palette-group">
      {options.map((option) => (
        // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the field, which names the active option.
        // biome-ignore lint/a11y/useKeyWithClickEvents: Enter in the field picks it.
        <div
          key={option.id}
          id={`${listId}-${option.id}`}
          className={option.className}
          role="option"
          aria-selected={option === chosen}
          onClick={() => onPick(option)}
        >
          {option.content}
        </div>
      ))}
    </div>
  );
}

/** @param commands null: only messages are searched */
export function Palette({ commands, onClose }: { commands: readonly Command[] | null; onClose(): void }) {
  const box = useRef<HTMLDialogElement>(null);
  const id = useId();
  const [query, setQuery] = useState('');
  const [active, setActive] = useState(0);
  const search = useSearch(query);
  const found = commands === null ? [] : findCommands(commands, query).map(commandOption);
  const hits = useHitOptions(search.hits);
  const options = [...found, ...hits];
  const chosen = options[Math.min(active, options.length - 1)];
  const chosenId = chosen === undefined ? undefined : `${id}-${chosen.id}`;
  useEffect(() => {
    if (chosenId !== undefined) document.getElementById(chosenId)?.scrollIntoView({ block: 'nearest' });
  }, [chosenId]);
  const pick = (option: Option | undefined) => {
    if (option === undefined) return;
    // Closing gives the focus back; what the option does with it comes after that.
    box.current?.close();
    option.run();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = STEPS[event.key];
    if (event.nativeEvent.isComposing || (step === undefined && event.key !== 'Enter')) return;
    event.preventDefault();
    if (step === undefined) pick(chosen);
    else if (chosen !== undefined) setActive((options.indexOf(chosen) + step + options.length) % options.length);
  };
  const words = commands === null ? { label: t.search.label, placeholder: t.search.placeholder } : t.palette;
  const status = statusOf(search, commands === null ? null : found.length);
  return (
    <Dialog box={box} label={words.label} onClose={onClose} className="palette">
      <input
        className="palette-query"
        role="combobox"
        aria-label={words.placeholder}
        aria-expanded={options.length > 0}
        aria-controls={`${id}-list`}
        aria-activedescendant={chosenId}
        aria-autocomplete="list"
        autoComplete="off"
        placeholder={words.placeholder}
        value={query}
        onKeyDown={onKeyDown}
        onChange={(event) => {
          setQuery(event.target.value);
          setActive(0);
        }}
      />
      <div id={`${id}-list`} className="palette-list" role="listbox" aria-label={words.label}>
        <Group label={t.palette.commands} options={found} chosen={chosen} listId={id} onPick={pick} />
        <Group label={t.search.messages} options={hits} chosen={chosen} listId={id} onPick={pick} />
      </div>
      <p className={status === '' ? 'visually-hidden' : 'palette-none'} role="status">
        {status}
      </p>
    </Dialog>
  );
}
