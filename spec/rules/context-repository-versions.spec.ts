import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect } from 'chai';
import { sql } from '../../db/pool.ts';
import { findRepository } from '../../db/repositories/repositories.ts';
import { useDatabase } from '../support/database.ts';
import { gitIn } from '../support/git-repositories.ts';
import { makePerson, run } from '../support/ledger.ts';
import { manifest, oneFile, whatCame as text, useRepositories } from '../support/repository-scene.ts';

describe('loading a repository', function () {
  this.timeout(60_000);
  const database = useDatabase();
  const scene = useRepositories(database);
  const { add, load, open } = scene;

  it('finds a branch, a tag, a commit and a request by name, and says when there is none', async () => {
    const first = await scene.remote.commit(oneFile('one'));
    await scene.remote.git('tag', 'v1', first);
    await scene.remote.commit(oneFile('two'));
    await scene.remote.commit(oneFile('work'), { branch: 'feature/x', parent: first });
    await scene.remote.commit(oneFile('asked'), { branch: 'refs/pull/12/head', parent: first });
    await scene.remote.commit(oneFile('merge'), { branch: 'refs/merge-requests/7/head', parent: first });
    const git = await open();
    await add(git);
    const readme = async (name: string) =>
      readFile(path.join((await scene.folder.extract(await load(git, name))).dir, 'README.md'), 'utf8');
    expect(await readme('project@feature/x')).to.equal('work');
    expect(await readme('project@v1')).to.equal('one');
    expect(await readme(`project@${first}`)).to.equal('one');
    expect(await readme(`project@${first.slice(0, 7)}`)).to.equal('one');
    expect(await readme('project@request/12')).to.equal('asked');
    expect(await readme('project@request/7')).to.equal('merge');
    const { dir } = await scene.folder.extract(await load(git, 'project@v1'));
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
    await scene.remote.commit(oneFile('one'));
    const git = await open();
    await add(git);
    const stranger = await makePerson(database.db);
    const theirs = { ...scene.request, workspace: { ...scene.request.workspace, id: stranger.workspaceId } };
    expect(text(await git.loader.load(theirs, 'repos/project', new AbortController().signal))).to.match(/^notFound/);
    expect(await git.loader.index(theirs)).to.equal(null);
  });

  it('sees what was pushed since, also by force, and not what was deleted', async () => {
    const first = await scene.remote.commit(oneFile('one'));
    await scene.remote.commit(oneFile('work'), { branch: 'work' });
    const git = await open();
    await add(git);
    expect(text(await load(git, 'project@work'))).to.equal('prepared');
    const forced = await scene.remote.commit(oneFile('forced'), { parent: null });
    await scene.remote.git('update-ref', '-d', 'refs/heads/work');
    await scene.remote.commit(oneFile('below'), { branch: 'work/below', parent: first });
    expect(manifest(await load(git)).version).to.include(forced);
    expect(text(await load(git, 'project@work'))).to.match(/^notFound/);
    expect(text(await load(git, 'project@work/below'))).to.equal('prepared');
  });

  it('follows the remote’s default branch, unless an admin chose one', async () => {
    await scene.remote.commit(oneFile('main'));
    await scene.remote.commit(oneFile('trunk'), { branch: 'trunk' });
    const git = await open();
    await add(git);
    await add(git, 'chosen', 'main');
    await scene.remote.git('symbolic-ref', 'HEAD', 'refs/heads/trunk');
    const readme = async (name: string) =>
      readFile(path.join((await scene.folder.extract(await load(git, name))).dir, 'README.md'), 'utf8');
    expect([await readme('project'), await readme('chosen')]).to.deep.equal(['trunk', 'main']);
    expect(await git.loader.index(scene.request)).to.include(
      '- repos/chosen: default branch `main`\n- repos/project: default branch `trunk`',
    );
  });

  it('says that an empty repository has nothing yet, and loads its first commit', async () => {
    const git = await open();
    await add(git);
    expect(await git.loader.index(scene.request)).to.include('- repos/project: empty');
    expect(text(await load(git))).to.equal('notFound: The repository has no commit on its default branch.');
    await scene.remote.commit(oneFile('first'));
    expect(text(await load(git))).to.equal('prepared');
  });

  it('asks the remote again only when the mirror is old or lacks what is asked for, and does without it for what it has', async () => {
    const first = await scene.remote.commit(oneFile('one'));
    const git = await open({ freshMs: 3_600_000 });
    await add(git);
    expect(manifest(await load(git)).version).to.include(first);
    await scene.remote.commit(oneFile('two'));
    expect(manifest(await load(git)).version).to.include(first);
    const work = await scene.remote.commit(oneFile('work'), { branch: 'work' });
    expect(manifest(await load(git, 'project@work')).version).to.include(work);
    const again = await open({}, git.dataDir);
    await run(database.db, sql.unsafe`update repository set clone_url = ${`${scene.remote.url}.gone`} returning id`);
    expect(manifest(await load(again, 'project@work')).version).to.include(work);
    expect(text(await load(again, 'project@nope'))).to.equal(
      'refused: The repository cannot be loaded now. There is no repository at its address.',
    );
  });

  it('goes on after a fetch that was killed in the middle, and takes no branch for what it left', async () => {
    await scene.remote.commit(oneFile('one'));
    await scene.remote.commit(oneFile('kept'), { branch: 'tmp_pack_1' });
    const git = await open();
    await add(git);
    text(await load(git));
    const found = await findRepository(database.db, scene.request.workspace.id, 'project');
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
    const second = await scene.remote.commit(oneFile('two'));
    const successor = await open({}, git.dataDir);
    expect(manifest(await load(successor)).version).to.include(second);
    expect(await readdir(path.join(git.dataDir, 'mirrors'))).to.deep.equal([`${found?.id}.git`]);
    expect((await readdir(path.join(git.dataDir, 'archives'))).filter((name) => name.startsWith('tmp-'))).to.deep.equal([]);
    await run(database.db, sql.unsafe`update repository set clone_url = ${`${scene.remote.url}.gone`} returning id`);
    expect(text(await load(await open({}, git.dataDir), 'project@tmp_pack_1'))).to.equal('prepared');
    expect(await readdir(path.join(mirror, 'objects/pack'))).to.not.include('tmp_pack_abc');
  });

  it('lists 40 repositories by name with 10 requests each, and says how many more there are', async () => {
    const first = await scene.remote.commit(oneFile('x'));
    for (let n = 1; n <= 11; n++) await scene.remote.git('update-ref', `refs/pull/${n}/head`, first);
    const git = await open();
    await add(git, 'a-first');
    const insert = (from: number, to: number) =>
      run(
        database.db,
        sql.unsafe`insert into repository (id, workspace_id, name, clone_url)
          select gen_random_uuid(), ${scene.request.workspace.id}, 'r' || lpad(n::text, 3, '0'), 'https://example.com/r' from generate_series(${from}::int, ${to}::int) n returning id`,
      );
    await insert(1, 39);
    const full = (await git.loader.index(scene.request)) ?? '';
    expect(full.match(/^- repos\//gm)).to.have.length(40);
    expect(full).to.not.include('omittedRepositories');
    expect(full).to.include(`request/11, request/10, ${[9, 8, 7, 6, 5, 4, 3, 2].map((n) => `request/${n}`).join(', ')}\n`);
    expect(full).to.not.match(/request\/1(,|$)/m);
    await insert(40, 40);
    const more = (await git.loader.index(scene.request)) ?? '';
    expect(more.match(/^- repos\//gm)).to.have.length(40);
    expect(more).to.match(/- omittedRepositories: 1 more/);
    for (const n of [3, 5]) await scene.remote.git('update-ref', `refs/pull/${n}/merge`, first);
    text(await load(git, 'a-first'));
    expect(await git.loader.index(scene.request)).to.include(
      '- repos/a-first: default branch `main`; newest requests: request/5, request/3\n',
    );
  });
});
