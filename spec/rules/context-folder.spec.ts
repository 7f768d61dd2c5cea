/**
 * Owns: the question "can an archive that the server did not mean to send write, or a path that the model chose read, anything
 * outside of the turn's folder?"
 */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { type ContextFolder, type FetchDocument, stageContextFolder } from '../../sandbox-runner/context-folder.ts';
import { idleStage, turnStage } from '../../sandbox-runner/stage.ts';
import { readTar } from '../../sandbox-runner/tar.ts';
import { type TarEntry, tarOf } from '../support/agent-scripts.ts';

describe('the context folder of a turn', () => {
  let root: string;
  let workDir: string;

  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'heph-folder-'));
    workDir = join(root, 'work');
    mkdirSync(workDir);
    writeFileSync(join(root, 'secret'), 'not for a model');
  });
  afterEach(() => rmSync(root, { recursive: true }));

  const fetched: string[] = [];
  /** How an item document is answered, and which were asked for. */
  let fetchDocument: FetchDocument = () => Promise.reject(new Error('There is no such document.'));
  const stage = (entries: readonly TarEntry[]): Promise<ContextFolder> =>
    stageContextFolder(workDir, tarOf(entries).toString('base64'), (path) => {
      fetched.push(path);
      return fetchDocument(path);
    });
  const refusal = (work: Promise<unknown>): Promise<unknown> =>
    work.then(
      () => 'accepted',
      (error: unknown) => error,
    );

  it('holds the documents of the archive, read-only', async () => {
    await stage([
      { path: 'inputs', type: '5' },
      { path: 'inputs/context/user.json', data: '{}' },
      { path: 'INDEX.md', data: 'an index' },
    ]);
    expect(readFileSync(join(workDir, 'INDEX.md'), 'utf8')).to.equal('an index');
    expect(statSync(join(workDir, 'inputs/context/user.json')).mode & 0o777).to.equal(0o444);
  });

  it('begins empty, whatever the turn before it left there', async () => {
    mkdirSync(join(workDir, 'locked/inside'), { recursive: true });
    writeFileSync(join(workDir, 'locked/inside/file'), 'x');
    symlinkSync(root, join(workDir, 'way-out'));
    chmodSync(join(workDir, 'locked'), 0o000);
    await stage([]);
    expect(readdirSync(workDir)).to.deep.equal([]);
    expect(readFileSync(join(root, 'secret'), 'utf8')).to.equal('not for a model');
  });

  it('is made anew when a link stands in its place, and what the link leads to stays', async () => {
    rmSync(workDir, { recursive: true });
    symlinkSync(root, workDir);
    await stage([{ path: 'INDEX.md', data: 'an index' }]);
    expect(existsSync(join(root, 'INDEX.md'))).to.equal(false);
    expect(readFileSync(join(root, 'secret'), 'utf8')).to.equal('not for a model');
  });

  const good: TarEntry = { path: 'INDEX.md', data: 'an index' };
  const refused: readonly (readonly [string, readonly TarEntry[]])[] = [
    ['a path that leads upwards', [{ path: '../outside', data: 'x' }]],
    ['a path that leads upwards further inside', [{ path: 'a/../../outside', data: 'x' }]],
    ['an absolute path', [{ path: '/outside', data: 'x' }]],
    ['a symbolic link', [{ path: 'link', type: '2', linkTo: '..' }]],
    [
      'a symbolic link that a later file goes through',
      [
        { path: 'link', type: '2', linkTo: '..' },
        { path: 'link/outside', data: 'x' },
      ],
    ],
    ['a hard link', [{ path: 'link', type: '1', linkTo: '../secret' }]],
    ['a device', [{ path: 'device', type: '3' }]],
    ['a pipe', [{ path: 'pipe', type: '6' }]],
    ['an extended header, which could rename the next file', [{ path: 'header', type: 'x', data: '20 path=../outside\n' }]],
    ['a path of dots', [{ path: './INDEX', data: 'x' }]],
    ['an empty path', [{ path: '', data: 'x' }]],
    ['a backslash', [{ path: 'a\\b', data: 'x' }]],
    ['a control character', [{ path: 'a\nb', data: 'x' }]],
    ['the same path twice', [good]],
    [
      'a file where a folder must be',
      [
        { path: 'a', data: 'x' },
        { path: 'a/b', data: 'x' },
      ],
    ],
    ['too many files', Array.from({ length: 2_001 }, (_, index) => ({ path: `many/${index}` }))],
    ['too many bytes', [{ path: 'large', data: 'x'.repeat(32 * 1024 * 1024 + 1) }]],
  ];
  for (const [name, entries] of refused) {
    it(`refuses an archive with ${name}, with nothing written`, async () => {
      expect(await refusal(stage([good, ...entries]))).to.have.property('name', 'TarRefused');
      expect(readdirSync(workDir)).to.deep.equal([]);
      expect(readdirSync(root).sort()).to.deep.equal(['secret', 'work']);
    });
  }

  it('refuses an archive that is cut off or changed on its way', () => {
    const whole = tarOf([{ path: 'INDEX.md', data: 'x'.repeat(2_000) }]);
    expect(() => readTar(whole.subarray(0, 1_000))).to.throw('cut off');
    expect(() => readTar(whole.subarray(0, 700))).to.throw('cut off');
    expect(() => readTar(Buffer.from(whole).fill(1, 100, 101))).to.throw('a broken header');
    expect(readTar(Buffer.alloc(0))).to.deep.equal({ directories: [], files: [] });
  });

  it('gives the model its own files only, never one behind a link', async () => {
    const folder = await stage([{ path: 'a/b.md', data: 'words' }]);
    const inside = join(folder.localDir, 'a/b.md');
    for (const path of ['a/b.md', '/workspace/work/a/b.md', './a/../a/b.md']) expect(await folder.resolveFile(path)).to.equal(inside);
    symlinkSync(join(root, 'secret'), join(workDir, 'link'));
    symlinkSync(root, join(workDir, 'folder-link'));
    for (const path of [
      '../secret',
      '/etc/passwd',
      '/workspace/work/../secret',
      '/workspace/workers/x',
      'link',
      'folder-link/secret',
      'a',
      '',
      'missing',
    ]) {
      expect(await refusal(folder.resolveFile(path)), path)
        .to.be.an('error')
        .and.satisfy((error: Error) => !error.message.includes(root));
    }
  });

  describe('item documents', () => {
    const PATH = 'inputs/context/issue/12.json';

    beforeEach(() => {
      fetched.length = 0;
    });

    it('are fetched on the first read, once for all readers, and are read-only files afterwards', async () => {
      const gate = Promise.withResolvers<string>();
      fetchDocument = () => gate.promise;
      const folder = await stage([]);
      const reads = [folder.resolveFile(PATH), folder.resolveFile(`/workspace/work/${PATH}`), folder.resolveFile(`./x/../${PATH}`)];
      gate.resolve('{"title":"Flaky"}');
      const local = join(folder.localDir, PATH);
      expect(await Promise.all(reads)).to.deep.equal([local, local, local]);
      await folder.resolveFile(PATH);
      expect(fetched).to.deep.equal([PATH]);
      expect(readFileSync(local, 'utf8')).to.equal('{"title":"Flaky"}');
      expect(statSync(local).mode & 0o777).to.equal(0o444);
      expect(readdirSync(join(folder.localDir, 'inputs/context/issue')), 'nothing half-written is left').to.deep.equal(['12.json']);
    });

    it('that could not be fetched are asked for again by the next read', async () => {
      fetchDocument = () => Promise.reject(new Error('There is no such document.'));
      const folder = await stage([]);
      expect(await refusal(folder.resolveFile(PATH))).to.have.property('message', 'There is no such document.');
      fetchDocument = () => Promise.resolve('{}');
      expect(await folder.resolveFile(PATH)).to.equal(join(folder.localDir, PATH));
    });

    it('are asked for only under a path that a document can name', async () => {
      fetchDocument = () => Promise.resolve('{}');
      const folder = await stage([good]);
      await folder.resolveFile('inputs/context/review_attempts/pull_request/7.json');
      await folder.resolveFile('INDEX.md');
      const others = [
        'inputs/context/user.json',
        'inputs/context/issue/12.txt',
        'inputs/context/issue/../../../12.json',
        'issue/12.json',
        'repos/a/b.json',
      ];
      for (const path of others) expect(await refusal(folder.resolveFile(path)), path).to.be.an('error');
      expect(fetched).to.deep.equal(['inputs/context/review_attempts/pull_request/7.json']);
    });

    it('are never written through a link that a command has left there', async () => {
      fetchDocument = () => Promise.resolve('{}');
      const folder = await stage([]);
      mkdirSync(join(workDir, 'inputs/context'), { recursive: true });
      symlinkSync(root, join(workDir, 'inputs/context/issue'));
      expect(await refusal(folder.resolveFile(PATH))).to.be.an('error');
      expect(await refusal(folder.resolveFile('inputs/context/issue/deeper/12.json'))).to.be.an('error');
      expect(readdirSync(root).sort()).to.deep.equal(['secret', 'work']);
    });
  });

  it('shows a stage that never repeats what the model wrote', () => {
    expect(turnStage('read', { path: 'inputs/context/prepared_conversation_feedback.json' })).to.equal('Reading your practice feedback…');
    expect(turnStage('bash', { command: 'cd repos/acme/secret && ls' })).to.equal('Reading the repository…');
    expect(turnStage('bash', { command: 'x; git log' })).to.equal('Reading the repository…');
    expect(turnStage('bash', { command: 'cat repos/acme/activity.ts repos/acme/INDEX.md' })).to.equal('Reading the repository…');
    expect(turnStage('bash', { command: 'diff repos/acme/a inputs/context/issue/7.json' })).to.equal('Reading your open work…');
    expect(turnStage('read', { path: 'inputs/context/merge_readiness/7.json' })).to.equal('Reading your open work…');
    expect(turnStage('bash', { command: 'git' })).to.equal('Reading the repository…');
    expect(turnStage('bash', { command: 'echo digit legit' })).to.equal(idleStage);
    expect(turnStage('load_context', {})).to.equal('Loading the repository…');
    expect(turnStage('search_conversation', {})).to.equal('Looking back through this conversation…');
    for (const args of [{ path: 'secret.txt' }, {}, null, 'text', { path: 7 }]) expect(turnStage('read', args)).to.equal(idleStage);
    expect(turnStage('a tool that the model made up', { path: 'repos/' })).to.equal(idleStage);
  });
});
