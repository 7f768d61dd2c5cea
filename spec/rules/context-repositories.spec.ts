/**
 * A loaded repository, with git run for real: what is in its archive, how large it may be, and which trees are refused.
 */
import { execFile } from 'node:child_process';
import { lstat, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { loadManifestSchema } from '../../src/contract/agent.ts';
import { useDatabase } from '../support/database.ts';
import { gitIn, noise, prepared } from '../support/git-repositories.ts';
import { MIB, manifest, oneFile, whatCame as text, useRepositories } from '../support/repository-scene.ts';

describe('a loaded repository', function () {
  this.timeout(60_000);
  const database = useDatabase();
  const scene = useRepositories(database);
  const { add, load, open } = scene;

  it('gives the files of the default branch with the history that its commit reaches, read-only and clean', async () => {
    const first = await scene.remote.commit(oneFile('one'));
    await scene.remote.git('tag', '-a', 'v1', '-m', 'first', first);
    await scene.remote.commit(oneFile('elsewhere'), { branch: 'other' });
    const second = await scene.remote.commit([...oneFile('two'), { path: 'bin/run.sh', content: '#!/bin/sh\n', mode: '100755' }], {
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
    const { dir } = await scene.folder.extract(result);
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
    await scene.remote.commit([
      ...oneFile('x'),
      { path: 'passwd', content: '/etc/passwd', mode: '120000' },
      { path: 'up', content: '../../..', mode: '120000' },
      { path: 'dir/self', content: '.', mode: '120000' },
    ]);
    const git = await open();
    await add(git);
    const { dir } = await scene.folder.extract(await load(git));
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
    await scene.remote.commit([...kept, ...omitted].map((name) => ({ path: name, content: name })));
    const git = await open();
    await add(git);
    const result = prepared(await load(git));
    expect(result.manifest.omittedFiles).to.equal(omitted.length);
    const { dir } = await scene.folder.extract(result);
    for (const name of kept) expect(await readFile(path.join(dir, name), 'utf8'), name).to.equal(name);
    const status = await gitIn(dir, '-c', 'core.quotePath=false', 'status', '--porcelain');
    expect(status.split('\n').filter((line) => !line.trim().startsWith('D '))).to.deep.equal([]);
  });

  it('leaves submodules as empty folders, and large-file pointers as the pointers that they are', async () => {
    const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${'a'.repeat(64)}\nsize 123\n`;
    const commit = await scene.remote.commit(oneFile('x'));
    await scene.remote.commit([
      { path: '.gitmodules', content: '[submodule "sub"]\n\tpath = sub\n\turl = --upload-pack=touch x\n' },
      { path: '.gitattributes', content: '*.bin filter=lfs diff=lfs merge=lfs -text\n*.txt eol=crlf ident export-ignore\n' },
      { path: 'big.bin', content: pointer },
      { path: 'plain.txt', content: 'a\n$Id$\n' },
      { path: 'sub', content: commit, mode: '160000' },
    ]);
    const git = await open();
    await add(git);
    const { dir } = await scene.folder.extract(await load(git));
    expect(await readdir(path.join(dir, 'sub'))).to.deep.equal([]);
    expect(await readFile(path.join(dir, 'big.bin'), 'utf8')).to.equal(pointer);
    expect(await readFile(path.join(dir, 'plain.txt'), 'utf8')).to.equal('a\n$Id$\n');
  });

  it('refuses a tree with names that Git itself would not check out', async () => {
    const git = await open();
    await add(git);
    for (const name of ['.git/config', '../up', '.GIT/hooks/post-checkout', 'a/../../b', './x', '.git']) {
      await scene.remote.commit([...oneFile('x'), { path: name, content: 'hostile' }]);
      expect(text(await load(git)), name).to.equal(
        'refused: The repository has a file name that Git itself refuses to check out. It cannot be loaded.',
      );
    }
    expect((await readdir(path.join(git.dataDir, 'archives'))).filter((name) => !name.endsWith('.json'))).to.deep.equal([]);
    await scene.remote.commit(oneFile('better'));
    expect(text(await load(git))).to.equal('prepared');
  });

  it('builds a commit once, keeps archives within their room, and builds again one that was cut off', async () => {
    await scene.remote.commit(oneFile('one'));
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
    const { archive } = await scene.folder.extract(await load(git));
    expect(archive.length).to.be.greaterThan(512);
    await scene.remote.commit(oneFile('two'));
    text(await load(git));
    expect(await archives())
      .to.have.length(1)
      .and.not.include(name);
    first.body.destroy();
  });

  it('loads an archive of exactly the allowed size, and refuses one byte more', async () => {
    await scene.remote.commit(oneFile('x'.repeat(3 * MIB)));
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
    for (let n = 0; n < 3; n++) await scene.remote.commit([{ path: 'noise', content: noise(MIB, n) }]);
    await scene.remote.commit(oneFile('small'));
    const shallow = await open({ snapshotMaxBytes: 2 * MIB });
    await add(shallow);
    const small = await open({ mirrorMaxBytes: MIB });
    expect(text(await load(small))).to.equal('refused: The repository is larger than 1 MiB, which is the limit of this installation.');
    expect(await readdir(path.join(small.dataDir, 'mirrors'))).to.deep.equal([]);
    expect(text(await load(shallow))).to.match(/^refused: With its history/);
    expect(text(await load(await open({ snapshotMaxBytes: 4 * MIB })))).to.equal('prepared');
  });
});
