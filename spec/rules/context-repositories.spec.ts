/**
 * Repositories that a turn loads, with git run for real: which one, which version, what is in the archive, and what is refused.
 */
import { execFile } from 'node:child_process';
import { lstat, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import type { MentorContextRequest } from '../../db/context/read-request.ts';
import { sql } from '../../db/pool.ts';
import { findRepository } from '../../db/repositories/repositories.ts';
import { checkCloneUrl, nameFromUrl } from '../../src/context/loaders/git/clone-url.ts';
import { type GitLoaderSettings, type GitRepositories, openGitRepositories } from '../../src/context/loaders/git/index.ts';
import { isRefName, parseLoadName } from '../../src/context/loaders/git/ref-names.ts';
import type { LoadResult } from '../../src/context/spi.ts';
import { type LoadManifest, loadManifestSchema } from '../../src/contract/agent.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import { silentLog } from '../../src/kernel/log.ts';
import { useDatabase } from '../support/database.ts';
import { type FileSpec, GitFolder, gitIn, noise, prepared, type TestRepository } from '../support/git-repositories.ts';
import { emptyLedger, makePerson, run } from '../support/ledger.ts';

const MIB = 1024 * 1024;
const BOUNDS = { snapshotMaxBytes: 64 * MIB, mirrorMaxBytes: 256 * MIB, archivesMaxBytes: 256 * MIB };

describe('the name of a load', () => {
  it('is a ref that git itself takes, and never one that reads like an option', async function () {
    this.timeout(30_000);
    const names = [
      ...['main', 'feature/x', 'v1.0', 'ü/ä', 'a@b', 'request/12', 'x'.repeat(200), 'a-', 'a.b', '@x', 'a/-b'],
      ...[
        '',
        '-x',
        '--upload-pack=touch /tmp/x',
        'a..b',
        'a b',
        'a~1',
        'a^',
        'a:b',
        'a?',
        'a*',
        'a[b',
        'a\\b',
        'a@{1}',
        '/a',
        'a/',
        'a//b',
      ],
      ...['.a', 'a/.b', 'a.', 'a.lock', 'a.lock/b', 'a\u0001b', 'a\u007fb', 'a\nb', '@'],
    ];
    for (const name of names) {
      const byGit = await promisify(execFile)('git', ['check-ref-format', `refs/heads/${name}`]).then(
        () => true,
        () => false,
      );
      const asBranch = byGit && !name.startsWith('-') && name !== '@'; // git takes these two below refs/heads/, and nowhere else
      expect(isRefName(name), name).to.equal(asBranch);
    }
    expect(isRefName('x'.repeat(201))).to.equal(false);
    expect(isRefName('a\ud800')).to.equal(false);
  });

  it('is a repository, and behind @ a ref', () => {
    expect(parseLoadName('heph')).to.deep.equal({ repository: 'heph', ref: null });
    expect(parseLoadName('heph@feature/x')).to.deep.equal({ repository: 'heph', ref: 'feature/x' });
    expect(parseLoadName('a.b_c-1@v1@2')).to.deep.equal({ repository: 'a.b_c-1', ref: 'v1@2' });
    for (const bad of ['', '@main', 'Heph', '-x', '.git', 'a/b', 'heph@', 'heph@-x', 'heph@--upload-pack=x', 'heph@a b', 'heph@a..b'])
      expect(parseLoadName(bad), bad).to.equal(null);
  });
});

describe('a clone URL', () => {
  const check = (url: string, allowFile = false) => {
    const checked = checkCloneUrl(url, { allowFile });
    return checked.kind === 'ok' ? 'ok' : checked.why;
  };

  it('is taken when it begins with https and holds no secret', () => {
    expect(check('https://git.example.com/team/project.git')).to.equal('ok');
    expect(check('https://git.example.com:8443/project')).to.equal('ok');
    expect(check('file:///srv/project.git', true)).to.equal('ok');
  });

  it('is refused with what to change', () => {
    for (const [url, why] of [
      ['git@github.com:team/project.git', 'over https only'],
      ['ssh://git@example.com/x.git', 'over https only'],
      ['git://example.com/x.git', 'over https only'],
      ['http://git.example.com/x.git', 'begin with https'],
      ['ext::sh -c touch% /tmp/x', 'begin with https'],
      ['https://ada:token@git.example.com/x.git', 'no user name, password or token'],
      ['https://token@git.example.com/x.git', 'no user name, password or token'],
      ['file:///srv/project.git', 'HEPH_GIT_ALLOW_FILE'],
      ['/srv/project.git', 'no clone URL'],
      ['--upload-pack=touch /tmp/x', 'no clone URL'],
      ['https://git.example.com', 'names no repository'],
      ['https://git.example.com/x?y=1', 'no query'],
      ['https://git.example.com/x#y', 'no query and no fragment'],
      ['https://git.example.com./x', 'end with a dot'],
      ['https://git.example.com/a%0ab', 'control character'],
      [`https://git.example.com/${'x'.repeat(2_000)}`, 'no clone URL'],
    ] as const)
      expect(check(url), url).to.include(why);
  });

  it('gives a repository its name', () => {
    const named = (url: string) => nameFromUrl(new URL(url));
    expect(named('https://e.com/Team/My%20Project.GIT')).to.equal('my-20project');
    expect(named('https://e.com/x/.github/')).to.equal('github');
    expect(named('https://e.com/---')).to.equal(null);
    expect(named(`https://e.com/${'a'.repeat(100)}`)).to.equal('a'.repeat(63));
  });
});

describe('loading a repository', function () {
  this.timeout(60_000);
  const database = useDatabase();
  let folder: GitFolder;
  let remote: TestRepository;
  let request: MentorContextRequest;

  before(async () => {
    folder = await GitFolder.open();
  });
  after(() => folder.close());
  beforeEach(async () => {
    await emptyLedger(database.db);
    await run(database.db, sql.unsafe`truncate repository cascade`);
    const person = await makePerson(database.db);
    const [workspace] = await run(database.db, sql.unsafe`select slug from workspace where id = ${person.workspaceId}`);
    request = {
      workspace: { id: person.workspaceId, name: 'W', slug: String(workspace?.['slug']) },
      account: { id: person.accountId, displayName: 'Ada', timeZone: 'Europe/Berlin' },
      ...{
        conversationId: uuidv7<'conversation'>(),
        turnId: uuidv7<'turn'>(),
        questionEntryId: uuidv7<'entry'>(),
        now: '2026-10-12T12:41:00.000Z',
      },
    };
    remote = await folder.repository();
  });

  /** A server's git loader, with a data folder of its own. Always asks the remote, unless `freshMs` says otherwise. */
  async function open(more: Partial<GitLoaderSettings> = {}, dataDir?: string): Promise<GitRepositories & { readonly dataDir: string }> {
    const settings = { program: 'git', searchPath: process.env['PATH'] ?? '', allowFile: true, freshMs: 0, ...BOUNDS };
    const dir = dataDir ?? (await folder.folder());
    const resolveHost = async () => ['192.0.2.1'];
    const opened = await openGitRepositories({ ...settings, dataDir: dir, ...more }, { db: database.db, log: silentLog, resolveHost });
    if (!opened) throw new Error('no git');
    return { ...opened, dataDir: dir };
  }

  const add = (git: GitRepositories, name = 'project', more: { branch?: string; url?: string } = {}) =>
    git.admin.add({ cloneUrl: more.url ?? remote.url, name, workspace: request.workspace.slug, branch: more.branch ?? null });
  const load = (git: GitRepositories, name = 'project', signal = new AbortController().signal): Promise<LoadResult> =>
    git.loader.load(request, `repos/${name}`, signal);
  /** What came of a load whose archive is not read. */
  function text(result: LoadResult): string {
    if (result.kind !== 'prepared') return `${result.kind}: ${result.text}`;
    result.body.destroy();
    return 'prepared';
  }
  function manifest(result: LoadResult): LoadManifest {
    const load = prepared(result);
    load.body.destroy();
    return load.manifest;
  }
  const oneFile = (content: string): FileSpec[] => [{ path: 'README.md', content }];

  it('gives the files of the default branch with the history that its commit reaches, read-only and clean', async () => {
    const first = await remote.commit(oneFile('one'));
    await remote.git('tag', '-a', 'v1', '-m', 'first', first);
    await remote.commit(oneFile('elsewhere'), { branch: 'other' });
    const second = await remote.commit([...oneFile('two'), { path: 'bin/run.sh', content: '#!/bin/sh\n', mode: '100755' }], {
      message: 'the second',
    });
    const git = await open();
    await add(git);
    const result = prepared(await load(git));
    expect(loadManifestSchema.parse(result.manifest)).to.deep.equal(result.manifest);
    expect(result.manifest.directory).to.equal('repos/project');
    expect(result.manifest.version).to.match(
      new RegExp(`^${second} \\(main, fetched \\w{3} \\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d [+]0\\d:00\\)$`),
    );
    const { dir } = await folder.extract(result);
    expect(await readFile(path.join(dir, 'README.md'), 'utf8')).to.equal('two');
    expect((await stat(path.join(dir, 'bin/run.sh'))).mode & 0o777).to.equal(0o555);
    expect((await stat(path.join(dir, 'README.md'))).mode & 0o222).to.equal(0);
    expect(await gitIn(dir, 'status', '--porcelain', '--branch')).to.equal('## main');
    expect(await gitIn(dir, 'fsck', '--full', '--strict')).to.equal('');
    expect(await gitIn(dir, 'show', `${first}:README.md`)).to.equal('one');
    expect(await gitIn(dir, 'describe', '--tags')).to.match(/^v1-1-g/);
    expect(await gitIn(dir, 'rev-list', '--all', '--count')).to.equal('2');
    const [program = '', ...args] = result.manifest.summary ?? [];
    const { stdout } = await promisify(execFile)(program, args, { cwd: dir });
    expect(stdout).to.match(
      /^[0-9a-f]{7,} \w{3} \d{4}-\d\d-\d\d Ada: the second \(HEAD -> main\)\n[0-9a-f]{7,} .*: change 1 \(tag: v1\)\n$/,
    );
  });

  it('has no link in it: a symbolic link is a file that says where it led', async () => {
    await remote.commit([
      ...oneFile('x'),
      { path: 'passwd', content: '/etc/passwd', mode: '120000' },
      { path: 'up', content: '../../..', mode: '120000' },
      { path: 'dir/self', content: '.', mode: '120000' },
    ]);
    const git = await open();
    await add(git);
    const { dir } = await folder.extract(await load(git));
    for (const [name, target] of [
      ['passwd', '/etc/passwd'],
      ['up', '../../..'],
      ['dir/self', '.'],
    ] as const) {
      expect((await lstat(path.join(dir, name))).isFile(), name).to.equal(true);
      expect(await readFile(path.join(dir, name), 'utf8')).to.equal(target);
    }
    expect(await gitIn(dir, 'status', '--porcelain')).to.equal('');
  });

  it('keeps names with spaces, dashes, umlauts and 400 bytes, and counts those that no archive may hold', async () => {
    const long = `${'a'.repeat(99)}/${'b'.repeat(99)}/${'c'.repeat(99)}/${'d'.repeat(100)}`;
    const kept = [
      '-rf',
      '--help',
      'a b/c  d',
      'ü/日本.txt',
      '🜂',
      long,
      `e/${'f'.repeat(250)}`,
      'x~1',
      '%00',
      "it's",
      '$(touch x)',
      '`id`',
      'a;b',
    ];
    const omitted = ['line\nbreak', 'tab\there', 'back\\slash', `${long}e`];
    await remote.commit([...kept, ...omitted].map((name) => ({ path: name, content: name })));
    const git = await open();
    await add(git);
    const result = prepared(await load(git));
    expect(result.manifest.omittedFiles).to.equal(omitted.length);
    const { dir } = await folder.extract(result);
    for (const name of kept) expect(await readFile(path.join(dir, name), 'utf8'), name).to.equal(name);
    const status = await gitIn(dir, '-c', 'core.quotePath=false', 'status', '--porcelain');
    expect(status.split('\n').filter((line) => !line.trim().startsWith('D '))).to.deep.equal([]);
  });

  it('leaves submodules as empty folders, and large-file pointers as the pointers that they are', async () => {
    const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${'a'.repeat(64)}\nsize 123\n`;
    const commit = await remote.commit(oneFile('x'));
    await remote.commit([
      { path: '.gitmodules', content: '[submodule "sub"]\n\tpath = sub\n\turl = --upload-pack=touch x\n' },
      { path: '.gitattributes', content: '*.bin filter=lfs diff=lfs merge=lfs -text\n*.txt eol=crlf ident export-ignore\n' },
      { path: 'big.bin', content: pointer },
      { path: 'plain.txt', content: 'a\n$Id$\n' },
      { path: 'sub', content: commit, mode: '160000' },
    ]);
    const git = await open();
    await add(git);
    const { dir } = await folder.extract(await load(git));
    expect(await readdir(path.join(dir, 'sub'))).to.deep.equal([]);
    expect(await readFile(path.join(dir, 'big.bin'), 'utf8')).to.equal(pointer);
    expect(await readFile(path.join(dir, 'plain.txt'), 'utf8')).to.equal('a\n$Id$\n');
  });

  it('refuses a tree with names that Git itself would not check out', async () => {
    const git = await open();
    await add(git);
    for (const name of ['.git/config', '../up', '.GIT/hooks/post-checkout', 'a/../../b', './x', '.git']) {
      await remote.commit([...oneFile('x'), { path: name, content: 'hostile' }]);
      expect(text(await load(git)), name).to.equal(
        'refused: The repository has a file name that Git itself refuses to check out. It cannot be loaded.',
      );
    }
    expect((await readdir(path.join(git.dataDir, 'archives'))).filter((name) => !name.endsWith('.json'))).to.deep.equal([]);
    await remote.commit(oneFile('better'));
    expect(text(await load(git))).to.equal('prepared');
  });

  it('finds a branch, a tag, a commit and a request by name, and says when there is none', async () => {
    const first = await remote.commit(oneFile('one'));
    await remote.git('tag', 'v1', first);
    await remote.commit(oneFile('two'));
    await remote.commit(oneFile('work'), { branch: 'feature/x', parent: first });
    await remote.commit(oneFile('asked'), { branch: 'refs/pull/12/head', parent: first });
    await remote.commit(oneFile('merge'), { branch: 'refs/merge-requests/7/head', parent: first });
    const git = await open();
    await add(git);
    const readme = async (name: string) => readFile(path.join((await folder.extract(await load(git, name))).dir, 'README.md'), 'utf8');
    expect(await readme('project@feature/x')).to.equal('work');
    expect(await readme('project@v1')).to.equal('one');
    expect(await readme(`project@${first}`)).to.equal('one');
    expect(await readme(`project@${first.slice(0, 7)}`)).to.equal('one');
    expect(await readme('project@request/12')).to.equal('asked');
    expect(await readme('project@request/7')).to.equal('merge');
    const { dir } = await folder.extract(await load(git, 'project@v1'));
    expect(await gitIn(dir, 'status', '--branch', '--porcelain')).to.equal('## HEAD (no branch)');
    for (const name of [
      'project@nope',
      'project@request/13',
      `project@${'0'.repeat(40)}`,
      'project@refs/heads/main',
      'project@HEAD',
      'project@main~1',
    ])
      expect(text(await load(git, name)), name).to.match(/^notFound: /);
    for (const name of ['nope', 'project@--upload-pack=touch x', 'project@-x', 'project/../other', 'project@a..b', 'PROJECT'])
      expect(text(await load(git, name)), name).to.match(/^notFound: There is no such repository/);
  });

  it('belongs to one workspace: in another one there is no such repository', async () => {
    // rule: R11
    await remote.commit(oneFile('one'));
    const git = await open();
    await add(git);
    const stranger = await makePerson(database.db);
    const theirs = { ...request, workspace: { ...request.workspace, id: stranger.workspaceId } };
    expect(text(await git.loader.load(theirs, 'repos/project', new AbortController().signal))).to.match(/^notFound/);
    expect(await git.loader.index(theirs)).to.equal(null);
  });

  it('sees what was pushed since, also by force, and not what was deleted', async () => {
    const first = await remote.commit(oneFile('one'));
    await remote.commit(oneFile('work'), { branch: 'work' });
    const git = await open();
    await add(git);
    expect(text(await load(git, 'project@work'))).to.equal('prepared');
    const forced = await remote.commit(oneFile('forced'), { parent: null });
    await remote.git('update-ref', '-d', 'refs/heads/work');
    await remote.commit(oneFile('below'), { branch: 'work/below', parent: first });
    expect(manifest(await load(git)).version).to.include(forced);
    expect(text(await load(git, 'project@work'))).to.match(/^notFound/);
    expect(text(await load(git, 'project@work/below'))).to.equal('prepared');
  });

  it('follows the remote’s default branch, unless an admin chose one', async () => {
    await remote.commit(oneFile('main'));
    await remote.commit(oneFile('trunk'), { branch: 'trunk' });
    const git = await open();
    await add(git);
    await add(git, 'chosen', { branch: 'main' });
    await remote.git('symbolic-ref', 'HEAD', 'refs/heads/trunk');
    const readme = async (name: string) => readFile(path.join((await folder.extract(await load(git, name))).dir, 'README.md'), 'utf8');
    expect([await readme('project'), await readme('chosen')]).to.deep.equal(['trunk', 'main']);
    expect(await git.loader.index(request)).to.include('- repos/chosen: default branch `main`\n- repos/project: default branch `trunk`');
  });

  it('says that an empty repository has nothing yet, and loads its first commit', async () => {
    const git = await open();
    await add(git);
    expect(await git.loader.index(request)).to.include('- repos/project: empty');
    expect(text(await load(git))).to.equal('notFound: The repository has no commit on its default branch.');
    await remote.commit(oneFile('first'));
    expect(text(await load(git))).to.equal('prepared');
  });

  it('asks the remote again only when the mirror is old or lacks what is asked for, and does without it for what it has', async () => {
    const first = await remote.commit(oneFile('one'));
    const git = await open({ freshMs: 3_600_000 });
    await add(git);
    expect(manifest(await load(git)).version).to.include(first);
    await remote.commit(oneFile('two'));
    expect(manifest(await load(git)).version).to.include(first);
    const work = await remote.commit(oneFile('work'), { branch: 'work' });
    expect(manifest(await load(git, 'project@work')).version).to.include(work);
    const again = await open({}, git.dataDir);
    await run(database.db, sql.unsafe`update repository set clone_url = ${`${remote.url}.gone`} returning id`);
    expect(manifest(await load(again, 'project@work')).version).to.include(work);
    expect(text(await load(again, 'project@nope'))).to.equal(
      'refused: The repository cannot be loaded now. There is no repository at its address.',
    );
  });

  it('goes on after a fetch that was killed in the middle', async () => {
    await remote.commit(oneFile('one'));
    const git = await open();
    await add(git);
    text(await load(git));
    const found = await findRepository(database.db, request.workspace.id, 'project');
    const mirror = path.join(git.dataDir, 'mirrors', `${found?.id}.git`);
    await mkdir(path.join(mirror, 'refs/heads'), { recursive: true });
    for (const left of [
      'packed-refs.lock',
      'HEAD.lock',
      'config.lock',
      'refs/heads/main.lock',
      'objects/pack/tmp_pack_abc',
      'shallow.lock',
    ])
      await writeFile(path.join(mirror, left), 'cut off');
    await mkdir(path.join(git.dataDir, 'mirrors', 'new-half-made'));
    await mkdir(path.join(git.dataDir, 'archives', 'tmp-half-built'));
    const second = await remote.commit(oneFile('two'));
    const successor = await open({}, git.dataDir);
    expect(manifest(await load(successor)).version).to.include(second);
    expect(await readdir(path.join(git.dataDir, 'mirrors'))).to.deep.equal([`${found?.id}.git`]);
    expect((await readdir(path.join(git.dataDir, 'archives'))).filter((name) => name.startsWith('tmp-'))).to.deep.equal([]);
    expect(await readdir(path.join(mirror, 'objects/pack'))).to.not.include('tmp_pack_abc');
  });

  it('builds a commit once, keeps archives within their room, and builds again one that was cut off', async () => {
    await remote.commit(oneFile('one'));
    const git = await open({ archivesMaxBytes: 1 });
    await add(git);
    const archives = async () => (await readdir(path.join(git.dataDir, 'archives'))).filter((name) => name.endsWith('.tar'));
    const first = prepared(await load(git));
    const [name = ''] = await archives();
    const file = path.join(git.dataDir, 'archives', name);
    const built = (await stat(file)).ino;
    text(await load(git));
    expect((await stat(file)).ino).to.equal(built);
    await writeFile(file, 'cut off');
    const { archive } = await folder.extract(await load(git));
    expect(archive.length).to.be.greaterThan(512);
    await remote.commit(oneFile('two'));
    text(await load(git));
    expect(await archives())
      .to.have.length(1)
      .and.not.include(name);
    first.body.destroy();
  });

  it('loads an archive of exactly the allowed size, and refuses one byte more', async () => {
    await remote.commit(oneFile('x'.repeat(3 * MIB)));
    const git = await open();
    await add(git);
    const { bytes } = manifest(await load(git));
    const exact = await open({ snapshotMaxBytes: bytes });
    const tight = await open({ snapshotMaxBytes: bytes - 1 });
    expect(manifest(await load(exact)).bytes).to.equal(bytes);
    expect(text(await load(tight))).to.match(/^refused: .*larger than 3 MiB/);
    expect(text(await load(await open({ snapshotMaxBytes: bytes - 1 }, git.dataDir)))).to.match(/^refused: .*larger than 3 MiB/);
  });

  it('refuses a history or a mirror over its bound, and keeps nothing of it', async () => {
    for (let n = 0; n < 3; n++) await remote.commit([{ path: 'noise', content: noise(MIB, n) }]);
    await remote.commit(oneFile('small'));
    const shallow = await open({ snapshotMaxBytes: 2 * MIB });
    await add(shallow);
    const small = await open({ mirrorMaxBytes: MIB });
    expect(text(await load(small))).to.equal('refused: The repository is larger than 1 MiB, which is the limit of this installation.');
    expect(await readdir(path.join(small.dataDir, 'mirrors'))).to.deep.equal([]);
    expect(text(await load(shallow))).to.match(/^refused: With its history/);
    expect(text(await load(await open({ snapshotMaxBytes: 4 * MIB })))).to.equal('prepared');
  });

  it('lists 40 repositories by name with 10 requests each, and says how many more there are', async () => {
    const first = await remote.commit(oneFile('x'));
    for (let n = 1; n <= 11; n++) await remote.git('update-ref', `refs/pull/${n}/head`, first);
    const git = await open();
    await add(git, 'a-first');
    const insert = (from: number, to: number) =>
      run(
        database.db,
        sql.unsafe`insert into repository (id, workspace_id, name, clone_url)
          select gen_random_uuid(), ${request.workspace.id}, 'r' || lpad(n::text, 3, '0'), 'https://example.com/r' from generate_series(${from}::int, ${to}::int) n returning id`,
      );
    await insert(1, 39);
    const full = (await git.loader.index(request)) ?? '';
    expect(full.match(/^- repos\//gm)).to.have.length(40);
    expect(full).to.not.include('omittedRepositories');
    expect(full).to.include(`request/11, request/10, ${[9, 8, 7, 6, 5, 4, 3, 2].map((n) => `request/${n}`).join(', ')}\n`);
    expect(full).to.not.match(/request\/1(,|$)/m);
    await insert(40, 40);
    const more = (await git.loader.index(request)) ?? '';
    expect(more.match(/^- repos\//gm)).to.have.length(40);
    expect(more).to.match(/- omittedRepositories: 1 more/);
    for (const n of [3, 5]) await remote.git('update-ref', `refs/pull/${n}/merge`, first);
    text(await load(git, 'a-first'));
    expect(await git.loader.index(request)).to.include('- repos/a-first: default branch `main`; newest requests: request/5, request/3\n');
  });
});
