/**
 * Owns: reading the words of PostgreSQL's output plugin `test_decoding`: lines of a change log -> committed transactions with whole rows.
 * Does not own: the slot (change-log.ts), what the rows mean (ledger-replay.ts).
 */

/** A row as text, the way its type prints; null is null. A value that is too large and did not change is not told and left out. */
export type Row = Readonly<Record<string, string | null>>;

export interface RowChange {
  /** Without its schema. */
  readonly table: string;
  readonly kind: 'INSERT' | 'UPDATE' | 'DELETE' | 'TRUNCATE';
  /** The whole new row; of a DELETE its key; of a TRUNCATE nothing. */
  readonly row: Row;
}

export interface Commit {
  /** Position of the commit in the log; rises. */
  readonly lsn: bigint;
  /** By the database's clock, milliseconds since 1970. */
  readonly atMs: number;
  readonly changes: readonly RowChange[];
}

export interface LogLine {
  readonly lsn: string;
  readonly data: string;
}

const COLUMN = /(?:"((?:[^"]|"")+)"|(\w+))\[(?:[^[\]]|\[\])*\]:(?:'((?:[^']|'')*)'|(\S+)) ?/y;
const CHANGE = /^table (.+?): (INSERT|UPDATE|DELETE|TRUNCATE): /;
const NEW_TUPLE = 'new-tuple: ';

/** `2026-11-30 09:24:30.123456+00` -> milliseconds. The session that reads the log has the time zone UTC. */
export function readTimeMs(text: string): number {
  const ms = Date.parse(`${text.replace(' ', 'T').replace(/\+00$/, '')}Z`);
  if (Number.isNaN(ms)) throw new Error(`no time in UTC: ${text}`);
  return ms;
}

function readLsn(text: string): bigint {
  const [high = '', low = ''] = text.split('/');
  return (BigInt(`0x${high}`) << 32n) | BigInt(`0x${low}`);
}

/** `a[integer]:1 b[text]:'it''s' c[uuid]:null` -> {a: '1', b: "it's", c: null}. */
export function readTuple(text: string): Row {
  const row: Record<string, string | null> = {};
  COLUMN.lastIndex = 0;
  for (let at = 0; at < text.length; at = COLUMN.lastIndex) {
    const [, quotedName, name, quoted, bare] = COLUMN.exec(text) ?? [];
    const column = quotedName?.replaceAll('""', '"') ?? name;
    if (column === undefined) throw new Error(`the change log says something else than columns at ${at}: ${text.slice(at, at + 80)}`);
    if (quoted !== undefined) row[column] = quoted.replaceAll("''", "'");
    else if (bare !== 'unchanged-toast-datum') row[column] = bare === 'null' ? null : (bare ?? null);
  }
  return row;
}

function readChange(data: string, tables: ReadonlySet<string>): RowChange[] {
  const [head, names = '', kind] = CHANGE.exec(data) ?? [];
  if (head === undefined) return []; // a message
  const named = names.split(', ').map((name) => name.slice(name.indexOf('.') + 1));
  const watched = named.filter((table) => tables.has(table));
  if (kind === 'TRUNCATE') return watched.map((table) => ({ table, kind, row: {} }));
  const tuple = data.slice(head.length);
  const at = tuple.startsWith('old-key: ') ? tuple.indexOf(NEW_TUPLE) + NEW_TUPLE.length : 0;
  return watched.map((table) => ({ table, kind: kind as RowChange['kind'], row: readTuple(tuple.slice(at)) }));
}

/** Whole transactions, in the order of their commits. `tables`: changes of others are left out. */
export function readCommits(lines: readonly LogLine[], tables: ReadonlySet<string>): Commit[] {
  const commits: Commit[] = [];
  let changes: RowChange[] = [];
  for (const { lsn, data } of lines) {
    if (data.startsWith('BEGIN ')) changes = [];
    else if (data.startsWith('COMMIT ')) {
      const at = /\(at (.+)\)$/.exec(data)?.[1] ?? '';
      commits.push({ lsn: readLsn(lsn), atMs: readTimeMs(at), changes });
    } else changes.push(...readChange(data, tables));
  }
  return commits;
}
