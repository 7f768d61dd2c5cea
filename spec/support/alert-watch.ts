/**
 * Owns: which alerts a running server's metrics make fire, since a moment that a drill names.
 */
import { pause, systemClock } from '../../src/kernel/clock.ts';
import { firing } from './alerts.ts';
import { parseExposition, type Scrape } from './promql.ts';

/** As far apart as two scrapes of Prometheus may be; queries only know this time. */
const APART_S = 60;
const LOOK_EVERY_MS = 100;

export class AlertWatch {
  readonly #url: string;
  #base: Scrape | undefined;

  constructor(opsPort: number) {
    this.#url = `http://127.0.0.1:${opsPort}/metrics`;
  }

  /** What has grown is counted from now on. */
  async begin(): Promise<void> {
    this.#base = await this.#scrape(0);
  }

  /** Names of the alerts whose condition holds now. */
  async firing(): Promise<readonly string[]> {
    if (!this.#base) throw new Error('begin first');
    return firing([this.#base, await this.#scrape(APART_S)]);
  }

  /** Asks again and again, a few times a second: a scrape is work for the server that is watched. */
  async until(what: string, holds: () => Promise<boolean>, maxMs: number): Promise<void> {
    const givenUpAtMs = performance.now() + maxMs;
    while (!(await holds())) {
      if (performance.now() > givenUpAtMs) throw new Error(`never happened: ${what}; firing: ${await this.firing()}`);
      await pause(systemClock, LOOK_EVERY_MS);
    }
  }

  async #scrape(atS: number): Promise<Scrape> {
    const response = await fetch(this.#url);
    return { atS, samples: parseExposition(await response.text(), 'server') };
  }
}
