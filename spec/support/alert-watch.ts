/**
 * Owns: which alerts a running server's metrics make fire, since a moment that a drill names.
 */
import { pause, systemClock } from '../../src/kernel/clock.ts';
import { firing } from './alerts.ts';
import { parseExposition, type Scrape } from './promql.ts';

/** As far apart as two scrapes of Prometheus may be; queries only know this time. */
const APART_S = 60;
const LOOK_EVERY_MS = 100;
const OF_NODE = /^heph_(nodejs|process)_/;

export class AlertWatch {
  readonly #url: string;
  #base: Scrape | undefined;
  /** Metrics that were something else than zero in a scrape, without what Node tells of itself. */
  readonly moved = new Set<string>();
  /** All of them. */
  readonly known = new Set<string>();

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
    const text = await (await fetch(this.#url)).text();
    const samples = parseExposition(text, 'server');
    for (const [, name = ''] of text.matchAll(/^# TYPE (\S+)/gm)) if (!OF_NODE.test(name)) this.known.add(name);
    for (const { name, value } of samples) {
      const family = this.known.has(name) ? name : name.replace(/_(bucket|sum|count)$/, '');
      if (this.known.has(family) && value !== 0 && !Number.isNaN(value)) this.moved.add(family);
    }
    return { atS, samples };
  }
}
