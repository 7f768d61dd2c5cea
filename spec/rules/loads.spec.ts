/**
 * Owns: the question "can a repository archive that is not what it should be write anything outside of its folder, or be seen before all of
 * it was checked?", and that a large honest one works in bounded memory.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { RUNNER } from '../../sandbox-runner/config.ts';
import { type ContextFolder, emptyFolder, stageContextFolder } from '../../sandbox-runner/context-folder.ts';
import { stageLoad } from '../../sandbox-runner/load.ts';
import { indexTar } from '../../sandbox-runner/tar-index.ts';
import type { LoadManifest } from '../../src/contract/agent.ts';
import { type TarEntry, tarOf } from '../support/agent-scripts.ts';
import { skipLoudly } from '../support/skip.ts';

const MIB = 1024 * 1024;

describe('a loaded repository', () => {
  let root: string;
  let folder: ContextFolder;

  beforeEach(async () => {
    root = mkdtempSync(join(tmpdir(), 'heph-load-'));
    writeFileSync(join(root, 'secret'), 'not for a model');
    const documents = tarOf([
      { path: 'INDEX.md', data: 'an index' },
      { path: 'inputs/context/user.json', data: '{}' },
    ]);
    folder = await stageContextFolder(join(root, 'work'), documents.toString('base64'), () => Promise.reject(new Error('none')));
  });
  afterEach(async () => {
    await emptyFolder(join(root, 'work'));
    rmSync(root, { recursive: true });
  });

  const at = (path: string): string => join(folder.localDir, path);
  const sha256 = (archive: Buffer): string => createHash('sha256').update(archive).digest('hex');
  /** As if it arrived in pieces of 10,000 bytes. */
  async function* arriving(archive: Buffer): AsyncGenerator<Buffer> {
    for (let from = 0; from < archive.length; from += 10_000) yield archive.subarray(from, from + 10_000);
  }
  const loadRaw = (archive: Buffer, changes: Partial<LoadManifest> = {}, signal = new AbortController().signal): Promise<string> => {
    const manifest = {
      directory: 'repos/heph',
      version: 'c0ffee',
      bytes: archive.length,
      sha256: sha256(archive),
      summary: null,
      ...changes,
    };
    return stageLoad(folder, { manifest, archive: arriving(archive) }, signal);
  };
  const load = (entries: readonly TarEntry[], changes: Partial<LoadManifest> = {}): Promise<string> => loadRaw(tarOf(entries), changes);
  const refusal = (work: Promise<unknown>): Promise<unknown> =>
    work.then(
      () => 'accepted',
      (error: unknown) => error,
    );

  it('lies under the context folder, read-only, programs and long paths included', async () => {
    const long = `src/${'deeper/'.repeat(20)}file.ts`;
    const pax = `path=${long}2\n`;
    const record = `${pax.length + 4} ${pax}`;
    const local = await load([
      { path: 'pax_global_header', type: 'g', data: '52 comment=0123456789012345678901234567890123456789\n' },
      { path: './', type: '5' },
      { path: './README.md', data: 'words' },
      { path: 'run.sh', data: '#!', mode: '0000755' },
      { path: '././@LongLink', type: 'L', data: `${long}\0` },
      { path: long.slice(0, 100), data: 'long' },
      { path: 'PaxHeader', type: 'x', data: record },
      { path: long.slice(0, 100), data: 'longer' },
      { path: 'empty', type: '5' },
    ]);
    expect(local).to.equal(at('repos/heph'));
    expect(readFileSync(at('repos/heph/README.md'), 'utf8')).to.equal('words');
    expect(readFileSync(at(`repos/heph/${long}`), 'utf8')).to.equal('long');
    expect(readFileSync(at(`repos/heph/${long}2`), 'utf8')).to.equal('longer');
    expect(readdirSync(at('repos/heph')).sort()).to.deep.equal(['README.md', 'empty', 'run.sh', 'src']);
    const modes = ['repos/heph', 'repos/heph/src', 'repos/heph/README.md', 'repos/heph/run.sh'].map(
      (path) => statSync(at(path)).mode & 0o777,
    );
    expect(modes).to.deep.equal([0o555, 0o555, 0o444, 0o555]);
    expect(await folder.resolveFile('repos/heph/README.md')).to.equal(at('repos/heph/README.md'));
    expect(readdirSync(folder.localDir).sort()).to.deep.equal(['INDEX.md', 'inputs', 'repos']);
  });

  it('replaces an earlier one, and one that fails leaves the earlier one alone', async () => {
    await load([{ path: 'old/file', data: 'old' }]);
    await load([{ path: 'new', data: 'new' }]);
    expect(readdirSync(at('repos/heph'))).to.deep.equal(['new']);
    expect(await refusal(load([{ path: '../outside', data: 'x' }]))).to.have.property('name', 'TarRefused');
    expect(readdirSync(at('repos/heph'))).to.deep.equal(['new']);
    expect(readdirSync(at('repos'))).to.deep.equal(['heph']);
  });

  const good: TarEntry = { path: 'README.md', data: 'words' };
  const pax = (record: string): TarEntry => ({ path: 'PaxHeader', type: 'x', data: `${record.length + 4} ${record}\n` });
  const hostile: readonly (readonly [string, readonly TarEntry[]])[] = [
    ['a path that leads upwards', [{ path: '../outside', data: 'x' }]],
    ['an absolute path', [{ path: '/tmp/outside', data: 'x' }]],
    ['a symbolic link', [{ path: 'link', type: '2', linkTo: '..' }]],
    ['a hard link', [{ path: 'link', type: '1', linkTo: '../../secret' }]],
    ['a character device', [{ path: 'null', type: '3' }]],
    ['a block device', [{ path: 'disk', type: '4' }]],
    ['a pipe', [{ path: 'pipe', type: '6' }]],
    ['a sparse file', [{ path: 'sparse', type: 'S' }]],
    ['a file that claims ten gigabytes', [{ path: 'huge', sizeField: `${(10 * 1024 * MIB).toString(8).padStart(11, '0')}\0` }]],
    ['a size that is no octal number', [{ path: 'huge', sizeField: '\x80\0\0\0\0\0\0\x02\x54\x0b\xe4\0' }]],
    ['an extended header that renames the next file to the outside', [pax('path=../outside'), good]],
    ['an extended header that gives another size', [pax('size=99999'), good]],
    ['an extended header that makes a link', [pax('linkpath=/etc/passwd'), good]],
    ['an extended header of a sparse file', [pax('GNU.sparse.realsize=99999'), good]],
    ['a broken extended header', [{ path: 'PaxHeader', type: 'x', data: '999 path=x\n' }, good]],
    ['an extended header for all files', [{ path: 'pax', type: 'g', data: '12 path=abc\n' }, good]],
    ['a long name that leads upwards', [{ path: '././@LongLink', type: 'L', data: '../outside\0' }, good]],
    ['a long name for a link', [{ path: '././@LongLink', type: 'K', data: '/etc/passwd\0' }, good]],
    ['an extended header that is too long', [{ path: 'PaxHeader', type: 'x', data: 'x'.repeat(RUNNER.tarExtensionMaxBytes + 1) }, good]],
    ['the same path twice', [good, good]],
    [
      'a folder and a file of one name',
      [
        { path: 'a', type: '5' },
        { path: 'a', data: 'x' },
      ],
    ],
    [
      'a file where a folder must be',
      [
        { path: 'a', data: 'x' },
        { path: 'a/b', data: 'x' },
      ],
    ],
    [
      'a path that is too long',
      [{ path: '././@LongLink', type: 'L', data: `${'a/'.repeat(10)}${'b'.repeat(RUNNER.pathMaxChars)}\0` }, good],
    ],
    ['a path that is too deep', [{ path: '././@LongLink', type: 'L', data: `${'a/'.repeat(RUNNER.pathMaxSegments)}b\0` }, good]],
    ['a control character', [{ path: 'a\nb', data: 'x' }]],
  ];
  for (const [name, entries] of hostile) {
    it(`is refused with ${name}, and nothing of it is left anywhere`, async () => {
      expect(await refusal(load([{ path: 'first.md', data: 'x' }, ...entries]))).to.have.property('name', 'TarRefused');
      expect(readdirSync(folder.localDir).sort()).to.deep.equal(['INDEX.md', 'inputs']);
      expect(readdirSync(root).sort()).to.deep.equal(['secret', 'work']);
    });
  }

  it('may have files that differ in case only', async function () {
    writeFileSync(join(root, 'Case'), '');
    const isSensitive = statSync(join(root, 'case'), { throwIfNoEntry: false }) === undefined;
    if (!isSensitive) return skipLoudly(this, 'this file system cannot hold two such files');
    await load([
      { path: 'Readme', data: 'a' },
      { path: 'README', data: 'b' },
    ]);
    expect(readdirSync(at('repos/heph')).sort()).to.deep.equal(['README', 'Readme']);
  });

  it('is refused when it is not what was declared, to the byte', async () => {
    const archive = tarOf([good]);
    const bytes = archive.length;
    const kinds = await Promise.all(
      [
        loadRaw(archive, { bytes: bytes - 1 }),
        loadRaw(archive, { bytes: bytes + 1 }),
        loadRaw(archive, { sha256: sha256(Buffer.from('x')) }),
        loadRaw(archive, { bytes: RUNNER.loadMaxBytes + 1 }),
        loadRaw(archive.subarray(0, 514)),
      ].map(refusal),
    );
    expect(kinds.map((kind) => (kind as Error).message)).to.deep.equal([
      'more bytes than it declares',
      'fewer bytes than it declares',
      'another checksum than it declares',
      'too many bytes',
      'cut off',
    ]);
    expect(readdirSync(folder.localDir).sort()).to.deep.equal(['INDEX.md', 'inputs']);
    expect(await loadRaw(archive)).to.equal(at('repos/heph'));
  });

  it('cannot be seen before all of it has arrived and was checked', async () => {
    const archive = tarOf([good]);
    const seen: string[][] = [];
    async function* watched(): AsyncGenerator<Buffer> {
      for await (const chunk of arriving(archive)) {
        yield chunk;
        seen.push(readdirSync(folder.localDir).sort());
      }
    }
    const manifest = { directory: 'repos/heph', version: 'c0ffee', bytes: archive.length, sha256: sha256(archive), summary: null };
    await stageLoad(folder, { manifest, archive: watched() }, new AbortController().signal);
    expect(seen).to.deep.equal([['INDEX.md', 'inputs']]);
  });

  it('never takes the place of a document, leads out of the folder, or goes through a link', async () => {
    symlinkSync(root, at('link'));
    for (const directory of [
      'INDEX.md',
      'inputs',
      'inputs/context',
      'inputs/context/user.json/x',
      '../out',
      '/out',
      'a/../../out',
      '.',
      'link/out',
    ]) {
      expect(await refusal(load([good], { directory })), directory).to.be.an('error');
    }
    expect(readFileSync(at('INDEX.md'), 'utf8')).to.equal('an index');
    expect(readdirSync(root).sort()).to.deep.equal(['secret', 'work']);
  });

  it('replaces a link in its place, not what the link leads to', async () => {
    mkdirSync(at('repos'));
    symlinkSync(root, at('repos/heph'));
    await load([good]);
    expect(readdirSync(at('repos/heph'))).to.deep.equal(['README.md']);
    expect(readFileSync(join(root, 'secret'), 'utf8')).to.equal('not for a model');
  });

  it('leaves nothing behind when the turn is stopped meanwhile', async () => {
    const stop = new AbortController();
    stop.abort();
    expect(await refusal(loadRaw(tarOf([good]), {}, stop.signal))).to.have.property('name', 'AbortError');
    expect(readdirSync(at('repos'))).to.deep.equal([]);
  });

  it('of 5,000 files and 180 MiB is extracted whole, in memory that does not grow with it', async () => {
    const large = 'x'.repeat(20 * MIB);
    const entries = Array.from({ length: 5_000 }, (_, n) => ({
      path: `src/d${n % 50}/f${n}.ts`,
      data: n < 8 ? large : 'x'.repeat(4 * 1024),
    }));
    const archive = tarOf(entries);
    const before = process.memoryUsage().rss;
    let peak = 0;
    const watch = setInterval(() => {
      peak = Math.max(peak, process.memoryUsage().rss);
    }, 5);
    await loadRaw(archive);
    clearInterval(watch);
    expect((peak - before) / MIB).to.be.lessThan(90);
    expect(readdirSync(at('repos/heph/src'))).to.have.length(50);
    expect(statSync(at('repos/heph/src/d0/f0.ts')).size).to.equal(20 * MIB);
    expect(statSync(at('repos/heph/src/d49/f4999.ts')).size).to.equal(4 * 1024);
  }).timeout(60_000);

  it('may have 50,000 files and folders, and not one more', async () => {
    const index = async (count: number): Promise<number> => {
      const archive = tarOf(Array.from({ length: count }, (_, n) => ({ path: `f${n}` })));
      writeFileSync(join(root, 'archive'), archive);
      const handle = await open(join(root, 'archive'));
      try {
        return (await indexTar(handle, archive.length)).files.length;
      } finally {
        await handle.close();
      }
    };
    expect(await index(RUNNER.loadMaxFiles - 1)).to.equal(RUNNER.loadMaxFiles - 1);
    expect(await index(RUNNER.loadMaxFiles)).to.equal(RUNNER.loadMaxFiles);
    expect(await refusal(index(RUNNER.loadMaxFiles + 1))).to.have.property('message', 'too many files');
  }).timeout(60_000);
});
