/** Owns: proof of what a test run says at its end, and of the starter in bin/. */
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect } from 'chai';
import { PROJECT_ROOT } from '../../tools/tree.ts';
import { type Files, newFolder, removeFolders } from '../support/folders.ts';

after(removeFolders);

describe('npm test', () => {
  const skip = `import { skipLoudly } from '${pathToFileURL(join(PROJECT_ROOT, 'spec/support/skip.ts')).href}';\n`;
  const run = (files: Files, ...args: string[]): { code: number | null; lines: string[] } => {
    const { CI: _ci, ...env } = process.env;
    const done = spawnSync(process.execPath, [join(PROJECT_ROOT, 'tools/test.ts'), ...args], {
      cwd: newFolder(files),
      encoding: 'utf8',
      env,
    });
    return { code: done.status, lines: done.stdout.trimEnd().split('\n') };
  };

  it('ends with one line that counts every folder, and names each failure and each skip with its reason', () => {
    const { code, lines } = run({
      'spec/rules/a.spec.ts': "it('works', () => {});\nit('breaks', () => { throw new Error('no'); });\n",
      'spec/flows/b.spec.ts': `${skip}describe('redis', () => {
        before(function () { skipLoudly(this, 'no server: none on PATH'); });
        it('a: one', () => {});
      });`,
    });
    expect(lines.at(-1)).to.equal('1 passed, 1 failed, 1 skipped');
    expect(lines.at(-2)).to.equal('SKIPPED: redis a: one: no server: none on PATH');
    expect(lines.filter((line) => /^\d+ passed, /.test(line))).to.have.length(1);
    const failure = lines.indexOf('FAILED: spec/rules/a.spec.ts: breaks');
    expect(failure, 'said again at the end').to.be.greaterThan(lines.findIndex((line) => line.includes('spec/flows')));
    expect(lines[failure + 1]).to.equal('    no');
    expect(code).to.equal(1);
  });

  it('passes when all specs pass, and runs only what it is told to', () => {
    const files = {
      'spec/rules/a.spec.ts': "it('works', () => {});\n",
      'spec/web/b.spec.ts': "it('breaks', () => { throw new Error('no'); });\n",
    };
    expect(run(files, 'spec/rules')).to.deep.include({ code: 0 });
    expect(run(files, 'spec/**/a.*', '--grep', 'works').lines.at(-1)).to.equal('1 passed, 0 failed');
  });

  it('fails without a test: no file, an empty file, a file that cannot be loaded, a pattern that matches nothing', () => {
    const good = { 'spec/rules/a.spec.ts': "it('works', () => {});\n" };
    expect(run({})).to.deep.include({ code: 1 });
    expect(run({ ...good, 'spec/rules/b.spec.ts': '' }).lines.at(-1)).to.equal('1 passed, 1 failed');
    expect(run({ ...good, 'spec/web/b.spec.ts': "throw new Error('no');\n" }).lines.at(-1)).to.equal('1 passed, 1 failed');
    expect(run(good, 'spec/gone').code).to.equal(1);
    expect(run(good, '--grep', 'nothing').code).to.equal(1);
  });
});

describe('bin/heph', () => {
  const install = (files: Files): string => {
    const root = newFolder({ 'package.json': '{"type":"module"}', ...files });
    cpSync(join(PROJECT_ROOT, 'bin'), join(root, 'bin'), { recursive: true });
    return root;
  };
  const oldNode = (): string => {
    const folder = newFolder({ node: '#!/bin/sh\necho 20\n' });
    chmodSync(join(folder, 'node'), 0o755);
    return `${folder}:/usr/bin:/bin`;
  };

  it('starts on the node that npm installed, through a link, when an old one comes first on PATH', () => {
    const root = install({ 'src/main.ts': 'const args: string[] = process.argv.slice(2);\nprocess.stdout.write(args.join());\n' });
    symlinkSync(join(PROJECT_ROOT, 'node_modules'), join(root, 'node_modules'));
    symlinkSync(join(root, 'bin/heph'), join(root, 'heph'));
    const done = spawnSync(join(root, 'heph'), ['a', 'b c'], { cwd: tmpdir(), encoding: 'utf8', env: { PATH: oldNode() } });
    expect(done.stdout).to.equal('a,b c');
  });

  it('says what to do when there is only an old one', () => {
    const done = spawnSync(join(install({}), 'bin/heph'), { encoding: 'utf8', env: { PATH: oldNode() } });
    expect(done.status).to.equal(1);
    expect(done.stderr).to.include('needs Node 24').and.include('npm ci');
  });
});
