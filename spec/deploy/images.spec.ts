/**
 * The images without a container daemon: what their files copy is there and enough, and a server runs on exactly that, with the packages of
 * production alone.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { freshDatabase } from '../support/database.ts';
import { copiesOf, isSent, layTree, listOf, PROJECT, productionPackages, readDockerfile, type Stage } from '../support/dockerfile.ts';
import { reach } from '../support/import-graph.ts';
import { WebClient } from '../support/person.ts';
import { newDataDir, removeDataDirs, ServerProcess } from '../support/server-process.ts';

const manifest = JSON.parse(readFileSync(path.join(PROJECT, 'package.json'), 'utf8'));

const IMAGES = {
  server: { file: 'deploy/server.Dockerfile', entries: ['src/main.ts', 'sandbox-runner/driver.ts'], optional: true },
  sandbox: {
    file: 'deploy/sandbox.Dockerfile',
    entries: ['sandbox-runner/driver.ts', 'sandbox-runner/assign.ts'].filter((name) => existsSync(path.join(PROJECT, name))),
    optional: false,
  },
} as const;

for (const [name, { file, entries, optional }] of Object.entries(IMAGES)) {
  describe(`the image of a ${name}`, () => {
    const stages = readDockerfile(file);
    const last = stages.at(-1) as Stage;
    const reached = reach(PROJECT, entries);
    const own = copiesOf(last).flatMap(({ from, sources }) => (from === null ? sources : []));
    const isCopied = (what: string) => own.some((source) => what === source || what.startsWith(`${source}/`));

    it('is built on one version of Node, the one that the project is developed with', () => {
      const images = new Set(stages.map(({ image }) => image));
      expect([...images]).to.deep.equal([`node:${manifest.devDependencies.node}-bookworm-slim`]);
    });

    it('copies only what is there, what reaches the build, and what an earlier stage has', () => {
      for (const [at, stage] of stages.entries()) {
        for (const { from, sources } of copiesOf(stage)) {
          if (from !== null) expect(stages.slice(0, at).map((earlier) => earlier.name)).to.include(from);
          for (const source of from === null ? sources : []) {
            expect(existsSync(path.join(PROJECT, source)), source).to.equal(true);
            expect(isSent(`${file}.dockerignore`, source), `${source} is sent`).to.equal(true);
          }
        }
        expect(stage.instructions.map(({ word }) => word)).to.not.include('ADD');
      }
      for (const kept of ['.git/config', '.heph/postgres.password', 'node_modules/pg', 'spec/README.md', 'deploy/heph.env'])
        expect(isSent(`${file}.dockerignore`, kept), kept).to.equal(false);
    });

    it('holds every file that its programs load, and every package with its place in production', () => {
      expect(reached.files.size).to.be.above(20);
      expect([...reached.files].filter((one) => !isCopied(one))).to.deep.equal([]);
      const built = copiesOf(last)
        .filter(({ from }) => from !== null)
        .map(({ target }) => path.normalize(target));
      const elsewhere = [...reached.named].filter(
        (one) => !isCopied(one) && !built.some((folder) => one === folder || one.startsWith(`${folder}/`)),
      );
      expect(elsewhere, 'what is named beside the code').to.deep.equal([]);
      const installed = productionPackages({ optional });
      expect([...reached.packages].filter((one) => manifest.dependencies[one] === undefined || !installed.includes(one))).to.deep.equal([]);
    });

    it('runs as an ordinary user under tini, and installs no tools of development', () => {
      const user = last.instructions.findLast(({ word }) => word === 'USER')?.text;
      expect(user).to.match(/^[1-9]\d{3,}:[1-9]\d{3,}$/);
      const [tini, dashes, node, ...rest] = listOf(last, 'ENTRYPOINT');
      expect([tini, dashes, node]).to.deep.equal(['tini', '--', 'node']);
      expect(existsSync(path.join(PROJECT, rest.at(-1) ?? 'nothing'))).to.equal(true);
      const runs = last.instructions
        .filter(({ word }) => word === 'RUN')
        .map(({ text }) => text)
        .join('\n');
      expect(runs)
        .to.match(/\btini\b/)
        .and.match(/\bbubblewrap\b/)
        .and.match(/\bgit\b/)
        .and.not.match(/\bnpm\b/);
      const packages = stages.find((stage) => stage.name === 'packages') as Stage;
      expect(packages.instructions.find(({ word }) => word === 'RUN')?.text).to.match(/^npm ci --omit=dev( |$)/);
    });

    it('holds no secret', () => {
      for (const { word, text } of stages.flatMap(({ instructions }) => instructions)) {
        if (word === 'ENV' || word === 'ARG') expect(text).to.not.match(/KEY|TOKEN|SECRET|PASSWORD|_URL/);
      }
    });
  });
}

/** Packages are links to those of the project: without this they would find everything that is installed there. */
const ALONE = '--preserve-symlinks';

describe('on this machine, laid out with the packages of production alone', function () {
  this.timeout(120_000);
  const dirs: string[] = [];
  after(() => {
    for (const dir of dirs) rmSync(dir, { recursive: true, force: true });
    removeDataDirs();
  });

  function layOut({ file, optional }: (typeof IMAGES)[keyof typeof IMAGES]): { stage: Stage; dir: string } {
    const [stage, dir] = [readDockerfile(file).at(-1) as Stage, mkdtempSync(path.join(tmpdir(), 'heph-image-'))];
    dirs.push(dir);
    layTree(dir, stage, productionPackages({ optional }));
    expect(existsSync(path.join(dir, 'node_modules/mocha')), 'nothing of development is there').to.equal(false);
    return { stage, dir };
  }

  it('the image of a server answers a question', async () => {
    const { stage, dir } = layOut(IMAGES.server);
    const program = { dir, arguments: [ALONE, ...listOf(stage, 'ENTRYPOINT').slice(3), ...listOf(stage, 'CMD')] };
    // A sandbox of its own could not follow the links.
    const database = await freshDatabase();
    const server = await ServerProcess.start({
      dataDir: newDataDir(),
      program,
      env: { HEPH_SANDBOX_ISOLATION: 'off', HEPH_SANDBOX_WARM: '0', HEPH_DATABASE_URL: database.url },
    });
    try {
      const person = new WebClient(`http://127.0.0.1:${server.port}`);
      const { turn } = await person.ask('Are you in a container?');
      expect((await person.waitForTurn(turn.id)).status).to.equal('DONE');
      const [checker = '', ...check] = listOf(stage, 'HEALTHCHECK');
      const healthy = (port: number) =>
        promisify(execFile)(checker, check, { env: { PATH: process.env['PATH'], HEPH_OPS_PORT: String(port) } });
      await healthy(server.opsPort);
      expect(await healthy(1).catch(({ code }) => code), 'nobody there').to.equal(1);
    } finally {
      expect(await server.stop()).to.equal(0);
      await database.drop();
    }
  });

  it('the image of a sandbox becomes ready, and goes when nobody wants it', async () => {
    const { stage, dir } = layOut(IMAGES.sandbox);
    const child = spawn(process.execPath, [ALONE, ...listOf(stage, 'ENTRYPOINT').slice(3)], { cwd: dir, env: { PATH: '/usr/bin:/bin' } });
    const ended = once(child, 'exit');
    const errors = text(child.stderr);
    child.stdout.once('data', () => child.stdin.end());
    const reports = (await text(child.stdout))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(await ended, await errors).to.deep.equal([0, null]);
    expect(reports.map(({ type }) => type)).to.include('ready');
  });
});
