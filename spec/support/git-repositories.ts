/**
 * Real git repositories for specs, made by git itself in a temporary folder, and what a sandbox would do with a load: read the archive,
 * extract it, run git in it. Everything is removed by `close`.
 */
import { execFile, spawn } from 'node:child_process';
import { createCipheriv, createHash, randomUUID } from 'node:crypto';
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'chai';
import type { LoadResult, PreparedLoad } from '../../src/context/spi.ts';

const exec = promisify(execFile);
const ENV = {
  PATH: process.env['PATH'],
  ...{ GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null', GIT_AUTHOR_NAME: 'Ada', GIT_AUTHOR_EMAIL: 'ada@example.com' },
  ...{ GIT_COMMITTER_NAME: 'Ada', GIT_COMMITTER_EMAIL: 'ada@example.com', LC_ALL: 'C' },
};

export interface FileSpec {
  readonly path: string;
  readonly content: string | Buffer;
  /** Default 100644. 120000 is a symbolic link, 160000 a submodule (`content` is a commit id). */
  readonly mode?: '100644' | '100755' | '120000' | '160000';
}

/** Bytes that do not compress, the same for the same seed. */
export function noise(bytes: number, seed: number): Buffer {
  const counter = Buffer.alloc(16);
  counter.writeUInt32BE(seed);
  return createCipheriv('aes-128-ctr', Buffer.alloc(16), counter).update(Buffer.alloc(bytes));
}

/** A folder for one spec file. */
export class GitFolder {
  readonly dir: string;

  private constructor(dir: string) {
    this.dir = dir;
  }

  static async open(): Promise<GitFolder> {
    return new GitFolder(await realpath(await mkdtemp(path.join(tmpdir(), 'heph-git-'))));
  }

  /** A bare repository without a commit. */
  async repository(): Promise<TestRepository> {
    const dir = path.join(this.dir, `${randomUUID()}.git`);
    await exec('git', ['init', '--quiet', '--bare', '--initial-branch=main', dir], { env: ENV });
    return new TestRepository(dir);
  }

  /** An empty folder. */
  folder(): Promise<string> {
    return mkdtemp(path.join(this.dir, 'folder-'));
  }

  /** Reads a load to its end, checks its manifest, and extracts it as a sandbox would. */
  async extract(result: LoadResult): Promise<{ readonly dir: string; readonly archive: Buffer }> {
    const load = prepared(result);
    const archive = await buffer(load.body);
    expect(archive.length).to.equal(load.manifest.bytes);
    expect(createHash('sha256').update(archive).digest('hex')).to.equal(load.manifest.sha256);
    return { dir: await this.unpack(archive), archive };
  }

  /** Extracts an archive into a new folder. */
  async unpack(archive: Buffer): Promise<string> {
    const dir = await this.folder();
    const file = `${dir}.tar`;
    await writeFile(file, archive);
    await exec('tar', ['-xf', file, '-C', dir]);
    await rm(file);
    return dir;
  }

  async close(): Promise<void> {
    await exec('chmod', ['-R', 'u+w', this.dir]);
    await rm(this.dir, { recursive: true, force: true });
  }
}

export function prepared(result: LoadResult): PreparedLoad {
  if (result.kind !== 'prepared') throw new Error(`not prepared: ${result.kind}, ${result.text}`);
  return result;
}

/** Runs git in a folder and returns what it printed. Rejects when it fails. */
export async function gitIn(cwd: string, ...args: readonly string[]): Promise<string> {
  const { stdout } = await exec('git', [...args], { cwd, env: ENV, maxBuffer: 64 * 1024 * 1024 });
  return stdout.trim();
}

export class TestRepository {
  readonly dir: string;
  #marks = 0;

  constructor(dir: string) {
    this.dir = dir;
  }

  get url(): string {
    return pathToFileURL(this.dir).href;
  }

  git(...args: readonly string[]): Promise<string> {
    return gitIn(this.dir, `--git-dir=${this.dir}`, ...args);
  }

  /** Commits exactly these files on a branch and returns the commit's id. `parent` null: a new history. */
  async commit(files: readonly FileSpec[], options: { branch?: string; parent?: string | null; message?: string } = {}): Promise<string> {
    const { branch = 'main', message = `change ${++this.#marks}` } = options;
    const tree = await this.#tree(files);
    const parent =
      options.parent === undefined
        ? await this.git('rev-parse', '--verify', '--quiet', `refs/heads/${branch}`).catch(() => null)
        : options.parent;
    const commit = await this.git('commit-tree', tree, '-m', message, ...(parent ? ['-p', parent] : []));
    await this.git('update-ref', branch.startsWith('refs/') ? branch : `refs/heads/${branch}`, commit);
    return commit;
  }

  /** Trees are written object by object, so that names are possible that no index would take. */
  async #tree(files: readonly FileSpec[]): Promise<string> {
    const folders = new Map<string, FileSpec[]>();
    const lines: Buffer[] = [];
    const here: { name: string; line: Buffer }[] = [];
    for (const file of files) {
      const slash = file.path.indexOf('/');
      if (slash < 0) {
        const mode = file.mode ?? '100644';
        const id = mode === '160000' ? String(file.content) : await this.#object('blob', Buffer.from(file.content));
        here.push({ name: file.path, line: entry(mode, file.path, id) });
      } else {
        const folder = file.path.slice(0, slash);
        folders.set(folder, [...(folders.get(folder) ?? []), { ...file, path: file.path.slice(slash + 1) }]);
      }
    }
    for (const [name, inside] of folders) here.push({ name: `${name}/`, line: entry('40000', name, await this.#tree(inside)) });
    for (const { line } of here.sort((a, b) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)))) lines.push(line);
    return this.#object('tree', Buffer.concat(lines));
  }

  /** `--literally`: also an object that git would not make. */
  #object(type: string, content: Buffer): Promise<string> {
    return this.feed(['hash-object', '-w', '--literally', '-t', type, '--stdin'], [content]);
  }

  /** Runs git with an input. */
  async feed(args: readonly string[], input: Iterable<Buffer> | AsyncIterable<Buffer>): Promise<string> {
    const child = spawn('git', [`--git-dir=${this.dir}`, ...args], { env: ENV, stdio: ['pipe', 'pipe', 'inherit'] });
    const output = buffer(child.stdout);
    const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
    for await (const chunk of input) if (!child.stdin.write(chunk)) await new Promise((resolve) => child.stdin.once('drain', resolve));
    child.stdin.end();
    expect(await ended).to.equal(0);
    return (await output).toString('utf8').trim();
  }
}

function entry(mode: string, name: string, id: string): Buffer {
  return Buffer.concat([Buffer.from(`${mode} `), Buffer.from(name, 'utf8'), Buffer.from([0]), Buffer.from(id, 'hex')]);
}
