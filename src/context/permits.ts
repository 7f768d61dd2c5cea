/**
 * Owns: how many loads one server prepares at once, and the bounded queue before that. First come, first served; a waiter that goes is forgotten.
 */

export class Permits {
  readonly #waitersMax: number;
  readonly #waiters: { readonly grant: () => void }[] = [];
  #free: number;

  constructor(count: number, waitersMax: number) {
    this.#free = count;
    this.#waitersMax = waitersMax;
  }

  /** False: one more would be refused. */
  get hasRoom(): boolean {
    return this.#free > 0 || this.#waiters.length < this.#waitersMax;
  }

  get waiting(): number {
    return this.#waiters.length;
  }

  /** Resolves to the function that gives the permit back; calling it twice is harmless. Rejects with the reason of `signal`. */
  async take(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.#free > 0) this.#free--;
    else await this.#wait(signal);
    let given = true;
    return () => {
      if (!given) return;
      given = false;
      this.#giveBack();
    };
  }

  #giveBack(): void {
    const next = this.#waiters.shift();
    if (next) next.grant();
    else this.#free++;
  }

  #wait(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = (finish: () => void) => {
        signal.removeEventListener('abort', gone);
        finish();
      };
      const waiter = { grant: () => settle(resolve) };
      const gone = () => {
        this.#waiters.splice(this.#waiters.indexOf(waiter), 1);
        settle(() => reject(signal.reason));
      };
      signal.addEventListener('abort', gone, { once: true });
      this.#waiters.push(waiter);
    });
  }
}
