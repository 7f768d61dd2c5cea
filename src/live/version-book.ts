/**
 * Owns: up to which version this server has heard every change of a conversation. A hole is found by comparing with the rows.
 * Changes may arrive out of order (two servers write one conversation): what lies beyond a hole is remembered until the hole is filled.
 */

interface Page {
  /** Every change up to here was heard. */
  upTo: number;
  /** Heard beyond a hole: [version before, version]. */
  ahead: [since: number, version: number][];
  /** The sweep during which it was last written. */
  sweep: number;
}

/** Holes remembered per conversation; with more, the sweep cures all of them at once. */
const AHEAD_MAX = 16;

export class VersionBook {
  readonly #pages = new Map<string, Page>();
  #sweep = 0;

  get size(): number {
    return this.#pages.size;
  }

  /** A change from `since` to `version` was heard. */
  note(conversationId: string, since: number, version: number): void {
    const page = this.#pages.get(conversationId);
    if (!page) {
      if (since <= 0) this.settle(conversationId, version); // otherwise nobody knows what came before: the sweep asks
      return;
    }
    page.sweep = this.#sweep;
    if (since > page.upTo) {
      if (page.ahead.length < AHEAD_MAX) page.ahead.push([since, version]);
      return;
    }
    page.upTo = Math.max(page.upTo, version);
    for (let found = true; found; ) {
      const next = page.ahead.findIndex(([from]) => from <= page.upTo);
      found = next >= 0;
      for (const [, to] of found ? page.ahead.splice(next, 1) : []) page.upTo = Math.max(page.upTo, to);
    }
  }

  /** Everything up to `version` was read from the rows, if nothing is known yet. */
  begin(conversationId: string, version: number): void {
    if (!this.#pages.has(conversationId)) this.settle(conversationId, version);
  }

  /** Everything up to `version` was read from the rows. */
  settle(conversationId: string, version: number): void {
    const known = this.#pages.get(conversationId)?.upTo ?? 0;
    this.#pages.set(conversationId, { upTo: Math.max(known, version), ahead: [], sweep: this.#sweep });
  }

  /** The rows are at `version` and some change up to it was not heard. */
  misses(conversationId: string, version: number): boolean {
    const page = this.#pages.get(conversationId);
    return !page || page.upTo < version;
  }

  beginSweep(): void {
    this.#sweep += 1;
  }

  /** Forgets what the sweep that just ran did not ask about and nobody wrote since it began. */
  keep(conversationIds: ReadonlySet<string>): void {
    for (const [id, page] of this.#pages) if (page.sweep < this.#sweep && !conversationIds.has(id)) this.#pages.delete(id);
  }
}
