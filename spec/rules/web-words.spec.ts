/**
 * Owns: proof that the page speaks one language at a time: every word is in every table, and no word stands outside of the tables.
 */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { LANGUAGES, languageFor, localeFor } from '../../src/web/language.ts';
import { tables } from '../../src/web/strings.ts';

const web = fileURLToPath(new URL('../../src/web', import.meta.url));

/** Arguments with which each function says something; a function that is not here is called with a name. */
const CALLS: Readonly<Record<string, readonly (readonly unknown[])[]>> = {
  title: [
    ['App', { answering: true, unread: 0 }],
    ['App', { answering: false, unread: 2 }],
  ],
  'composer.left': [[1], [1_200]],
  'composer.over': [[1], [1_200]],
  'status.queued': [[1], [2]],
  'status.waiting': [
    ['App', null],
    ['App', 3],
  ],
  'unread.jump': [[1], [5]],
  image: [[''], ['a chart']],
  task: [[true], [false]],
  failure: [
    [{ kind: 'unreachable' }],
    [{ kind: 'garbled', status: 502 }],
    [{ kind: 'problem', problem: { detail: 'words of the server', title: '' } }],
  ],
  'live.stage': [['App', 'words of the server']],
  'commands.setting': [['Name', 'choice']],
};

/** Names, signs and words that are the same in both languages. */
const SHARED = new Set([
  'thread.list',
  'thread.one',
  ...['serverLanguage', 'languages.en', 'languages.de', 'keys.alt', 'keys.escape', 'keys.up', 'keys.down', 'live.stage'],
  ...['commands.setting', 'failure', 'title'],
]);

/** Path of each word -> what it says, once for each way in which it is said. */
function wordsOf(table: object, prefix = ''): Map<string, string[]> {
  const words = new Map<string, string[]>();
  for (const [key, value] of Object.entries(table)) {
    const name = `${prefix}${key}`;
    if (typeof value === 'string') words.set(name, [value]);
    else if (Array.isArray(value)) words.set(name, value);
    else if (typeof value === 'function')
      words.set(
        name,
        (CALLS[name] ?? [['App']]).map((args) => String(value(...args))),
      );
    else for (const [inner, said] of wordsOf(value, `${name}.`)) words.set(inner, said);
  }
  return words;
}

function filesIn(folder: string): string[] {
  return readdirSync(path.join(web, folder)).map((name) => path.join(web, folder, name));
}

describe('the words of the page', () => {
  const english = wordsOf(tables.en);

  for (const language of LANGUAGES) {
    it(`are all there in ${language}, none is empty, and none says undefined`, () => {
      const words = wordsOf(tables[language]);
      expect([...words.keys()]).to.deep.equal([...english.keys()]);
      for (const [name, said] of words) {
        expect(said.length, name).to.equal(english.get(name)?.length);
        for (const text of said)
          expect(text, name)
            .to.match(/\S/)
            .and.not.match(/undefined|\[object|NaN/);
      }
      expect(tables[language].language).to.equal(language);
    });
  }

  it('have no English left in German', () => {
    const left = [...wordsOf(tables.de)].filter(
      ([name, said]) => !SHARED.has(name) && said.some((text) => english.get(name)?.includes(text)),
    );
    expect(left).to.deep.equal([]);
    expect(tables.de.title('App', { answering: true, unread: 0 })).to.not.equal(tables.en.title('App', { answering: true, unread: 0 }));
    expect(tables.de.failure({ kind: 'unreachable' })).to.not.equal(tables.en.failure({ kind: 'unreachable' }));
  });

  it('stand in strings.ts and nowhere else: no component has words of its own', () => {
    const found: string[] = [];
    for (const file of [...filesIn('ui'), path.join(web, 'main.tsx')].filter((name) => name.endsWith('.tsx'))) {
      const code = readFileSync(file, 'utf8').replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '');
      const between = code.matchAll(/<[a-zA-Z][^<>]*>\s*([^<>{}()=;]*\p{L}{2,}[^<>{}()=;]*?)\s*</gu);
      const attributes = code.matchAll(/\b(?:aria-label|title|placeholder|alt|label)="([^"]*\p{L}[^"]*)"/gu);
      for (const [, words] of [...between, ...attributes]) found.push(`${path.basename(file)}: ${words}`);
    }
    expect(found).to.deep.equal([]);
  });
});

describe('the language of the page', () => {
  for (const [choice, preferred, language] of [
    ['auto', ['de-AT', 'en'], 'de'],
    ['auto', ['DE'], 'de'],
    ['auto', ['fr-FR', 'de', 'en'], 'de'],
    ['auto', ['fr'], 'en'],
    ['auto', [], 'en'],
    ['en', ['de'], 'en'],
    ['de', ['en'], 'de'],
  ] as const) {
    it(`is ${language} for the choice ${choice} in a browser of ${preferred.join(', ') || 'no language'}`, () => {
      expect(languageFor(choice, preferred)).to.equal(language);
    });
  }

  it('keeps the country of the browser for dates, when it is a country of that language', () => {
    expect(localeFor('en', ['de-DE', 'en-GB', 'en-US'])).to.equal('en-GB');
    expect(localeFor('de', ['en-GB'])).to.equal('de');
  });
});
