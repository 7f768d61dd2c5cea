/**
 * Owns: which language the page speaks: the one that the person chose in this browser, else the first of the browser's that there is.
 * Does not own: the words (strings.ts).
 */
import { readChoice, writeSetting } from './settings.ts';

export const LANGUAGES = ['en', 'de'] as const;
export type Language = (typeof LANGUAGES)[number];
export const LANGUAGE_CHOICES = ['auto', ...LANGUAGES] as const;
export type LanguageChoice = (typeof LANGUAGE_CHOICES)[number];

const name = 'heph.language';

export function savedLanguage(): LanguageChoice {
  return readChoice(name, LANGUAGE_CHOICES);
}

/** Takes effect with the next load of the page. */
export function saveLanguage(choice: LanguageChoice): void {
  writeSetting(name, choice === 'auto' ? null : choice);
}

/** @param preferred BCP 47 tags, the dearest first, as `navigator.languages` has them */
export function languageFor(choice: LanguageChoice, preferred: readonly string[]): Language {
  if (choice !== 'auto') return choice;
  const primary = preferred.map((tag) => tag.toLowerCase().split('-')[0]);
  const wanted = primary.find((tag) => LANGUAGES.some((language) => language === tag));
  return LANGUAGES.find((language) => language === wanted) ?? 'en';
}

/** The browser's own variant of the language, so that dates are written as in the person's country. */
export function localeFor(language: string, preferred: readonly string[]): string {
  return preferred.find((tag) => tag.toLowerCase().split('-')[0] === language) ?? language;
}
