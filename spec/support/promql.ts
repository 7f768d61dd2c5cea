/**
 * Evaluates the queries of deploy/alerts on scrapes, for machines without Prometheus: selectors, `rate` and `increase` (as growth between the scrapes
 * of the range, not extrapolated), `sum`, `max`, `min`, `count` with `by`, `unless on`, `/`, one comparison, `histogram_quantile`, recorded names.
 * Anything else is refused, so that a query is not judged wrongly. spec/rules/alerts.spec.ts holds it against promtool's tests of each alert.
 */

export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** All series of all servers at one time; what is not in the newest scrape is gone. */
export interface Scrape {
  readonly atS: number;
  readonly samples: readonly Sample[];
}

type Vector = readonly Pick<Sample, 'labels' | 'value'>[];

const LOOK_BACK_S = 300;
const UNITS = { s: 1, m: 60, h: 3_600 } as const;

/** `{a="b",…}` of an exposition or of a rule test. */
export function parseSample(line: string): Sample | null {
  const [, name, labels = '', value = ''] = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)$/.exec(line) ?? [];
  return name === undefined
    ? null
    : { name, labels: parseLabels(labels), value: Number(value === '+Inf' ? Number.POSITIVE_INFINITY : value) };
}

export function parseLabels(text: string): Record<string, string> {
  return Object.fromEntries([...text.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, name = '', value = '']) => [name, value]));
}

/** What `/metrics` of a server said; `instance` as Prometheus adds it. */
export function parseExposition(text: string, instance: string): readonly Sample[] {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return lines.map((line) => {
    const sample = parseSample(line);
    if (!sample) throw new Error(`not a sample: ${line}`);
    return { ...sample, labels: { ...sample.labels, instance } };
  });
}

/** The series that the query returns at the time of the newest scrape; an alert fires for each of them. */
export function query(text: string, scrapes: readonly Scrape[], recorded: ReadonlyMap<string, string> = new Map()): Vector {
  const parser = new Parser(text, scrapes, recorded);
  const result = parser.expression();
  parser.end();
  if (typeof result === 'number') throw new Error(`not a vector: ${text}`);
  return result;
}

class Parser {
  readonly #tokens: string[];
  readonly #text: string;
  readonly #scrapes: readonly Scrape[];
  readonly #recorded: ReadonlyMap<string, string>;

