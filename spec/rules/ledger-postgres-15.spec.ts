/**
 * The oldest PostgreSQL that we promise to run on: the ledger's specs once more, on Debian's PostgreSQL 15, in a process of their own.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect } from 'chai';
import pg from 'pg';
import { until } from '../support/actors.ts';
import { skipLoudly } from '../support/skip.ts';

const BIN = '/usr/lib/postgresql/15/bin';
const SPECS = [
  'spec/rules/ledger.spec.ts',
  'spec/rules/ledger-leases.spec.ts',
  'spec/rules/actors-two-servers.spec.ts',
  'spec/rules/erase.spec.ts',
  'spec/rules/edit-vote.spec.ts',
  'spec/rules/erase-races.spec.ts',
  'spec/rules/search.spec.ts',
];
const PROJECT_ROOT = path.resolve(import.meta.dirname, '../..');

/** PostgreSQL refuses to run as root: then as a user who may do nothing. */
function unprivileged(): { uid: number; gid: number } | Record<string, never> {
  if (process.getuid?.() !== 0) return {};
  const users = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'));
  const user = users.find(([name]) => name === 'postgres') ?? users.find(([name]) => name === 'nobody');
  return { uid: Number(user?.[2]), gid: Number(user?.[3]) };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

async function answers(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 1_000 });
  client.on('error', () => undefined); // a connection that was refused has nothing more to say
  return client.connect().then(
    () => client.end().then(() => true),
    () => false,
  );
}

describe('the ledger on PostgreSQL 15', function () {
  this.timeout(180_000);
  let dataDir = '';
  let postgres: ChildProcess | undefined;
  let url = '';

  before(async function () {
    if (!existsSync(path.join(BIN, 'postgres'))) skipLoudly(this, `there is no PostgreSQL 15 in ${BIN} on this machine`);
    const user = unprivileged();
    dataDir = mkdtempSync(path.join(tmpdir(), 'heph-pg15-'));
    if (user.uid !== undefined) chownSync(dataDir, user.uid, user.gid);
    const init = ['-D', dataDir, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C.UTF-8', '--no-sync'];
    const made = spawnSync(path.join(BIN, 'initdb'), init, { ...user, cwd: dataDir, encoding: 'utf8' });
    if (made.status !== 0) throw new Error(`initdb failed: ${made.stderr}`);
    const port = await freePort();
    const settings = ['listen_addresses=127.0.0.1', 'fsync=off', 'max_connections=100', 'wal_level=logical'].flatMap((one) => ['-c', one]);
    postgres = spawn(path.join(BIN, 'postgres'), ['-D', dataDir, '-p', String(port), '-k', dataDir, ...settings], {
      ...{ ...user, cwd: dataDir, stdio: 'ignore' as const },
    });
    url = `postgres://postgres@127.0.0.1:${port}/postgres`;
    await until('PostgreSQL 15 answers', () => answers(url));
  });

  after(async () => {
    if (postgres && postgres.exitCode === null) {
      postgres.kill('SIGINT');
      await once(postgres, 'exit');
    }
    if (dataDir) rmSync(dataDir, { recursive: true, force: true });
  });

  it('keeps every rule that it keeps on the newest one', async () => {
    const env = { ...process.env, HEPH_TEST_DATABASE_URL: url };
    const mocha = spawn(process.execPath, ['node_modules/mocha/bin/mocha.js', '--reporter', 'json', ...SPECS], { cwd: PROJECT_ROOT, env });
    let output = '';
    mocha.stdout.on('data', (chunk) => {
      output += chunk;
    });
    let complaints = '';
    mocha.stderr.on('data', (chunk) => {
      complaints += chunk;
    });
    await once(mocha, 'close');
    const report = JSON.parse(output.slice(output.indexOf('{\n')) || '{}') as {
      stats?: { passes: number; failures: number; pending: number };
      failures?: { fullTitle: string; err: { message: string } }[];
    };
    const failures = (report.failures ?? []).map(({ fullTitle, err }) => `${fullTitle}: ${err.message}`);
    expect(failures, complaints).to.deep.equal([]);
    expect(report.stats).to.include({ failures: 0, pending: 0 });
    expect(report.stats?.passes).to.be.above(40);
  });
});
