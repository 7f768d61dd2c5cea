/**
 * Owns: every word that the page itself says, in each language. Another language is another table of the same shape (strings-en.ts) and a
 * name in language.ts.
 * Does not own: words of the server (problem details, failures and stages of turns, warnings), which are shown as they come.
 */
import { type Language, languageFor, savedLanguage } from './language.ts';
import { de } from './strings-de.ts';
import { en, type Strings } from './strings-en.ts';

export type { Strings } from './strings-en.ts';

export const tables: Readonly<Record<Language, Strings>> = { en, de };

/** The words of this page. The language does not change while the page lives. */
export const t: Strings = tables[languageFor(savedLanguage(), navigator.languages ?? [navigator.language])];
