/**
 * git as a process of the server: what it may not see, that it ends with its load, where it may connect to, and that a repository of real
 * size goes through.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { chmod, readdir, readFile, writeFile } from 'node:fs/promises';
import net from 'node:net';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { expect } from 'chai';
import { reconcileSlots } from '../../db/ledger/slots.ts';
import { sql } from '../../db/pool.ts';
import { ContextDesk } from '../../src/context/desk.ts';
import { Git } from '../../src/context/loaders/git/git-command.ts';
import {
  type GitLoaderSettings,
  type GitRepositories,
  openGitRepositories,
  type ResolveHost,
} from '../../src/context/loaders/git/index.ts';
import { Remotes } from '../../src/context/loaders/git/remote.ts';
import { ContextRegistry } from '../../src/context/registry.ts';
import { LOAD_HEADER, loadManifestSchema } from '../../src/contract/agent.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { silentLog } from '../../src/kernel/log.ts';
import { until } from '../support/actors.ts';
import { useDatabase } from '../support/database.ts';
import { GitFolder, gitIn, noise } from '../support/git-repositories.ts';
import { type HttpRig, useRigs } from '../support/http-rig.ts';
import { emptyLedger, run } from '../support/ledger.ts';

const MIB = 1024 * 1024;
const SETTINGS = { program: 'git', searchPath: process.env['PATH'] ?? '', allowFile: true };
const never = () => new AbortController().signal;

/** True while a process runs; one that has ended and was not waited for does not. */
async function runs(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => null);
  return stat !== null && !/\) [ZX] /.test(stat);
}

/** The process ids in a file, once it is there. */
async function pidsIn(file: string): Promise<readonly number[]> {
  const read = () => readFile(file, 'utf8').catch(() => '');
  await until('git has started', async () => (await read()) !== '');
  return (await read()).trim().split(' ').map(Number);
}

