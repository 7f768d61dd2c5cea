/**
 * Owns: which idle actor leaves memory next. Each idle actor is in exactly one of two sets, both least recently used first: `ready`, and
 * `kept` for those whose behaviour wants to stay (mayPassivate was false when it was last asked).
 * Cost: waking and resting are O(1). Finding room moves each actor at most once from `ready` to `kept` per command it handled, so it is
 * O(1) amortised and never scans. What is kept is asked again by each sweep, a bounded number at a time.
 */

/** How many kept actors one search for room asks again. A pure mayPassivate changes only with a command, which moves the actor to `ready`. */
const KEPT_ASKED_PER_SEARCH = 8;

export interface RestingItem {
  readonly lastUsedMs: number;
}

export class Resting<Item extends RestingItem> {
  readonly #mayLeave: (item: Item) => boolean;
  readonly #ready = new Set<Item>();
  readonly #kept = new Set<Item>();

  constructor(mayLeave: (item: Item) => boolean) {
    this.#mayLeave = mayLeave;
  }

  rest(item: Item): void {
    this.#ready.add(item);
  }

  wake(item: Item): void {
    if (!this.#ready.delete(item)) this.#kept.delete(item);
  }

  /** An idle actor that may leave, the least recently used first; null when all want to stay. It stays in its set until it is woken. */
  nextToLeave(): Item | null {
    for (const item of this.#ready) {
      if (this.#mayLeave(item)) return item;
      this.#keep(item);
    }
    return this.#askKept(KEPT_ASKED_PER_SEARCH, () => true).next().value ?? null;
  }

  /** Idle actors last used at or before `usedMs` that may leave. Asks at most `max` of each set. */
  *expired(usedMs: number, max: number): Generator<Item> {
    const asked: Item[] = [];
    for (const item of this.#ready) {
      if (asked.length >= max || item.lastUsedMs > usedMs) break;
      asked.push(item);
    }
    yield* this.#askKept(max, (item) => item.lastUsedMs <= usedMs);
    for (const item of asked) {
      if (!this.#ready.has(item)) continue;
      if (this.#mayLeave(item)) yield item;
      else this.#keep(item);
    }
  }

  /** All idle actors, the most recently used first, those that are kept before the others. */
  recent(max: number): Item[] {
    const latest = (set: Set<Item>) => [...set].slice(-max).reverse();
    return [...latest(this.#kept), ...latest(this.#ready)].slice(0, max);
  }

  *#askKept(max: number, due: (item: Item) => boolean): Generator<Item> {
    const asked: Item[] = [];
    for (const item of this.#kept) {
      if (asked.length >= max) break;
      asked.push(item);
    }
    for (const item of asked) {
      if (!this.#kept.has(item)) continue;
      this.#keep(item);
      if (due(item) && this.#mayLeave(item)) yield item;
    }
  }

  #keep(item: Item): void {
    this.#ready.delete(item);
    this.#kept.delete(item);
    this.#kept.add(item);
  }
}
