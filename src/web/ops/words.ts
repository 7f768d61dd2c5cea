/**
 * Owns: what the operator page itself says, in the language of the browser. English is the key, so what is written where it is said is what is
 * said, and a sentence without its German does not compile.
 * Does not own: codes (states, reasons, rules), which are the same in the command line and the log, and sentences of the server.
 */
import { type Language, languageFor, localeFor, savedLanguage } from '../language.ts';
import { DE } from './words-de.ts';

export type Words = keyof typeof DE;

const preferred = navigator.languages ?? [navigator.language];
/** The language does not change while the page lives. */
export const language: Language = languageFor(savedLanguage(), preferred);
/** For dates. */
export const locale = localeFor(language, preferred);

/** The words in the language of this page; `{name}` is the value of that name. */
export function t(words: Words, values: Readonly<Record<string, string | number>> = {}): string {
  const said: string = language === 'de' ? DE[words] : words;
  return said.replace(/\{(\w+)\}/g, (_place, name: string) => String(values[name] ?? ''));
}
