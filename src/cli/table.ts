/**
 * Owns: a list of objects as columns of text.
 */

const NOTHING = '-';

/** One line for each object, under a line with the names of their members. */
export function table(rows: readonly Readonly<Record<string, unknown>>[]): string {
  const names = [...new Set(rows.flatMap(Object.keys))];
  if (names.length === 0) return 'There are none.\n';
  const lines = [names, ...rows.map((row) => names.map((name) => cell(row[name])))];
  const widths = names.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  const line = (cells: readonly string[]) => cells.map((one, column) => one.padEnd(widths[column] ?? 0)).join('  ');
  return lines.map((cells) => `${line(cells).trimEnd()}\n`).join('');
}

function cell(value: unknown): string {
  if (value === null || value === undefined) return NOTHING;
  if (typeof value !== 'object') return String(value);
  return Object.values(value).join(' ');
}