describe('git on the server', function () {
  this.timeout(60_000);
  let folder: GitFolder;
  before(async () => {
    folder = await GitFolder.open();
  });
  after(() => folder.close());

  /** A program in the place of git. */
  async function program(lines: string): Promise<string> {
    const file = path.join(await folder.folder(), 'git');
    await writeFile(file, `#!/bin/sh\n${lines}\n`);
    await chmod(file, 0o755);
    return file;
  }

  it('sees nothing of this machine’s environment and settings, and no repository above its folder', async () => {
    const cwd = await folder.folder();
    const options = { cwd, signal: never(), timeoutMs: 10_000 };
    const seen = await new Git({ ...SETTINGS, program: await program('env') }).run([], options);
    const names = seen.stdout
      .toString()
      .split('\n')
      .map((line) => line.split('=')[0] ?? '');
    const ours = names.filter((name) => name !== '' && !name.startsWith('GIT_') && !['PWD', '_', 'SHLVL', 'OLDPWD'].includes(name));
    expect(ours.sort()).to.deep.equal(['HOME', 'LANG', 'LC_ALL', 'PATH']);
    await gitIn(folder.dir, 'init', '--quiet');
    await gitIn(folder.dir, 'config', 'url.https://evil.example.com/.insteadOf', 'https://git.example.com/');
    const git = new Git(SETTINGS);
    expect((await git.run(['rev-parse', '--git-dir'], options)).code).to.equal(128);
    const settings = (await git.run(['config', '--list', '--show-origin'], options)).stdout.toString();
    expect(settings.split('\n').filter((line) => line !== '' && !line.startsWith('command line:'))).to.deep.equal([]);
  });

  it('speaks https, and nothing else unless a setting says so', async () => {
    const remote = await folder.repository();
    const cwd = await folder.folder();
    const [open, closed] = [new Git(SETTINGS), new Git({ ...SETTINGS, allowFile: false })];
    const list = (git: Git, url: string) => git.run(['ls-remote', '--', url], { cwd, signal: never(), timeoutMs: 10_000 });
    expect((await list(open, remote.url)).code).to.equal(0);
    for (const url of [remote.url, remote.dir, 'ssh://127.0.0.1/x', 'git://127.0.0.1/x', 'http://127.0.0.1/x', 'ext::sh -c true']) {
      const { code, stderr } = await list(closed, url);
      expect([code, /transport '\w+' not allowed/.test(stderr)], url).to.deep.equal([128, true]);
    }
  });

  it('is killed with everything that it started when it takes too long, says too much, or nobody wants it any more', async () => {
    const hanging = async () => {
      const pids = path.join(await folder.folder(), 'pids');
      const git = new Git({ ...SETTINGS, program: await program(`sleep 600 & echo $$ $! > ${pids}.new; mv ${pids}.new ${pids}; wait`) });
      const started = () => pidsIn(pids);
      return { git, started };
    };
    const cwd = await folder.folder();
    const gone = async (pids: readonly number[]) => {
      expect(pids).to.have.length(2);
      for (const pid of pids) await until('the process is gone', async () => !(await runs(pid)));
    };
    const left = await hanging();
    const abort = new AbortController();
    const abandoned = left.git.run([], { cwd, signal: abort.signal, timeoutMs: 60_000 }).catch((error: Error) => error.message);
    const pids = await left.started();
    abort.abort(new Error('nobody reads this'));
    expect(await abandoned).to.equal('nobody reads this');
    await gone(pids);
    const slow = await hanging();
    expect((await slow.git.run([], { cwd, signal: never(), timeoutMs: 500 })).how).to.equal('timeout');
    await gone(await slow.started());
    const loud = new Git({ ...SETTINGS, program: await program('yes') });
    expect((await loud.run([], { cwd, signal: never(), timeoutMs: 60_000, outputMaxBytes: 1_000 })).how).to.equal('output');
    expect((await new Git({ ...SETTINGS, program: '/nowhere/git' }).run([], { cwd, signal: never(), timeoutMs: 1_000 })).how).to.equal(
      'missing',
    );
  });

  it('connects to the very address that was judged, and to none that may not be called', async () => {
    const cwd = await folder.folder();
    const seen = path.join(cwd, 'arguments');
    const git = new Git({ ...SETTINGS, program: await program(`printf '%s\\n' "$@" > ${seen}; exit 128`) });
    const refuse: ResolveHost = async () => {
      throw Object.assign(new Error('no'), { name: 'AddressRefused' });
    };
    const ask = (url: string, resolveHost: ResolveHost) =>
      new Remotes(git, resolveHost).ask({ url: new URL(url), cwd, signal: never(), timeoutMs: 10_000 });
    await ask('https://Git.Example.com/x.git', async () => ['192.0.2.7', '2001:db8::7']);
    const words = (await readFile(seen, 'utf8')).split('\n');
    expect(words).to.include.members(['http.curloptResolve=git.example.com:443:192.0.2.7,[2001:db8::7]', 'http.followRedirects=false']);
    await writeFile(seen, '');
    for (const url of ['https://git.example.com/x.git', 'https://169.254.169.254/x.git', 'https://[::1]/x.git'])
      expect(await ask(url, refuse), url).to.include({ kind: 'failed', reason: 'address' });
    expect(await readFile(seen, 'utf8')).to.equal('');
  });

  it('really goes to that address: the name is not looked up again', async () => {
    const hello = Promise.withResolvers<string>();
    const server = net.createServer((socket) => {
      socket.on('error', () => {}); // git hangs up
      socket.once('data', (bytes) => {
        hello.resolve(bytes.toString('latin1'));
        socket.destroy();
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as net.AddressInfo;
    const url = new URL(`https://nobody-has-this-name.invalid:${port}/x.git`);
    const reply = await new Remotes(new Git(SETTINGS), async () => ['127.0.0.1']).ask({
      url,
      cwd: await folder.folder(),
      signal: never(),
      timeoutMs: 10_000,
    });
    server.close();
    expect(reply.kind).to.equal('failed');
    expect(await hello.promise, 'the name in the first message of TLS').to.include('nobody-has-this-name.invalid');
  });

  it('tells an admin what is wrong with a remote, in words of ours', async () => {
    const cwd = await folder.folder();
    const said = async (stderr: string) => {
      const git = new Git({ ...SETTINGS, program: await program(`echo "${stderr}" >&2; exit 128`) });
      const reply = await new Remotes(git, async () => ['192.0.2.1']).ask({
        url: new URL('https://h/x'),
        cwd,
        signal: never(),
        timeoutMs: 10_000,
      });
      return reply.kind === 'failed' ? reply.reason : reply.kind;
    };
    for (const [stderr, reason] of [
      ["fatal: could not read Username for 'https://h': terminal prompts disabled", 'login'],
      ["fatal: unable to access 'https://h/': The requested URL returned error: 403", 'login'],
      ["fatal: repository 'https://h/x/' not found", 'missing'],
      ["fatal: '/srv/x' does not appear to be a git repository", 'missing'],
      ["fatal: unable to access 'https://h/': Could not resolve host: h", 'name'],
      ["fatal: unable to access 'https://h/': SSL certificate problem: self-signed certificate", 'tls'],
      ["fatal: unable to access 'https://h/': Failed to connect to h port 443: Connection refused", 'unreachable'],
      ['fatal: something new', 'unknown'],
    ] as const)
      expect(await said(stderr), stderr).to.equal(reason);
  });

  it('is not used when it is missing or too old to be told an address', async () => {
    const open = async (words: string) => {
      const settings = {
        ...SETTINGS,
        dataDir: await folder.folder(),
        freshMs: 0,
        ...{ snapshotMaxBytes: MIB, mirrorMaxBytes: MIB, archivesMaxBytes: MIB },
      };
      const db = { any: async () => [] } as never;
      return openGitRepositories({ ...settings, program: await program(words) }, { db, log: silentLog, resolveHost: async () => [] });
    };
    expect(await open('echo git version 2.36.9')).to.equal(null);
    expect(await open('exit 1')).to.equal(null);
    expect(await open('echo git version 2.37.0')).to.not.equal(null);
    expect(await open('echo "git version 3.0.1 (Some Vendor)"')).to.not.equal(null);
  });
});

describe('a repository, loaded by a sandbox', function () {
  this.timeout(300_000);
  const database = useDatabase();
  const openRig = useRigs(database);
  let folder: GitFolder;
  before(async () => {
    folder = await GitFolder.open();
  });
  after(() => folder.close());
  beforeEach(async () => {
    await emptyLedger(database.db);
    await run(database.db, sql.unsafe`truncate repository cascade`);
    await reconcileSlots(database.db, 4);
  });

  async function scene(more: Partial<GitLoaderSettings> = {}) {
    const bounds = { snapshotMaxBytes: 512 * MIB, mirrorMaxBytes: 2_048 * MIB, archivesMaxBytes: 2_048 * MIB };
    const dataDir = await folder.folder();
    const settings = { ...SETTINGS, ...bounds, freshMs: 0, dataDir, ...more };
    const git = (await openGitRepositories(settings, { db: database.db, log: silentLog, resolveHost: async () => [] })) as GitRepositories;
    const registry = new ContextRegistry({ sources: [], loaders: [git.loader], log: silentLog });
    const desk = new ContextDesk({ db: database.db, registry, clock: systemClock, log: silentLog });
    const rig = await openRig({ items: desk });
    const { body } = await rig.ask('Why?');
    const sandbox = await rig.sandbox(body.turn.conversationId);
    const { run: claim } = (await sandbox.next(5_000)).body;
    return { dataDir, git, desk, rig, sandbox, claim };
  }

  /** The load of one path as bytes. */
  function post(
    { rig, sandbox, claim }: { rig: HttpRig; sandbox: { credential: string }; claim: { id: string; epoch: number } },
    path: string,
    signal?: AbortSignal,
  ) {
    const headers = { authorization: `Bearer ${sandbox.credential}`, 'x-agent-run': claim.id, 'x-agent-epoch': String(claim.epoch) };
    return fetch(`http://127.0.0.1:${rig.agentPort}/internal/agent/runs/${claim.id}/turn/sandbox/load`, {
      ...{ method: 'POST', headers: { ...headers, 'content-type': 'application/json' }, body: JSON.stringify({ path }) },
      ...(signal ? { signal } : {}),
    });
  }

  it('of 5,000 files and 200 MB of history arrives whole', async () => {
    const remote = await folder.repository();
    await remote.feed(
      ['-c', 'core.compression=0', 'fast-import', '--quiet', '--depth=0'],
      history({ files: 5_000, commits: 50, bytesPerCommit: 4 * MIB }),
    );
    const it = await scene();
    await it.git.admin.add({ cloneUrl: remote.url, name: 'large', workspace: null, branch: null });
    const response = await post(it, 'repos/large');
    expect(response.status).to.equal(200);
    const manifest = loadManifestSchema.parse(
      JSON.parse(Buffer.from(response.headers.get(LOAD_HEADER) ?? '', 'base64url').toString('utf8')),
    );
    const archive = await buffer(response.body as never);
    expect(archive.length)
      .to.equal(manifest.bytes)
      .and.greaterThan(200 * MIB);
    expect(createHash('sha256').update(archive).digest('hex')).to.equal(manifest.sha256);
    const dir = await folder.unpack(archive);
    expect(await gitIn(dir, 'rev-list', '--count', 'HEAD')).to.equal('51');
    expect((await gitIn(dir, 'ls-files')).split('\n')).to.have.length(5_001);
    expect(await gitIn(dir, 'status', '--porcelain')).to.equal('');
  });

  it('is forgotten with its git when the sandbox goes away', async () => {
    const remote = await folder.repository();
    await remote.commit([{ path: 'a', content: 'b' }]);
    const pids = path.join(await folder.folder(), 'pids');
    const wrapper = path.join(await folder.folder(), 'git');
    const hang = `sleep 600 & echo $$ $! > ${pids}.new; mv ${pids}.new ${pids}; wait`;
    await writeFile(
      wrapper,
      `#!/bin/sh\nfor word in "$@"; do if [ "$word" = fetch ] && [ ! -e ${pids} ]; then ${hang}; fi; done\nexec git "$@"\n`,
    );
    await chmod(wrapper, 0o755);
    const it = await scene({ program: wrapper });
    await it.git.admin.add({ cloneUrl: remote.url, name: 'slow', workspace: null, branch: null });
    const sandboxGoes = new AbortController();
    const response = post(it, 'repos/slow', sandboxGoes.signal).catch((error: Error) => error.name);
    const started = await pidsIn(pids);
    sandboxGoes.abort();
    expect(await response).to.equal('AbortError');
    for (const pid of started) await until('git is gone', async () => !(await runs(pid)));
    await until('the load is forgotten', () => it.desk.loads === 0);
    const again = await post(it, 'repos/slow');
    expect(again.status).to.equal(200);
    await again.body?.cancel();
    expect((await readdir(path.join(it.dataDir, 'archives'))).filter((name) => name.startsWith('tmp-'))).to.deep.equal([]);
  });
});

interface Size {
  readonly files: number;
  readonly commits: number;
  /** Of new content that does not compress. */
  readonly bytesPerCommit: number;
}

/** A history for `git fast-import`: many files at once, then one large one that changes. */
function* history({ files, commits, bytesPerCommit }: Size): Generator<Buffer> {
  const data = (content: Buffer) => Buffer.concat([Buffer.from(`data ${content.length}\n`), content, Buffer.from('\n')]);
  const head = (n: number) => {
    return Buffer.from(`commit refs/heads/main\ncommitter Ada <ada@example.com> ${1_760_000_000 + n} +0000\ndata 6\nchange\n`);
  };
  yield head(0);
  for (let n = 0; n < files; n++)
    yield Buffer.concat([Buffer.from(`M 100644 inline src/${n % 70}/file-${n}.txt\n`), data(Buffer.from(`file ${n}\n`.repeat(100)))]);
  for (let n = 1; n <= commits; n++) {
    yield head(n);
    yield Buffer.concat([Buffer.from('M 100644 inline large.bin\n'), data(noise(bytesPerCommit, n))]);
  }
}
