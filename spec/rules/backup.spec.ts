/**
 * A backup and what is restored from it, on real databases: every row, to the byte, and nothing by halves.
 */
import { randomUUID } from 'node:crypto';
import { copyFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { expect } from 'chai';
import pg from 'pg';
import { backedUpTables, readTables } from '../../db/backup/catalogue.ts';
import { backup } from '../../db/backup/dump.ts';
import { openBackup, type RestoreReport, restore } from '../../db/backup/load.ts';
import { writeBackup } from '../../db/backup/write-file.ts';
import { createDatabase, dropDatabase } from '../../db/embedded/index.ts';
import { migrate, migrationNames } from '../../db/migrate.ts';
import { type Database, sql } from '../../db/pool.ts';
import { freshDatabase, openTestDatabase, useDatabase } from '../support/database.ts';
import { everyRow, fillEveryTable } from '../support/every-table.ts';
import { run } from '../support/ledger.ts';

const VERSION = '9.9.9-spec';

async function refusal(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => 'it was not refused',
    (error: Error) => error.message,
  );
}

describe('a backup', function () {
  this.timeout(120_000);
  const given = useDatabase();
  const dir = mkdtempSync(path.join(tmpdir(), 'heph-backup-'));
  const file = path.join(dir, 'whole.heph');
  const made: string[] = [];
  let scene: Awaited<ReturnType<typeof fillEveryTable>>;
  /** A database to make others from. */
  let server: Awaited<ReturnType<typeof freshDatabase>>;
  let restored: string;
  let report: RestoreReport;

  /** A role that owns its databases and is nothing more: what somebody who runs a PostgreSQL for others gives away. */
  const role = `heph_plain_${randomUUID().slice(0, 8)}`;

  before(async () => {
    server = await freshDatabase();
    await tell(`create role ${role} login nosuperuser password 'plain'`);
    scene = await fillEveryTable(given.db);
    await backup(given.url, { to: file, version: VERSION });
    restored = await emptyDatabase();
    report = await restoreInto(restored);
  });
  after(async () => {
    for (const name of made) await dropDatabase(server.url, name);
    await tell(`drop role ${role}`);
    await server.drop();
    rmSync(dir, { recursive: true, force: true });
  });

  /** A database without any table, of the plain role. */
  async function emptyDatabase(): Promise<string> {
    const name = `heph_${randomUUID().slice(0, 8)}`;
    made.push(name);
    const url = new URL(await createDatabase(server.url, name));
    await tell(`alter database ${name} owner to ${role}`);
    [url.username, url.password] = [role, 'plain'];
    return url.href;
  }

  async function tell(statement: string): Promise<void> {
    const client = new pg.Client({ connectionString: server.url });
    await client.connect();
    await client.query(statement).finally(() => client.end());
  }

  async function looking<T>(url: string, work: (db: Database) => Promise<T>): Promise<T> {
    const db = await openTestDatabase(url, 2);
    return work(db).finally(() => db.close());
  }

  const restoreInto = async (url: string, from = file) => restore(url, await openBackup(from));

  async function isEmpty(url: string): Promise<void> {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    try {
      for (const { name } of await readTables(client, backedUpTables())) {
        expect((await client.query(`select count(*)::int as n from "${name}"`)).rows, name).to.deep.equal([{ n: 0 }]);
      }
    } finally {
      await client.end();
    }
  }

  it('is about every table of the schema but those of sign-ins and of pulls', async () => {
    const rows = await run(given.db, sql.unsafe`select tablename as name from pg_tables where schemaname = 'public' order by 1`);
    const left = new Set([...backedUpTables(), 'web_session', 'sign_in_attempt', 'installation', 'waiting_pull', 'heph_migration']);
    expect(rows.map(({ name }) => name).filter((name) => !left.has(String(name)))).to.deep.equal([]);
    const empty = [...(await everyRow(given.db))].filter(([, lines]) => lines.length === 0).map(([name]) => name);
    expect(empty, 'add a row of it to spec/support/every-table.ts').to.deep.equal([]);
  });

  it('is a file for its owner alone, says what it is in its first line, and takes no name that is taken', async () => {
    expect(statSync(file).mode & 0o777).to.equal(0o600);
    const [first = ''] = gunzipSync(readFileSync(file)).toString().split('\n');
    expect(JSON.parse(first)).to.include({ heph: 'backup', format: 1, version: VERSION, migration: migrationNames().at(-1) });
    expect(await refusal(backup(given.url, { to: file, version: VERSION }))).to.include('exists already. Nothing was written');
    expect(readdirSync(dir), 'no draft is left').to.deep.equal(['whole.heph']);
    const nowhere = path.join(dir, 'none/backup.heph');
    expect(await refusal(backup(given.url, { to: nowhere, version: VERSION }))).to.equal(
      'The backup cannot be written (ENOENT). Choose another place.',
    );
  });

  it('comes back row by row, to the byte, with its keys and its numbers', async () => {
    expect(report.migrated).to.deep.equal([]);
    await looking(restored, async (db) => {
      const [was, is] = [await everyRow(given.db), await everyRow(db)];
      for (const [name, lines] of was) if (!name.startsWith('outbox_')) expect(is.get(name), name).to.deep.equal(lines);
      const keys = sql.unsafe`select conname, pg_get_constraintdef(oid) as what from pg_constraint where connamespace = 'public'::regnamespace order by 1, 2`;
      expect(await run(db, keys)).to.deep.equal(await run(given.db, keys));
      expect(await run(db, sql.unsafe`select id_hash from web_session`), 'who signed out stays signed out').to.deep.equal([]);
      const next = sql.unsafe`insert into slack_event (team_id, event_id, outcome, done_at) values ('T0', ${randomUUID()}, 'x', clock_timestamp())
        returning seq > (select max(seq) from slack_event) as later`;
      expect(await run(db, next)).to.deep.equal([{ later: true }]);
    });
  });

  it('comes back into a database that is migrated and empty, too', async () => {
    const fresh = await freshDatabase();
    try {
      await restoreInto(fresh.url);
      await looking(fresh.url, async (db) => expect((await everyRow(db)).get('mentor_turn')).to.have.length(3));
    } finally {
      await fresh.drop();
    }
  });

  // rule: R14
  it('posts nothing by itself that may have been posted since: it is read back first, or an operator decides', async () => {
    expect(report).to.include({ postsInDoubt: 3, answersInDoubt: 1 });
    await looking(restored, async (db) => {
      const rows = await run(
        db,
        sql.unsafe`select state, reason, due_at is not null as read, lease_id is not null and started_at is not null as named, turn_id from outbox_action
          order by turn_id nulls first`,
      );
      const doubtful = { state: 'UNCERTAIN', reason: 'restored', read: true, named: true, turn_id: null };
      expect(rows).to.deep.equal([doubtful, doubtful, doubtful, { ...doubtful, read: false, turn_id: scene.openSlackTurn }]);
      // The turn itself goes on; when it ends, nothing more is enqueued.
      const ended = await run(
        db,
        sql.unsafe`with t as (
            update mentor_turn set status = 'FAILED', error_code = 'X', error_text = 'x', ended_at = clock_timestamp()
            where id = ${scene.openSlackTurn} and status = 'QUEUED' returning id)
          update agent_run r set state = 'ENDED', ended_at = clock_timestamp() from t where r.turn_id = t.id returning r.state`,
      );
      expect(ended).to.have.length(1);
      const ofTurn = await run(db, sql.unsafe`select state from outbox_action where turn_id = ${scene.openSlackTurn}`);
      expect(ofTurn).to.deep.equal([{ state: 'UNCERTAIN' }]);
    });
  });

  it('is not restored over rows, and the rows stay', async () => {
    const before = await everyRow(given.db);
    expect(await refusal(restoreInto(given.url))).to.match(/^This database is not empty: table \w+ has rows\. Nothing was changed\./);
    expect(await everyRow(given.db)).to.deep.equal(before);
  });

  it('of an older schema is loaded there, and then migrated like the original', async () => {
    const [old, older] = [await emptyDatabase(), path.join(dir, 'older.heph')];
    await migrate(old, '0005_paths');
    const client = new pg.Client({ connectionString: old });
    await client.connect();
    const id = randomUUID();
    await client.query(`insert into workspace (id, slug, name) values ($1, 'forge', 'The Forge')`, [id]);
    const tables = (await readTables(client, backedUpTables())).map(({ name, columns }) => ({
      name,
      columns: columns.map((one) => one.name),
    }));
    await writeBackup(older, {
      header: { version: '0.0.1', migration: '0005_paths', postgres: '18', takenAt: new Date(0).toISOString(), tables },
      async *rows(table) {
        const list = tables.find(({ name }) => name === table)?.columns.map((column) => `"${column}"::text`);
        yield (await client.query<string[]>({ text: `select ${list} from "${table}"`, rowMode: 'array' })).rows;
      },
      numbers: async () => ({}),
    });
    await client.end();
    const url = await emptyDatabase();
    const { migrated, postsInDoubt } = await restoreInto(url, older);
    expect(migrated).to.deep.equal(migrationNames().slice(5));
    expect(postsInDoubt).to.equal(0);
    await looking(url, async (db) =>
      expect(await run(db, sql.unsafe`select id, slug from workspace`)).to.deep.equal([{ id, slug: 'forge' }]),
    );
    const fresh = await freshDatabase();
    expect(await refusal(restoreInto(fresh.url, older))).to.include('newer than the backup');
    await fresh.drop();
  });

  /** The whole file with its lines changed, compressed again; its checksum is left as it was. */
  function changed(name: string, change: (lines: string[]) => string[]): string {
    const to = path.join(dir, name);
    writeFileSync(to, gzipSync(change(gunzipSync(readFileSync(file)).toString().split('\n')).join('\n')));
    return to;
  }

  it('that was cut off, changed or is something else is refused, and nothing is touched', async () => {
    const url = await emptyDatabase();
    const bytes = statSync(file).size;
    const cut = path.join(dir, 'cut.heph');
    for (const length of [0, 1, 20, Math.floor(bytes / 2), bytes - 9, bytes - 1]) {
      copyFileSync(file, cut);
      truncateSync(cut, length);
      expect(await refusal(restoreInto(url, cut)), `${length} of ${bytes} bytes`).to.match(/ends in the middle|is not a backup of Heph/);
    }
    const flipped = readFileSync(file);
    flipped[Math.floor(bytes / 2)] = (flipped[Math.floor(bytes / 2)] ?? 0) ^ 1;
    writeFileSync(cut, flipped);
    expect(await refusal(restoreInto(url, cut))).to.include('is damaged');
    const wrong: [string, (lines: string[]) => string[], RegExp][] = [
      ['a row is missing', (lines) => lines.filter((line) => !line.includes('refs/pull/7/head')), /checksum differs/],
      ['a word is another', (lines) => lines.map((line) => line.replace('refs/pull/7', 'refs/pull/8')), /checksum differs/],
      ['its end is gone', (lines) => lines.slice(0, -2), /ends in the middle/],
      ['more follows', (lines) => [...lines.slice(0, -1), '["x"]', ''], /something follows its end/],
      [
        'a row has too few values',
        (lines) => lines.map((line) => (line.includes('refs/pull/7') ? '["x"]' : line)),
        /a row of repository_request is not one/,
      ],
      ['it is of a later format', (lines) => lines.map((line) => line.replace('"format":1', '"format":2')), /is of format 2/],
      [
        'it is of a later schema',
        (lines) => lines.map((line, at) => (at === 0 ? line.replace(/"migration":"\w+"/, '"migration":"9999_later"') : line)),
        /checksum differs/,
      ],
      ['it is other JSON', () => ['{"a":1}', ''], /is not a backup of Heph/],
    ];
    for (const [name, change, why] of wrong) expect(await refusal(restoreInto(url, changed(`${name}.heph`, change))), name).to.match(why);
    expect(await refusal(restoreInto(url, path.join(dir, 'none.heph')))).to.match(/cannot be read \(ENOENT\)/);
    await isEmpty(url);
  });

  it('of a Heph that is newer is refused with its name', async () => {
    const later = path.join(dir, 'later.heph');
    const header = { version: '7.0.0', migration: '9999_later', postgres: '19', takenAt: '2030-01-01T00:00:00.000Z', tables: [] };
    await writeBackup(later, { header, rows: async function* () {}, numbers: async () => ({}) });
    expect(await refusal(openBackup(later))).to.match(/taken at migration 9999_later by Heph 7\.0\.0, which this Heph does not know/);
  });

  it('whose rows break a rule of the schema is restored not at all', async () => {
    const url = await emptyDatabase();
    const broken = path.join(dir, 'broken.heph');
    const client = new pg.Client({ connectionString: given.url });
    await client.connect();
    const tables = (await readTables(client, backedUpTables())).map(({ name, columns }) => ({
      name,
      columns: columns.map((one) => one.name),
    }));
    await writeBackup(broken, {
      header: { version: VERSION, migration: migrationNames().at(-1) ?? '', postgres: '18', takenAt: new Date(0).toISOString(), tables },
      async *rows(table) {
        // Members of a workspace that is not there.
        if (table === 'workspace') return;
        const list = tables.find(({ name }) => name === table)?.columns.map((column) => `"${column}"::text`);
        yield (await client.query<string[]>({ text: `select ${list} from "${table}"`, rowMode: 'array' })).rows;
      },
      numbers: async () => ({}),
    });
    await client.end();
    expect(await refusal(restoreInto(url, broken))).to.not.equal('it was not refused');
    await isEmpty(url);
    const keys = sql.unsafe`select count(*)::int as n from pg_constraint where contype = 'f'`;
    await looking(url, async (db) => expect(await run(db, keys), 'the keys are there').to.deep.equal(await run(given.db, keys)));
    expect(existsSync(broken)).to.equal(true);
  });
});
