/**
 * Owns: what a command is, and finding one by its words.
 * Does not own: which commands there are now (use-commands.ts).
 */
import type { Shortcut } from './shortcuts.ts';

export interface Command {
  readonly id: string;
  readonly label: string;
  readonly shortcut?: Shortcut;
  run(): void;
}

/** Small letters without accents, so that `grosse` finds `Größe`. */
function plain(text: string): string {
  return text.normalize('NFD').replaceAll(/\p{M}/gu, '').toLowerCase().replaceAll('ß', 'ss');
}

/** The commands whose label has every word of the query somewhere, in their own order. */
export function findCommands(commands: readonly Command[], query: string): readonly Command[] {
  const words = plain(query).split(/\s+/).filter(Boolean);
  return commands.filter(({ label }) => words.every((word) => plain(label).includes(word)));
}
