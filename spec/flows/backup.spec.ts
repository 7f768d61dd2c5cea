/**
 * `heph backup` and `heph restore` as an operator types them: while turns run, into a new place, and over a major version of PostgreSQL.
 */
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { checkBackup, readBackup } from '../../db/backup/read-file.ts';
import { writeBackup } from '../../db/backup/write-file.ts';
import { runBackup, runMigrate, runRestore, type Voice } from '../../src/backup.ts';
import { type Config, readConfig } from '../../src/config.ts';
import { freshDatabase, openTestDatabase } from '../support/database.ts';
import { expectedPage, Flow, settle } from '../support/flow.ts';
import { WebClient } from '../support/person.ts';
import { newDataDir, removeDataDirs, ServerProcess } from '../support/server-process.ts';

/** Servers that start quickly: what sandboxes may do is not the question here. */
const QUICK = { HEPH_SANDBOX_WARM: '0', HEPH_SANDBOX_ISOLATION: 'off' };
const root = fileURLToPath(new URL('../..', import.meta.url));

describe('heph backup and heph restore', function () {
  this.timeout(180_000);
  const dir = mkdtempSync(path.join(tmpdir(), 'heph-backups-'));
  after(() => rmSync(dir, { recursive: true, force: true }));

  interface Said {
    readonly code: number;
    readonly out: string;
    readonly err: string;
  }

  /** The command as a process. */
  function heph(args: readonly string[], env: Readonly<Record<string, string>>): Promise<Said> {
    const inherited = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('HEPH_')));
    return new Promise((resolve) => {
      execFile(
        'bin/heph',
        [...args],
        { cwd: root, env: { ...inherited, ...env }, encoding: 'latin1', maxBuffer: 64 * 1024 * 1024 },
        (error, out, err) => resolve({ code: error === null ? 0 : Number(error.code), out, err }),
      );
    });
  }

  /** The same without a process: most of a second less. */
  async function here(run: (config: Config, voice: Voice) => Promise<number>, env: Readonly<Record<string, string>>): Promise<Said> {
    const said = { out: '', err: '' };
    const voice: Voice = {
      out: (text) => {
        said.out += text;
      },
      err: (text) => {
        said.err += text;
      },
    };
    return { code: await run(readConfig(env, dir), voice), ...said };
  }
  const backupTo =
    (to: string): Parameters<typeof here>[0] =>
    (config, voice) =>
      runBackup(config, to, voice);
  const restoreFrom =
    (from: string): Parameters<typeof here>[0] =>
    (config, voice) =>
      runRestore(config, from, voice);

  it('carry an installation over while its turns run: each question is answered there, once', async () => {
    const flow = await Flow.open();
    const there = await freshDatabase();
    const file = path.join(dir, 'running.heph');
    try {
      const person = flow.person(await flow.server({ env: { ...QUICK, HEPH_AGENT_CAPACITY_TURNS: '1' } }));
      const first = await person.ask('question 0 of conversation 0');
      await person.waitForTurn(first.turn.id);
      const asked = [{ text: 'question 0 of conversation 0', turnId: first.turn.id, conversationId: first.turn.conversationId }];
      for (const text of ['question 1 of conversation 0', 'question 2 of conversation 0', 'question 3 of conversation 0']) {
        const { turn } = await person.ask(text);
        asked.push({ text, turnId: turn.id, conversationId: turn.conversationId });
      }
      const taken = await heph(['backup', '-'], { HEPH_DATABASE_URL: flow.databaseUrl });
      expect(taken.code, taken.err).to.equal(0);
      writeFileSync(file, taken.out, 'latin1');
      expect(taken.err)
        .to.match(/^Backed up \d+ rows of \d+ tables as they were at \S+ \(migration \w+\), to - /)
        .and.include('HEPH_SECRET_KEY');
      await settle(person, asked); // the original goes on

      const restored = await heph(['restore', file], { HEPH_DATABASE_URL: there.url });
      expect(restored, restored.err).to.include({ code: 0 });
      expect(restored.out).to.include('What happened since is gone');
      const other = new WebClient((await flow.server({ env: { ...QUICK, HEPH_DATABASE_URL: there.url } })).url('').replace(/\/$/, ''));
      const { turns, pages } = await settle(other, asked);
      expect(turns.map(({ status }) => status)).to.deep.equal(asked.map(() => 'DONE'));
      const conversationId = asked[0]?.conversationId ?? '';
      expect([...(pages.get(conversationId) ?? [])].map((line) => line.replace(/^\w+/, (kind) => kind.toLowerCase())).sort()).to.deep.equal(
        expectedPage(asked, conversationId),
      );
      const { turn } = await other.ask('and a new one');
      expect((await other.waitForTurn(turn.id)).status).to.equal('DONE');
    } finally {
      await flow.close();
      await there.drop();
    }
  });

  describe('with the embedded database', () => {
    const file = path.join(dir, 'embedded.heph');
    const old = newDataDir();
    after(removeDataDirs);

    async function withServer<T>(dataDir: string, work: (person: WebClient) => Promise<T>): Promise<T> {
      const server = await ServerProcess.start({ dataDir, env: QUICK });
      try {
        return await work(new WebClient(`http://127.0.0.1:${server.port}`));
      } finally {
        await server.stop();
      }
    }

    const answered = async (person: WebClient, text: string) => {
      const { turn } = await person.ask(text);
      expect((await person.waitForTurn(turn.id)).status).to.equal('DONE');
      return turn.conversationId;
    };

    it('backs it up while a server has it, and restores nothing under that server', async () => {
      const none = await here(backupTo(file), { HEPH_DATA_DIR: dir });
      expect(none.code).to.equal(1);
      expect(none.err).to.include('There is no database in');
      await withServer(old, async (person) => {
        await answered(person, 'Are you there?');
        const { code, err } = await here(backupTo(file), { HEPH_DATA_DIR: old });
        expect(code, err).to.equal(0);
        const refused = await here(restoreFrom(file), { HEPH_DATA_DIR: old });
        expect(refused.code).to.equal(1);
        expect(refused.err).to.include('is in use by another Heph server');
      });
    });

    it('goes over to another major version, keeps the old database, and touches nothing when it cannot', async () => {
      // As an older Heph would have left it: PostgreSQL itself refuses the directory by this file.
      const version = path.join(old, 'postgres/PG_VERSION');
      const own = readFileSync(version, 'utf8');
      writeFileSync(version, '17\n');
      const isKept = () => readdirSync(old).filter((name) => name.startsWith('postgres-'));
      const refused = await heph([], { HEPH_DATA_DIR: old, HEPH_PORT: '0', HEPH_AGENT_PORT: '0', HEPH_OPS_PORT: '0' });
      expect(refused.code).to.equal(1);
      expect(refused.err).to.include('written by PostgreSQL 17').and.include('heph restore FILE');

      // Whole by its checksum, and against a rule of the schema: known only when the old database has made room.
      const broken = await here(restoreFrom(await brokenCopy()), { HEPH_DATA_DIR: old });
      expect(broken.code).to.equal(1);
      expect(broken.err).to.match(/^PostgreSQL refused \(23503: /);
      expect([readFileSync(version, 'utf8'), isKept()], 'it is back in its place').to.deep.equal(['17\n', []]);

      const { code, out, err } = await here(restoreFrom(file), { HEPH_DATA_DIR: old });
      expect(code, err).to.equal(0);
      expect(out).to.include(`kept in ${path.join(old, 'postgres-17')}`);
      expect(readFileSync(version, 'utf8')).to.equal(own);
      expect(existsSync(path.join(old, 'postgres-17/base')), 'whole').to.equal(true);
      await withServer(old, async (person) => {
        const { id } = await person.conversation();
        expect((await person.entries(id)).map(({ text }) => text)).to.include('Are you there?');
        await answered(person, 'And now?');
      });
    });

    /** The backup without its workspaces. */
    async function brokenCopy(): Promise<string> {
      const { header } = await checkBackup(file);
      const to = path.join(dir, 'broken.heph');
      await writeBackup(to, {
        header,
        async *rows(table) {
          if (table === 'workspace') return;
          for await (const record of readBackup(file)) if (record.kind === 'row' && record.table === table) yield [record.row];
        },
        numbers: async () => ({}),
      });
      return to;
    }
  });

  it('say what is wrong with a command, and with a database that does not answer', async () => {
    const alone = await heph(['backup'], {});
    expect(alone.code).to.equal(2);
    expect(alone.err).to.match(/^heph backup takes one file: heph backup FILE\./);
    const away = await here(backupTo(path.join(dir, 'away.heph')), { HEPH_DATABASE_URL: 'postgres://u:secret-word@127.0.0.1:1/heph' });
    expect(away).to.deep.equal({
      code: 1,
      out: '',
      err: 'The database does not answer. Start it, or correct HEPH_DATABASE_URL. Nothing was changed.\n',
    });
    expect(readdirSync(dir)).to.not.include('away.heph');
  });

  it('and heph migrate brings a database to this version, once', async () => {
    const fresh = await freshDatabase();
    const { code, out } = await here(runMigrate, { HEPH_DATABASE_URL: fresh.url });
    expect({ code, out }).to.deep.equal({ code: 0, out: 'The database has every migration already.\n' });
    await (await openTestDatabase(fresh.url, 2)).close();
    await fresh.drop();
    expect((await here(runMigrate, { HEPH_DATA_DIR: dir })).err).to.include('HEPH_DATABASE_URL is not set');
  });
});
