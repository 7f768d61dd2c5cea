/**
 * The print of a path, and where two prints differ without a declared reason: as properties of a pure function.
 * rule: R13
 */
import { expect } from 'chai';
import fc from 'fast-check';
import {
  type Declared,
  decodeEntries,
  type EntryPrint,
  encodeEntries,
  firstBreak,
  type PathPrint,
  PRINT_ENTRIES_MAX,
  PRINT_ENTRY_BYTES,
  printOf,
} from '../../src/context/path-print.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import { piAnswer, text } from '../support/pi-turns.ts';

const NONE: Declared = { erasedIds: new Set(), addedIds: new Set() };
const hex = (value: number) => value.toString(16).padStart(16, '0');
const entryOf = (n: number): EntryPrint => ({ id: uuidv7(), bytes: hex(n), declared: hex(0) });
const print = (entries: readonly EntryPrint[], more: Partial<PathPrint> = {}): PathPrint => ({
  timeZone: 'UTC',
  summaryId: null,
  system: hex(1),
  entries,
  ...more,
});

/** A path, some more entries behind it, and a place in it. */
const grown = fc
  .tuple(fc.array(fc.nat(), { minLength: 1, maxLength: 40 }), fc.array(fc.nat(), { maxLength: 10 }), fc.nat())
  .map(([before, more, at]) => {
    const entries = before.map(entryOf);
    return { before: print(entries), later: [...entries, ...more.map(entryOf)], at: at % entries.length };
  });

describe('the first undeclared change between two paths', () => {
  it('is none when the later path only grew', () => {
    fc.assert(fc.property(grown, ({ before, later }) => firstBreak(before, print(later), NONE) === null));
  });

  it('is at the entry whose bytes changed, wherever it is, and none when that change was declared', () => {
    fc.assert(
      fc.property(grown, ({ before, later, at }) => {
        const was = later[at] as EntryPrint;
        const silent = later.with(at, { ...was, bytes: hex(0xdead) });
        expect(firstBreak(before, print(silent), NONE)).to.deep.equal({ index: at, entryId: was.id });
        expect(firstBreak(before, print(later.with(at, { ...was, bytes: hex(0xdead), declared: hex(7) })), NONE)).to.equal(null);
      }),
    );
  });

  it('is at an entry that vanished, unless it was erased', () => {
    fc.assert(
      fc.property(grown, ({ before, later, at }) => {
        const gone = later[at] as EntryPrint;
        const left = print(later.toSpliced(at, 1));
        expect(firstBreak(before, left, NONE)).to.deep.equal({ index: at, entryId: gone.id });
        expect(firstBreak(before, left, { ...NONE, erasedIds: new Set([gone.id]) })).to.equal(null);
      }),
    );
  });

  it('is where an entry was put in between, unless it may have been written there since', () => {
    fc.assert(
      fc.property(grown, ({ before, later, at }) => {
        const added = entryOf(5);
        const more = print(later.toSpliced(at, 0, added));
        expect(firstBreak(before, more, NONE)?.index).to.equal(at);
        expect(firstBreak(before, more, { ...NONE, addedIds: new Set([added.id]) })).to.equal(null);
      }),
    );
  });

  it('is judged up to the first declared change only: behind it everything may differ', () => {
    fc.assert(
      fc.property(grown, fc.nat(), ({ before, later, at }, other) => {
        const second = other % before.entries.length;
        const changed = later
          .with(at, { ...(later[at] as EntryPrint), bytes: hex(0xbeef), declared: hex(7) })
          .map((entry, index) => (index === second && index !== at ? { ...entry, bytes: hex(0xdead) } : entry));
        const found = firstBreak(before, print(changed), NONE);
        expect(found?.index ?? null).to.equal(second < at ? second : null);
      }),
    );
  });

  it('is none under another summary or another time zone', () => {
    const before = print([entryOf(1)]);
    expect(firstBreak(before, print([entryOf(2)], { summaryId: uuidv7() }), NONE)).to.equal(null);
    expect(firstBreak(before, print([entryOf(2)], { timeZone: 'Europe/Berlin' }), NONE)).to.equal(null);
  });

  it('is found in prints that were stored: they come back as they were', () => {
    fc.assert(
      fc.property(grown, ({ later }) => {
        const stored = encodeEntries(later);
        expect(stored.length).to.equal(later.length * PRINT_ENTRY_BYTES);
        expect(decodeEntries(stored)).to.deep.equal(later);
      }),
    );
  });
});

describe('the print of a path', () => {
  for (const count of [PRINT_ENTRIES_MAX - 1, PRINT_ENTRIES_MAX, PRINT_ENTRIES_MAX + 1]) {
    it(`of ${count} entries has at most ${PRINT_ENTRIES_MAX} of them`, () => {
      const entries = Array.from({ length: count }, () => ({ entry: piAnswer([text('.')]), declared: '', writtenAt: '' }));
      const printed = printOf({ entries, summaryId: null, erasedIds: [] }, { timeZone: 'UTC', systemPrompt: '' });
      expect(printed.entries.length).to.equal(Math.min(count, PRINT_ENTRIES_MAX));
    });
  }
});
