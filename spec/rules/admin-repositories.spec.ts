/**
 * `heph repo …` against a running operations listener, with git run for real: what is added, listed and removed, and every refusal in words.
 */
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { expect } from 'chai';
import { sql } from '../../db/pool.ts';
import { findRepository } from '../../db/repositories/repositories.ts';
import { runAdminCommand } from '../../src/cli/run.ts';
import { type GitRepositories, openGitRepositories } from '../../src/context/loaders/git/index.ts';
import { createOpsListener, type HttpListener, type RepositoryAdminPort, requireLocalAdmin } from '../../src/http/index.ts';
import { silentLog } from '../../src/kernel/log.ts';
import { createMetrics } from '../../src/ops/index.ts';
import { useDatabase } from '../support/database.ts';
import { GitFolder, prepared, type TestRepository } from '../support/git-repositories.ts';
import { emptyLedger, makePerson, type Person, run } from '../support/ledger.ts';

const MIB = 1024 * 1024;

describe('repositories, as an admin sets them', () => {
  const database = useDatabase();
  let folder: GitFolder;
  let dataDir: string;
  let git: GitRepositories;
  let listener: HttpListener;
  let opsUrl: string;
  let person: Person;
  let slug: string;
  let remote: TestRepository;

  before(async () => {
    folder = await GitFolder.open();
  });
  after(() => folder.close());
  beforeEach(async () => {
    await emptyLedger(database.db);
    await run(database.db, sql.unsafe`truncate repository cascade`);
    person = await makePerson(database.db);
    const [workspace] = await run(database.db, sql.unsafe`select slug from workspace where id = ${person.workspaceId}`);
    slug = String(workspace?.['slug']);
    dataDir = await folder.folder();
    const settings = { program: 'git', searchPath: process.env['PATH'] ?? '', allowFile: true, freshMs: 0, dataDir };
    const bounds = { snapshotMaxBytes: 64 * MIB, mirrorMaxBytes: 64 * MIB, archivesMaxBytes: 64 * MIB };
    const resolveHost = async () => {
      throw Object.assign(new Error('no'), { name: 'AddressRefused' });
    };
    git = (await openGitRepositories({ ...settings, ...bounds }, { db: database.db, log: silentLog, resolveHost })) as GitRepositories;
    await listen(git.admin);
    remote = await folder.repository();
    await remote.commit([{ path: 'README.md', content: 'hello' }]);
  });
  afterEach(() => listener.stop(1_000));

  async function listen(repositories: RepositoryAdminPort | null): Promise<void> {
    const parts = { parts: [], started: () => true, metrics: createMetrics(), actors: () => [], connectionsMax: 50, log: silentLog };
    listener = createOpsListener({ ...parts, repositories, adminGuard: requireLocalAdmin });
    opsUrl = `http://127.0.0.1:${await listener.start('127.0.0.1', 0)}`;
  }

  async function heph(...args: readonly string[]): Promise<{ code: number; said: string }> {
    let said = '';
    const say = (text: string) => {
      said += text;
    };
    return { code: await runAdminCommand(['repo', ...args], { opsUrl, readInput: async () => '', out: say, err: say }), said };
  }

  it('are added by their clone URL, listed, loaded, and removed with their mirror and archives', async () => {
    expect((await heph('list')).said).to.equal('There are none.\n');
    expect(await heph('add', remote.url, '--name', 'project')).to.deep.equal({
      ...{ code: 0, said: 'The repository is added: turns can load it. heph repo list shows its name.\n' },
    });
    const { said } = await heph('list');
    expect(said).to.match(/^workspace +name +cloneUrl +branch +requests +seenAt\n/);
    expect(said).to.include(`  project  ${remote.url}  main    0`);
    const request = {
      workspace: { id: person.workspaceId, name: 'W', slug },
      account: { id: person.accountId, displayName: 'Ada', timeZone: 'UTC' },
      ...{ conversationId: '', turnId: '', questionEntryId: '', now: '' },
    } as never;
    prepared(await git.loader.load(request, 'repos/project', new AbortController().signal)).body.destroy();
    expect(await readdir(path.join(dataDir, 'archives'))).to.have.length(2);
    expect((await heph('remove', 'project')).said).to.match(/^The repository project is removed\./);
    expect(await readdir(path.join(dataDir, 'mirrors'))).to.deep.equal([]);
    expect(await readdir(path.join(dataDir, 'archives'))).to.deep.equal([]);
    expect((await git.loader.load(request, 'repos/project', new AbortController().signal)).kind).to.equal('notFound');
    expect(await heph('remove', 'project')).to.deep.equal({
      ...{ code: 1, said: 'There is no repository "project". heph repo list shows their names.\n' },
    });
  });

  it('get their name from the URL, a branch of the admin’s choice, and the workspace that is named', async () => {
    const other = await makePerson(database.db);
    const ambiguous = await heph('add', remote.url, '--name', 'x');
    expect(ambiguous).to.deep.equal({ code: 1, said: 'There is more than one workspace. Say which one with --workspace.\n' });
    expect((await heph('add', remote.url, '--workspace', slug, '--branch', 'trunk')).code).to.equal(0);
    const name = path.basename(remote.dir, '.git');
    expect(await findRepository(database.db, person.workspaceId, name)).to.include({ chosenBranch: 'trunk', remoteBranch: 'main' });
    expect(await findRepository(database.db, other.workspaceId, name)).to.equal(null);
    expect((await heph('add', remote.url, '--workspace', 'nowhere')).said).to.equal('There is no workspace "nowhere".\n');
    expect((await heph('remove', name, '--workspace', slug)).code).to.equal(0);
  });

  it('are refused with a sentence that says what is wrong', async () => {
    expect((await heph('add', remote.url, '--name', 'project')).code).to.equal(0);
    for (const [args, why] of [
      [[remote.url, '--name', 'project'], 'There is a repository "project" already. Choose another name with --name.'],
      [[`${remote.url}.gone`], 'The repository cannot be read. There is no repository at its address.'],
      [['https://ada:secret@git.example.com/x.git'], 'The clone URL must hold no user name, password or token'],
      [['https://git.example.com/x.git'], 'The repository cannot be read. Its host leads to an address that may not be called from here.'],
      [['git@git.example.com:x.git'], 'Repositories are cloned over https only.'],
      [[remote.url, '--branch', '--upload-pack=x'], 'branch'],
      [[remote.url, '--branch', 'a..b'], 'The branch has no name that Git allows.'],
      [[remote.url, '--name', '../x'], 'name: must be 1 to 63 of a-z'],
      [['nothing'], 'This is no clone URL.'],
    ] as const) {
      const { code, said } = await heph('add', ...args);
      expect([code > 0, said.includes(why)], `${args.join(' ')}: ${said}`).to.deep.equal([true, true]);
      expect(said).to.not.include('secret');
    }
    expect((await heph('add')).code).to.equal(2);
  });

  it('are refused on a server without git, with what to do about it', async () => {
    await listener.stop(1_000);
    await listen(null);
    for (const args of [['list'], ['add', remote.url], ['remove', 'x']]) {
      const { code, said } = await heph(...args);
      expect([code, said.includes('git 2.37 or newer is not installed here')], args.join(' ')).to.deep.equal([1, true]);
    }
  });

  it('are not an open door: another site, and another method, are refused', async () => {
    const url = `${opsUrl}/admin/api/repositories`;
    const foreign = await fetch(`${url}/project`, { method: 'DELETE', headers: { origin: 'https://evil.example.com' } });
    expect(foreign.status).to.equal(403);
    expect((await fetch(url, { method: 'PUT' })).status).to.equal(405);
  });
});