  constructor(text: string, scrapes: readonly Scrape[], recorded: ReadonlyMap<string, string>) {
    this.#text = text;
    this.#scrapes = scrapes;
    this.#recorded = recorded;
    this.#tokens = text.match(/"[^"]*"|[a-zA-Z_:][\w:]*|\d+(?:\.\d+)?[smh]?|=~|!=|==|[-+*/<>(){}[\],=]/g) ?? [];
    if (this.#tokens.join('') !== text.replaceAll(/\s/g, '')) throw new Error(`cannot be read: ${text}`);
  }

  end(): void {
    if (this.#tokens.length > 0) throw new Error(`"${this.#tokens[0]}" is not understood in ${this.#text}`);
  }

  expression(): Vector | number {
    let left = this.#operand();
    while (this.#takes('/')) left = divide(left, this.#operand());
    if (this.#takes('unless')) {
      this.#must('on');
      const by = this.#names();
      const right = this.#operand() as Vector;
      left = (left as Vector).filter(({ labels }) => !right.some((other) => key(other.labels, by) === key(labels, by)));
    }
    const [comparison] = this.#tokens;
    if (comparison !== '>' && comparison !== '<' && comparison !== '==') return left;
    this.#tokens.shift();
    const bound = Number(this.#tokens.shift());
    const holds = { '>': (v: number) => v > bound, '<': (v: number) => v < bound, '==': (v: number) => v === bound }[comparison];
    return (left as Vector).filter(({ value }) => holds(value));
  }

  #operand(): Vector | number {
    const token = this.#tokens.shift() ?? '';
    if (/^\d/.test(token)) return Number(token);
    if (token === '(') return this.#closing(this.expression());
    if (['sum', 'max', 'min', 'count'].includes(token)) return this.#aggregate(token);
    if (token === 'rate' || token === 'increase') return this.#growth(token);
    if (token === 'histogram_quantile') {
      this.#must('(');
      const share = Number(this.#tokens.shift());
      this.#must(',');
      return quantile(share, this.#closing(this.expression()) as Vector);
    }
    const recorded = this.#recorded.get(token);
    if (recorded !== undefined) return query(recorded, this.#scrapes, this.#recorded);
    if (!/^[a-zA-Z_:]/.test(token)) throw new Error(`"${token}" is not understood in ${this.#text}`);
    const matches = this.#selector(token);
    const newest = this.#scrapes.at(-1);
    const fresh = newest && newest.atS > this.#nowS - LOOK_BACK_S ? newest.samples : [];
    return fresh.filter(matches).map(({ labels, value }) => ({ labels, value }));
  }

  get #nowS(): number {
    return this.#scrapes.at(-1)?.atS ?? 0;
  }

  #aggregate(how: string): Vector {
    const by = this.#takes('by') ? this.#names() : [];
    this.#must('(');
    const groups = Map.groupBy(this.#closing(this.expression()) as Vector, ({ labels }) => key(labels, by));
    return [...groups.values()].map((group) => {
      const values = group.map(({ value }) => value);
      const value = { sum: () => values.reduce((a, b) => a + b, 0), max: () => Math.max(...values), min: () => Math.min(...values) }[how];
      return { labels: pick(group[0]?.labels ?? {}, by), value: value ? value() : values.length };
    });
  }

  #growth(how: 'rate' | 'increase'): Vector {
    this.#must('(');
    const matches = this.#selector(this.#tokens.shift() ?? '');
    this.#must('[');
    const [, count = '', unit = 's'] = /^(\d+)([smh])$/.exec(this.#tokens.shift() ?? '') ?? [];
    const rangeS = Number(count) * UNITS[unit as keyof typeof UNITS];
    this.#must(']');
    this.#must(')');
    const inRange = this.#scrapes.filter(({ atS }) => atS > this.#nowS - rangeS).flatMap(({ samples }) => samples.filter(matches));
    const series = Map.groupBy(inRange, ({ labels }) => key(labels, Object.keys(labels).sort()));
    return [...series.values()]
      .filter((points) => points.length > 1)
      .map((points) => {
        const grown = points.reduce((sum, { value }, at) => sum + growthOf(points[at - 1]?.value, value), 0);
        return { labels: points[0]?.labels ?? {}, value: how === 'rate' ? grown / rangeS : grown };
      });
  }

  #selector(name: string): (sample: Sample) => boolean {
    const wanted: ((labels: Sample['labels']) => boolean)[] = [];
    if (this.#takes('{')) {
      while (!this.#takes('}')) {
        const label = this.#tokens.shift() ?? '';
        const how = this.#tokens.shift() ?? '';
        const value = (this.#tokens.shift() ?? '').slice(1, -1);
        const whole = new RegExp(`^(?:${value})$`);
        if (how === '=~') wanted.push((labels) => whole.test(labels[label] ?? ''));
        else wanted.push((labels) => (labels[label] === value) === (how === '='));
        this.#takes(',');
      }
    }
    return (sample) => sample.name === name && wanted.every((holds) => holds(sample.labels));
  }

  #names(): readonly string[] {
    this.#must('(');
    const names: string[] = [];
    while (!this.#takes(')')) if (!this.#takes(',')) names.push(this.#tokens.shift() ?? '');
    return names;
  }

  #closing<T>(value: T): T {
    this.#must(')');
    return value;
  }

  #takes(token: string): boolean {
    if (this.#tokens[0] !== token) return false;
    this.#tokens.shift();
    return true;
  }

  #must(token: string): void {
    if (!this.#takes(token)) throw new Error(`"${token}" is missing before "${this.#tokens[0]}" in ${this.#text}`);
  }
}

function key(labels: Sample['labels'], by: readonly string[]): string {
  return by.map((name) => `${name}=${labels[name] ?? ''}`).join();
}

function pick(labels: Sample['labels'], by: readonly string[]): Record<string, string> {
  return Object.fromEntries(by.map((name) => [name, labels[name] ?? '']));
}

/** A counter that is smaller than before was started again. */
function growthOf(before: number | undefined, now: number): number {
  if (before === undefined) return 0;
  return now < before ? now : now - before;
}

function divide(left: Vector | number, right: Vector | number): Vector {
  if (typeof left === 'number' || typeof right === 'number') throw new Error('only vectors are divided');
  const [below] = right;
  return below === undefined || left.length > 1 || right.length > 1
    ? []
    : left.map(({ labels, value }) => ({ labels, value: value / below.value }));
}

function quantile(share: number, buckets: Vector): Vector {
  const sorted = buckets
    .map(({ labels, value }) => ({ le: labels['le'] === '+Inf' ? Number.POSITIVE_INFINITY : Number(labels['le']), count: value }))
    .sort((a, b) => a.le - b.le);
  const rank = share * (sorted.at(-1)?.count ?? 0);
  const at = sorted.findIndex(({ count }) => count >= rank);
  if (rank === 0 || at < 0) return [];
  const [below, here] = [sorted[at - 1] ?? { le: 0, count: 0 }, sorted[at] as { le: number; count: number }];
  const value =
    here.le === Number.POSITIVE_INFINITY ? below.le : below.le + ((here.le - below.le) * (rank - below.count)) / (here.count - below.count);
  return [{ labels: {}, value }];
}
