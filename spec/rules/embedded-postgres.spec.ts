/**
 * The embedded PostgreSQL of db/embedded under servers that are killed, interrupted and raced, as root and as an ordinary user.
 * Question asked of it: can any way of starting, ending or repeating Heph on one data directory lose a committed row or run two databases?
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import pg from 'pg';
import { locatePackage, prepareBinaries } from '../../db/embedded/binaries.ts';
import { lockText, makeLock } from '../../db/embedded/lock.ts';
import { startOf } from '../../db/embedded/processes.ts';
import { changed, Host, isRoot, logText, ordinary, pidFile, query, refusal, scratch, type User, useHosts } from '../support/embedded.ts';
import { skipLoudly } from '../support/skip.ts';

/** Letters of a data directory in `parent` whose socket file has a path of 107 bytes. */
const longest = (parent: string) => 107 - join(parent, 'd', 'postgres', '.s.PGSQL.65535').length + 1;
const owner = (path: string) => statSync(path).uid;

const servers: [who: string, user: User | undefined][] = [
  ['root', undefined],
  ['an ordinary user', ordinary],
];

for (const [who, user] of servers) {
  describe(`the embedded PostgreSQL of a server that is ${who}`, function () {
    this.timeout(60_000);
    useHosts();
    let dataDir: string;

    before(async function () {
      if (who === 'root' && !isRoot) skipLoudly(this, 'this run is not root');
      dataDir = join(scratch(user), 'data');
      const host = await Host.spawn(user, { LANG: 'nonsense', LC_ALL: 'xx_XX.KOI8', PGSSLMODE: 'require', PGPORT: '1' });
      const { url } = await host.start(dataDir);
      await query(url, 'create table note (id int primary key, words text)');
      await query(url, 'insert into note values (1, $1)', ['Žluťoučký 🐎']);
      await host.end();
    });

    it('stores UTF-8 although LANG is nonsense at the first start, and has the rows at the next one', async () => {
      const { url } = await (await Host.spawn(user)).start(dataDir);
      expect(new URL(url).pathname).to.equal('/heph');
      expect(await query(url, 'show server_encoding')).to.deep.equal([{ server_encoding: 'UTF8' }]);
      expect(await query(url, 'select words, length(words) from note')).to.deep.equal([{ words: 'Žluťoučký 🐎', length: 11 }]);
      const [locale] = await query(url, 'select datlocprovider, datlocale from pg_database where datname = current_database()');
      expect(locale).to.deep.equal({ datlocprovider: 'b', datlocale: 'C.UTF-8' });
    });

    it('does not run as root and asks for the password that only its owner can read', async () => {
      const { url } = await (await Host.spawn(user)).start(dataDir);
      expect(owner(join(dataDir, 'postgres'))).to.not.equal(0);
      expect(owner(pidFile(dataDir))).to.equal(owner(join(dataDir, 'postgres')));
      expect(statSync(join(dataDir, 'postgres.password')).mode & 0o777).to.equal(0o600);
      expect(new URL(url).password).to.equal(readFileSync(join(dataDir, 'postgres.password'), 'utf8'));
      const wrong = new URL(url);
      wrong.password = 'wrong';
      expect(await refusal(query(wrong.href, 'select 1'))).to.include({ code: '28P01' });
    });

    it('listens on the loopback address and on a socket that only its owner reaches, and forces commits to disk', async () => {
      const { url } = await (await Host.spawn(user)).start(dataDir);
      const names = ['listen_addresses', 'unix_socket_permissions', 'fsync', 'synchronous_commit', 'max_connections', 'shared_buffers'];
      const rows = await query(url, 'select current_setting(name) as value from unnest($1::text[]) as name', [names]);
      expect(rows.map(({ value }) => value)).to.deep.equal(['127.0.0.1', '0700', 'on', 'on', '100', '128MB']);
      expect(await query(url, 'select inet_client_addr() as address')).to.deep.equal([{ address: null }]);
      expect(statSync(join(dataDir, 'postgres')).mode & 0o077).to.equal(0);
      expect(readdirSync(join(dataDir, 'postgres')).filter((name) => name.startsWith('.s.PGSQL.'))).to.have.length(2);
    });

    it('is reached by its port where the path of its directory is too long for a socket', async () => {
      const parent = scratch(user);
      for (const [letters, address] of [
        [longest(parent), null],
        [longest(parent) + 1, '127.0.0.1/32'],
      ] as const) {
        const host = await Host.spawn(user);
        const { url } = await host.start(join(parent, 'd'.repeat(letters)));
        expect(await query(url, 'select inet_client_addr()::text as address'), String(letters)).to.deep.equal([{ address }]);
        await host.end();
      }
    });

    it('keeps a committed row when the server is killed with kill -9, and the next server goes on with it', async () => {
      const killed = await Host.spawn(user);
      const first = await killed.start(dataDir);
      await query(first.url, 'insert into note values (2, $1)', ['kept']);
      await killed.kill();
      const second = await (await Host.spawn(user)).start(dataDir);
      expect(await query(second.url, 'select words from note where id = 2')).to.deep.equal([{ words: 'kept' }]);
      expect(second.pid).to.not.equal(first.pid);
      expect(startOf(first.pid)).to.equal(undefined);
    });

    it('goes down cleanly by itself when the server is killed with kill -9', async function () {
      if (!existsSync('/usr/bin/setpriv')) skipLoudly(this, 'this machine has no /usr/bin/setpriv');
      const killed = await Host.spawn(user);
      await killed.start(dataDir);
      const seen = logText(dataDir).length;
      await killed.kill();
      await changed(dataDir, () => logText(dataDir).includes('database system is shut down', seen));
      expect(existsSync(pidFile(dataDir))).to.equal(false);
    });

    it('stops a PostgreSQL that outlived its server, and has the row that was committed there', async () => {
      const { uid, gid } = statSync(join(dataDir, 'postgres'));
      const { postgres } = await prepareBinaries(locatePackage(), undefined);
      const settings = ['-c', 'listen_addresses=', '-c', `unix_socket_directories=${join(dataDir, 'postgres')}`];
      const orphan = spawn(postgres, ['-D', join(dataDir, 'postgres'), ...settings], {
        uid,
        gid,
        detached: true,
        stdio: 'ignore',
        cwd: '/',
      });
      const ended = once(orphan, 'exit');
      await changed(
        join(dataDir, 'postgres'),
        () => existsSync(pidFile(dataDir)) && readFileSync(pidFile(dataDir), 'utf8').includes('ready'),
      );
      const password = readFileSync(join(dataDir, 'postgres.password'), 'utf8');
      const client = new pg.Client({ host: join(dataDir, 'postgres'), port: 5432, user: 'postgres', password, database: 'heph' });
      client.on('error', () => undefined);
      await client.connect();
      await client.query('insert into note values (3, $1)', ['from the orphan']);
      const next = await (await Host.spawn(user)).start(dataDir);
      expect(await ended).to.deep.equal([0, null]);
      expect(await query(next.url, 'select words from note where id = 3')).to.deep.equal([{ words: 'from the orphan' }]);
    });

    it('is refused to a second server while the first one lives, with a sentence that says what to do', async () => {
      const first = await Host.spawn(user);
      const { url } = await first.start(dataDir);
      const answer = await (await Host.spawn(user)).ask(`start ${dataDir}`);
      expect(answer).to.include({ event: 'refused', name: 'DataDirInUse' });
      expect(answer.message).to.equal(
        `The data directory ${dataDir} is in use by another Heph server (process ${first.pid}). ` +
          'Stop that server, or set HEPH_DATA_DIR to another directory.',
      );
      expect(await query(url, 'select 1 as one')).to.deep.equal([{ one: 1 }]);
    });

    it('starts when the pid of a killed server now belongs to another program', async () => {
      const stranger = await Host.spawn(user);
      for (const name of readdirSync(dataDir).filter((file) => file.startsWith('server.'))) rmSync(join(dataDir, name));
      symlinkSync(lockText(stranger.pid, 'another boot:1'), join(dataDir, 'server.7.lock'));
      await (await Host.spawn(user)).start(dataDir);
      expect(readdirSync(dataDir).filter((file) => file.endsWith('.lock'))).to.deep.equal(['server.8.lock']);
    });

    it('starts when the pid of a killed PostgreSQL now belongs to another program of the same user', async () => {
      const { uid, gid } = statSync(join(dataDir, 'postgres'));
      const stranger = await Host.spawn(isRoot ? { uid, gid } : undefined);
      const host = await Host.spawn(user);
      await host.start(dataDir);
      const content = readFileSync(pidFile(dataDir), 'utf8');
      await host.ask('stop');
      writeFileSync(pidFile(dataDir), content.replace(/^\d+/, String(stranger.pid)));
      chownSync(pidFile(dataDir), uid, gid);
      await host.start(dataDir);
      expect(startOf(stranger.pid)).to.be.a('string');
    });

    if (who !== 'root') {
      it('stays the property of its user when root starts it once', async function () {
        if (!isRoot) skipLoudly(this, 'this run is not root');
        const before = owner(join(dataDir, 'postgres'));
        const byRoot = await Host.spawn();
        const { url } = await byRoot.start(dataDir);
        await query(url, "insert into note values (5, 'by root')");
        await byRoot.end();
        expect(owner(join(dataDir, 'postgres'))).to.equal(before);
        const { url: again } = await (await Host.spawn(user)).start(dataDir);
        expect(await query(again, 'select words from note where id = 5')).to.deep.equal([{ words: 'by root' }]);
      });
    }

    it('goes on serving after Ctrl-C until the server stops it', async () => {
      const host = await Host.spawn(user);
      const { url, pid } = await host.start(dataDir);
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      await client.query('begin');
      await client.query("insert into note values (4, 'written while draining')");
      host.interruptGroup();
      expect(await host.answer()).to.include({ event: 'interrupted' });
      for (let i = 0; i < 20; i++) await query(url, 'select 1');
      await client.query('commit');
      await client.end();
      expect(startOf(pid)).to.be.a('string');
      expect(await host.ask('stop')).to.include({ event: 'stopped' });
      expect(startOf(pid)).to.equal(undefined);
      const { url: again } = await host.start(dataDir);
      expect(await query(again, 'select id from note where id = 4')).to.deep.equal([{ id: 4 }]);
    });
  });
}

