/**
 * Owns: up to when each thread was read in this browser. The ledger keeps a marker for the main conversation only.
 */
import { readSetting, writeSetting } from './settings.ts';
import { Store } from './store/store.ts';
import type { ThreadReads } from './store/threads.ts';
import { isAfter } from './store/unread.ts';

/** More than the server lists; the ones that were read longest ago are forgotten first. */
const keptMax = 200;

function parse(text: string | null): ThreadReads {
  try {
    const value: unknown = JSON.parse(text ?? '{}');
    if (typeof value !== 'object' || value === null) return {};
    return Object.fromEntries(Object.entries(value).filter(([, at]) => typeof at === 'string' && !Number.isNaN(Date.parse(at))));
  } catch {
    return {};
  }
}

export class ReadThreads {
  readonly reads: Store<ThreadReads>;
  readonly #name: string;

  /** @param name names account and workspace */
  constructor(name: string) {
    this.#name = name;
    this.reads = new Store(parse(readSetting(name)));
  }

  /** Everything in this thread up to this time was read. It moves forward only. */
  mark(threadId: string, upTo: string): void {
    const known = this.reads.get();
    if (!isAfter(upTo, known[threadId] ?? null)) return;
    const newest = Object.entries({ ...known, [threadId]: upTo }).sort(([, a], [, b]) => (isAfter(a, b) ? -1 : 1));
    this.reads.set(Object.fromEntries(newest.slice(0, keptMax)));
    writeSetting(this.#name, JSON.stringify(this.reads.get()));
  }

  /** What another tab of this browser wrote. */
  heard({ key, newValue }: Pick<StorageEvent, 'key' | 'newValue'>): void {
    if (key === this.#name) this.reads.set(parse(newValue));
  }
}
