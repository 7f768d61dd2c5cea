/**
 * Owns: proof that a command is found by its words and a shortcut is only the keys that it names.
 */
import { expect } from 'chai';
import { findCommands } from '../../src/web/ui/commands.ts';
import { keyNames, matches, SHORTCUTS, type Shortcut } from '../../src/web/ui/shortcuts.ts';

const none = { ctrlKey: false, metaKey: false, altKey: false, shiftKey: false };
const press = (key: string, held: Partial<typeof none> = {}) => ({ key, ...none, ...held }) as unknown as KeyboardEvent;

describe('a command', () => {
  const commands = ['Jump to the latest message', 'Größe ändern', 'Colours: Dark'].map((label) => ({
    id: label,
    label,
    run: () => undefined,
  }));
  for (const [query, found] of [
    ['', [0, 1, 2]],
    ['latest', [0]],
    ['MESSAGE jump', [0]],
    ['grosse', [1]],
    ['große', [1]],
    ['andern', [1]],
    ['dark colours', [2]],
    ['latest dark', []],
    ['   ', [0, 1, 2]],
  ] as const) {
    it(`is found by ${JSON.stringify(query)}`, () => {
      expect(findCommands(commands, query)).to.deep.equal(found.map((index) => commands[index]));
    });
  }
});

describe('a shortcut', () => {
  it('is pressed with exactly its modifiers', () => {
    expect(matches(SHORTCUTS.palette, press('k', { ctrlKey: true }))).to.equal(true);
    expect(matches(SHORTCUTS.palette, press('K', { ctrlKey: true }))).to.equal(true);
    for (const held of [
      {},
      { altKey: true },
      { ctrlKey: true, altKey: true },
      { ctrlKey: true, shiftKey: true },
      { ctrlKey: true, metaKey: true },
    ]) {
      expect(matches(SHORTCUTS.palette, press('k', held)), JSON.stringify(held)).to.equal(false);
    }
    expect(matches(SHORTCUTS.stop, press('Escape'))).to.equal(true);
    expect(matches(SHORTCUTS.stop, press('Escape', { shiftKey: true }))).to.equal(false);
    expect(matches(SHORTCUTS.write, press('Escape', { shiftKey: true }))).to.equal(true);
  });

  it('with a slash is pressed also where the slash needs Shift', () => {
    expect(matches(SHORTCUTS.shortcuts, press('/', { ctrlKey: true, shiftKey: true }))).to.equal(true);
  });

  it('is never a letter alone, which would fire while somebody speaks to their computer', () => {
    const all: readonly Shortcut[] = Object.values(SHORTCUTS);
    for (const { key, modifiers } of all) expect(key === 'Escape' || modifiers.some((held) => held !== 'shift')).to.equal(true);
    const written = all.map((shortcut) => keyNames(shortcut).join('+'));
    expect(new Set(written).size, 'no two are the same').to.equal(all.length);
  });
});