describe('a data directory that several servers want at once', function () {
  this.timeout(60_000);
  useHosts();

  it('goes to exactly one of four servers that start together, over the lock of a dead one', async () => {
    const dataDir = scratch();
    symlinkSync(lockText(process.pid, 'another boot:1'), join(dataDir, 'server.1.lock'));
    const racers = await Promise.all([1, 2, 3, 4].map(() => Host.spawn()));
    const answers = await Promise.all(racers.map((host) => host.ask(`start ${dataDir}`)));
    const winner = racers[answers.findIndex(({ event }) => event === 'started')];
    const losers = answers.filter(({ event }) => event !== 'started');
    expect(losers.map(({ name }) => name)).to.deep.equal(['DataDirInUse', 'DataDirInUse', 'DataDirInUse']);
    for (const { message } of losers) expect(message).to.include(`(process ${winner?.pid})`);
  });

  it('is locked by exactly one server in each of 400 races', async () => {
    const [racers, races] = [await Promise.all([1, 2, 3].map(() => Host.spawn())), 400];
    const parent = scratch();
    for (let i = 0; i < races; i++) {
      mkdirSync(join(parent, String(i)));
      if (i % 4) symlinkSync(lockText(process.pid, 'another boot:1'), join(parent, String(i), 'server.1.lock'));
    }
    const fromMs = Date.now() + 20;
    const answers = await Promise.all(racers.map((host) => host.ask(`race ${fromMs} ${races} ${parent}`)));
    const won = answers.flatMap((answer) => answer.won).sort((a, b) => a - b);
    expect(won).to.deep.equal(Array.from({ length: races }, (_, i) => i));
  });

  it('is not taken by a server that was delayed while others came and went', () => {
    const dataDir = scratch();
    const [stale, theirs, ours] = ['another boot:1', startOf(process.ppid) ?? '', startOf(process.pid) ?? ''];
    symlinkSync(lockText(process.pid, stale), join(dataDir, 'server.9.lock'));
    symlinkSync(lockText(process.ppid, theirs), join(dataDir, 'server.12.lock'));
    expect(makeLock(dataDir, 10, lockText(process.pid, ours))).to.equal(false);
    expect(readdirSync(dataDir)).to.include('server.12.lock').and.not.include('server.10.lock');
  });

  it('tells one process from the next with the same pid, with /proc and with ps', async () => {
    for (const platform of ['linux', 'darwin'] as const) {
      if (platform === 'linux' && process.platform !== 'linux') continue;
      const host = await Host.spawn();
      expect(startOf(host.pid, platform)).to.be.a('string').and.equal(startOf(host.pid, platform));
      expect(startOf(host.pid, platform)).to.not.equal(startOf(1, platform));
      await host.end();
      expect(startOf(host.pid, platform)).to.equal(undefined);
    }
  });
});
