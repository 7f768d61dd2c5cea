/**
 * Owns: what a scenario reports, percentiles, and the table that a person reads.
 * Does not own: any measurement. A target is printed beside its figure and never asserted.
 */

/** One measured number. `unit` is `ms`, `KB`, `MB`, `/s`, `%` or `` for a plain count. */
export interface Figure {
  readonly name: string;
  readonly value: number;
  readonly unit: 'ms' | 'KB' | 'MB' | '/s' | '%' | '';
  /** What the design aims at, in the same unit, and how it is written: `<= 2u + 8 ms`. */
  readonly target?: { readonly atMost: number; readonly text: string };
}

/** Figures that belong together. */
export interface FigureGroup {
  readonly title: string;
  readonly figures: readonly Figure[];
}

export interface Report {
  /** The unit u: p50 of one INSERT commit, milliseconds. */
  readonly unitMs: number;
  readonly groups: readonly FigureGroup[];
  /** What a reader must know to understand the figures. */
  readonly notes: readonly string[];
  readonly environment: Readonly<Record<string, string | number | boolean>>;
}

export interface ScenarioOptions {
  /** About 20 seconds instead of 60 to 90. */
  readonly quick: boolean;
  /** Folder for a CPU profile of the server (node --cpu-prof), or null for none. Profiling costs time of its own. */
  readonly profileDir: string | null;
  /** Says what happens now. */
  say(line: string): void;
}

export type Scenario = (options: ScenarioOptions) => Promise<Report>;

/** The value below which `share` (0 to 1) of the values lie; NaN for none. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const index = Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1));
  return sorted[index] ?? Number.NaN;
}

export function median(values: readonly number[]): number {
  return percentile(values, 0.5);
}

const NAME_WIDTH = 58;
const VALUE_WIDTH = 14;
const MULTIPLE_WIDTH = 10;

/** The report as lines of text; times also as multiples of u. */
export function toTable({ unitMs, groups, notes, environment }: Report): string {
  const head = Object.entries(environment).map(([name, value]) => `${name} ${value}`);
  const lines = [head.join(', '), `u = ${toText(unitMs, 'ms')} (one INSERT commit, p50)`];
  for (const { title, figures } of groups) {
    lines.push('', title, ...figures.map((figure) => toLine(figure, unitMs)));
  }
  lines.push('', ...notes.map((note) => `- ${note}`));
  return lines.join('\n');
}

function toLine({ name, value, unit, target }: Figure, unitMs: number): string {
  const multiple = unit === 'ms' ? `${(value / unitMs).toFixed(1)} u` : '';
  const verdict = target === undefined ? '' : `   ${value <= target.atMost ? 'within' : 'OVER'} ${target.text}`;
  return `  ${name.padEnd(NAME_WIDTH)}${toText(value, unit).padStart(VALUE_WIDTH)}${multiple.padStart(MULTIPLE_WIDTH)}${verdict}`.trimEnd();
}

function toText(value: number, unit: Figure['unit']): string {
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return `${value.toFixed(digits)}${unit === '' ? '' : ` ${unit}`}`;
}
