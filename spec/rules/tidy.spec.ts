/**
 * Owns: proof that the gate sees what it is there to see. Each spec gives a tool a small tree in a temporary folder.
 * Words that the gate looks for are put together at run time, so that it does not find them in this file.
 */
import { spawnSync } from 'node:child_process';
import { symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { checkBoundaries } from '../../tools/boundaries.ts';
import { checkRules } from '../../tools/rules.ts';
import { dumpSchema } from '../../tools/schema.ts';
import { checkTidy } from '../../tools/tidy.ts';
import { describeFinding, type Finding, openTree, PROJECT_ROOT, type Tree } from '../../tools/tree.ts';
import { type Files, newFolder, removeFolders } from '../support/folders.ts';

const treeOf = (files: Files): Tree => {
  const root = newFolder(files);
  spawnSync('git', ['init', '--quiet'], { cwd: root });
  return openTree(root);
};
const words = (findings: readonly Finding[]): string[] => findings.map(describeFinding);
const tidy = (files: Files): string[] => words(checkTidy(treeOf(files)).failures).filter((line) => !line.includes('README.md: is missing'));
const linesOf = (count: number): string => '-- x\n'.repeat(count);

after(removeFolders);

describe('the gate reads spec/RULES.md', () => {
  const tag = (...ids: string[]): string => `// rule: ${ids.join(', ')}\n`;
  const header = '| id | rule | why | enforced by | obeyed by | proved by | code |\n|--|--|--|--|--|--|--|\n';
  const row = (id: string, enforcedBy: string, provedBy: string): string => `| ${id} | one | why | ${enforcedBy} | | ${provedBy} | |\n`;
  const held: Files = {
    'spec/RULES.md': header + row('R1', 'index `one_running` in `db/migrations/0001_a.sql`', '`spec/rules/one.spec.ts`'),
    'db/migrations/0001_a.sql': '-- rule: R1\n',
    'spec/rules/one.spec.ts': tag('R1'),
  };
  const rulesOf = (changes: Files): string[] => words(checkRules(treeOf({ ...held, ...changes })));

  it('and is content with a rule that has its tag in the database and in a spec', () => {
    expect(rulesOf({})).to.deep.equal([]);
  });

  it('and refuses a rule without a spec', () => {
    expect(rulesOf({ 'spec/rules/one.spec.ts': '' })).to.include('spec/RULES.md:3: R1 has no spec: no *.spec.ts carries "rule: R1".');
  });

  it('and refuses a rule that the database is said to hold but does not', () => {
    expect(rulesOf({ 'db/migrations/0001_a.sql': '' })).to.deep.equal([
      'spec/RULES.md:3: R1 is said to be enforced by the database, but no file under db/ carries "rule: R1".',
    ]);
  });

  it('and refuses a tag of a rule that nobody wrote down', () => {
    expect(rulesOf({ 'src/a.ts': `\n${tag('R1', 'R9')}` })).to.deep.equal([
      'src/a.ts:2: is tagged with R9, which spec/RULES.md does not list.',
    ]);
  });

  it('and refuses a path that leads nowhere, in each column', () => {
    const found = rulesOf({ 'spec/RULES.md': header + row('R1', '`db/gone.sql`', 'spec/rules/gone.spec.ts') });
    expect(found).to.deep.equal([
      'spec/RULES.md:3: R1 names db/gone.sql under "enforced by", but there is no such file or folder.',
      'spec/RULES.md:3: R1 names spec/rules/gone.spec.ts under "proved by", but there is no such file or folder.',
    ]);
  });

  it('and refuses a proof that does not carry the tag', () => {
    const found = rulesOf({ 'spec/rules/two.spec.ts': tag('R1'), 'spec/rules/one.spec.ts': '' });
    expect(found).to.deep.equal([
      'spec/RULES.md:3: R1 names spec/rules/one.spec.ts as its proof, but that spec does not carry "rule: R1".',
    ]);
  });

  it('and asks nothing of a rule that is not there yet, but which issue brings it', () => {
    const page = (issue: string): string => `${held['spec/RULES.md']}\n## Not yet\n\n| id | issue |\n|--|--|\n| R2 | ${issue} |\n`;
    expect(rulesOf({ 'spec/RULES.md': page('02'), 'src/a.ts': tag('R2') })).to.deep.equal([]);
    expect(rulesOf({ 'spec/RULES.md': page('') })).to.include('spec/RULES.md:9: R2 does not say which issue brings it.');
  });

  it('and refuses an id that stands twice, and a page without a table', () => {
    const twice = header + row('R1', 'db/', 'spec/rules/one.spec.ts').repeat(2);
    expect(rulesOf({ 'spec/RULES.md': twice }).join()).to.include('R1 stands twice, first in line 3');
    expect(rulesOf({ 'spec/RULES.md': 'soon' }).join()).to.include('has no table of rules');
  });
});

describe('the gate keeps the house rules', () => {
  const functionOf = (lines: number): string => `// é\nexport function long() {\n${'  // x\n'.repeat(lines - 2)}}\n`;

  it('a file of 401 lines fails, one of 251 lines is warned of, a generated one may be longer', () => {
    const tree = treeOf({ 'db/a.sql': linesOf(401), 'db/b.sql': linesOf(400), 'db/c.sql': linesOf(250), 'db/schema.sql': linesOf(900) });
    const { failures, warnings } = checkTidy(tree);
    expect(
      words(failures)
        .filter((line) => line.startsWith('db/a.sql'))
        .join(),
    ).to.include('has 401 lines. The limit is 400');
    expect(warnings.map(({ path }) => path)).to.deep.equal(['db/b.sql']);
  });

  it('a function of 71 lines fails, one of 70 does not', () => {
    expect(tidy({ 'src/a.ts': functionOf(70), 'src/b.ts': functionOf(71) })).to.deep.equal([
      'src/b.ts:2: long has 71 lines. The limit for a function is 70.',
    ]);
  });

  it('a method, an arrow function and a component are functions too; what lists specs is not', () => {
    const filler = '\n'.repeat(70);
    const found = tidy({
      'src/a.ts': `export class A {\n  run() {${filler}  }\n}\n`,
      'src/web/b.tsx': `export const Page = () => (<p>${filler}</p>);\n`,
      'spec/c.spec.ts': `describe('c', () => {${filler}});\nit('d', () => {${filler}});\n`,
      'spec/d.spec.ts': `const suites = () => {\n  describe('c', () => {${filler}});\n};\nsuites();\n`,
    });
    expect(found.map((line) => line.replace(/ The limit.*/, ''))).to.deep.equal([
      'spec/c.spec.ts:72: the callback of it has 71 lines.',
      'src/a.ts:2: run has 71 lines.',
      'src/web/b.tsx:1: Page has 71 lines.',
    ]);
  });

  it('each folder explains itself in at most 40 lines', () => {
    const { failures } = checkTidy(
      treeOf({
        'src/http/a.ts': '',
        'src/README.md': 'x\n'.repeat(41),
        'db/migrations/0001_a.sql': '',
        'db/README.md': '',
        'bench/run.ts': '',
      }),
    );
    expect(failures.map(({ path }) => path)).to.deep.equal(['bench/README.md', 'src/README.md', 'src/http/README.md']);
  });

  it('migrations are numbered in order without a gap', () => {
    const found = tidy({ 'db/migrations/0001_a.sql': '', 'db/migrations/0003_b.sql': '', 'db/migrations/next.sql': '' });
    expect(found.map((line) => line.split(' ').slice(0, 5).join(' '))).to.deep.equal([
      'db/migrations/0003_b.sql: should be number 0002:',
      'db/migrations/next.sql: is no migration name.',
    ]);
  });

  it('unfinished work, paths of one machine and registry hosts do not get in; ordinary paths do', () => {
    const found = tidy({
      'src/a.ts': `// ${'TO'}${'DO'} later\n`,
      'src/b.ts': `export const b = '${'/home'}/me';\n`,
      'src/c.ts': "export const c = ['/workspace/work', '/workspaces/home/mentor', '/homepage'];\n",
      'package-lock.json': '{\n"resolved": "https://registry.example/a.tgz"\n}\n',
    });
    expect(found.map((line) => line.split(' ')[0])).to.deep.equal(['package-lock.json:2:', 'src/a.ts:1:', 'src/b.ts:1:']);
  });

  it('printing is for tools and for main; the sandbox runner speaks a protocol on its stdout', () => {
    const code = "console.log('x');\n";
    const paths = [
      'actors/a.ts',
      'sandbox-runner/a.ts',
      'spec/a.spec.ts',
      'spec/support/a.ts',
      'src/http/a.ts',
      'src/main.ts',
      'tools/a.ts',
    ];
    const found = tidy({ ...Object.fromEntries(paths.map((path) => [path, code])), 'src/b.ts': "// console.log('x')\n" });
    expect(found.map((line) => line.split(':')[0])).to.deep.equal([
      'actors/a.ts',
      'sandbox-runner/a.ts',
      'spec/a.spec.ts',
      'src/http/a.ts',
    ]);
  });

  it('SQL lives in db; a sentence is no statement', () => {
    const found = tidy({
      'src/a.ts': 'export const a = `\n  select * from account where id = 1`;\n',
      'db/a.ts': "export const a = 'select 1 from account';\n",
      'src/b.ts': "export const b = 'Select a model from the list.';\n",
    });
    expect(found).to.deep.equal(['src/a.ts:1: holds an SQL statement. Statements live in db/.']);
  });

  it('an error is not swallowed without a word', () => {
    const found = tidy({ 'src/a.ts': '// é\ntry {\n} catch {\n}\ntry {\n} catch {\n  // gone already\n}\n' });
    expect(found).to.deep.equal(['src/a.ts:3: swallows every error in an empty catch. Say in a comment why that is right.']);
  });

  it('a spec does not sleep, does not hide the others, and says why it is skipped', () => {
    const spec = (text: string): string[] =>
      tidy({ 'spec/a.spec.ts': text }).map((line) => line.replace(/^[^ ]+ /, '').replace(/\..*/, ''));
    expect(spec('await new Promise((done) => setTimeout(done, 5));\n')).to.deep.equal(['sleeps']);
    expect(spec("import { setTimeout as wait } from 'node:timers/promises';\nawait wait(5);\n")).to.deep.equal(['sleeps']);
    expect(spec("it.only('a', () => 1);\ndescribe.only('b', () => 1);\n")).to.have.length(2);
    expect(spec("it.skip('a', () => 1);\nit('b', function () { this.skip(); });\n")).to.have.length(2);
  });

  it('a file that does not parse is not passed over', () => {
    expect(tidy({ 'src/a.ts': 'export const = ;\n' }).join()).to.include('src/a.ts: does not parse');
  });
});

describe('the gate follows imports', () => {
  const importsOf = async (files: Files, overrides = {}): Promise<string[]> => {
    const tree = treeOf({
      ...files,
      '.gitignore': 'node_modules\n',
      'package.json': '{"dependencies":{"pg":"*","nact":"*"},"devDependencies":{"chai":"*"}}',
    });
    symlinkSync(join(PROJECT_ROOT, 'node_modules'), join(tree.root, 'node_modules'));
    return words(await checkBoundaries(tree, overrides)).map((line) => line.replace(/\)\. .*/, ')'));
  };
  const leaf = 'export const x = 1;\nexport type X = number;\n';
  const use = (specifier: string): string => `import * as x from '${specifier}';\nexport default x;\n`;

  it('and lets through those that the design allows', async () => {
    const found = await importsOf({
      'src/kernel/ids.ts': leaf,
      'db/pool.ts': use('pg'),
      'db/index.ts': use('../src/kernel/ids.ts'),
      'actors/kernel/registry.ts': use('nact'),
      'actors/index.ts': use('../db/index.ts'),
      'src/http/a.ts': use('../../actors/index.ts'),
      'src/main.ts': use('./http/a.ts'),
      'sandbox-runner/a.ts': use('node:child_process'),
    });
    expect(found).to.deep.equal([]);
  });

  const refused: [string, string, string][] = [
    ['src/kernel/a.ts', '../contract/x.ts', 'kernel-imports-nothing'],
    ['src/contract/a.ts', '../http/x.ts', 'contract-imports-kernel'],
    ['db/a.ts', '../src/contract/x.ts', 'db-names-wire-types-only'],
    ['actors/a.ts', '../src/http/x.ts', 'actors-import-kernel-contract-db'],
    ['src/http/a.ts', '../live/x.ts', 'capabilities-keep-apart'],
    ['src/http/a.ts', '../../actors/conversation/x.ts', 'capabilities-keep-apart'],
    ['sandbox-runner/a.ts', '../actors/x.ts', 'sandbox-imports-kernel-contract'],
    ['src/web/a.tsx', '../http/x.ts', 'web-imports-kernel-contract'],
    ['src/web/a.tsx', 'node:fs', 'page-runs-in-a-browser'],
    ['src/http/a.ts', 'pg', 'pg-only-in-db'],
    ['actors/a.ts', 'nact', 'nact-only-in-actors-kernel'],
    ['actors/a.ts', 'node:child_process', 'processes-only-where-they-belong'],
    ['src/http/a.ts', 'node:process', 'environment-only-in-config'],
    ['src/kernel/a.ts', 'node:fs', 'kernel-has-no-io'],
    ['src/http/a.ts', 'chai', 'no-dev-package-in-the-product'],
    ['src/http/a.ts', 'koa', 'no-undeclared-package'],
    ['src/http/a.ts', './gone.ts', 'no-unresolvable'],
  ];
  for (const [from, specifier, rule] of refused) {
    it(`and refuses ${specifier} in ${from}`, async () => {
      const target = join(dirname(from), specifier);
      const found = await importsOf({ [from]: use(specifier), ...(specifier.endsWith('/x.ts') ? { [target]: leaf } : {}) });
      expect(found.join()).to.include(`(${rule})`).and.include(`${from}: imports `);
    });
  }

  it('and sees an import of a type, one at run time, and a circle', async () => {
    const found = await importsOf({
      'src/kernel/a.ts': "import type { X } from '../http/x.ts';\nexport type A = X;\n",
      'src/kernel/b.ts': "export const b = () => import('../http/x.ts');\n",
      'src/http/x.ts': leaf,
      'db/a.ts': "import type { B } from './b.ts';\nexport type A = B;\n",
      'db/b.ts': "import type { A } from './a.ts';\nexport type B = A;\n",
    });
    expect(found).to.deep.equal([
      'src/kernel/a.ts: imports ../http/x.ts (kernel-imports-nothing)',
      'src/kernel/b.ts: imports ../http/x.ts (kernel-imports-nothing)',
      'db/a.ts: imports db/b.ts -> db/a.ts (no-cycle)',
    ]);
  });

  it('and says so when it looked at too little: a file left out, or a parser that misses types', async () => {
    const files = { 'src/http/a.ts': leaf };
    expect(await importsOf(files, { exclude: 'http' })).to.deep.equal([
      'src/http/a.ts: was not looked at by dependency-cruiser, although git lists it.',
    ]);
    expect((await importsOf(files, { parser: 'acorn' })).join()).to.include('.dependency-cruiser.cjs: must use the parser swc');
  });
});

describe('db/schema.sql', () => {
  const dump = (files: Files): Promise<string> => dumpSchema(newFolder(files));
  const failureOf = (files: Files): Promise<string> =>
    dump(files).then(
      () => 'no failure',
      (error: Error) => error.message,
    );

  it('is the same for the same migrations, without versions, owners or what would undo a migration', async function () {
    this.timeout(90_000);
    const files = {
      '0001_a.sql': '-- Up Migration\ncreate table a (id uuid primary key);\n-- Down Migration\ndrop table a;\n',
      '0002_b.sql': 'create table b (id uuid references a);\n',
    };
    const text = await dump(files);
    expect(text).to.include('-- TABLE a\n').and.include('CREATE TABLE public.b').and.include('b_id_fkey');
    expect(text).not.to.match(/version \d|Owner|^SET |search_path|\n{3}/m);
    expect(await dump(files)).to.equal(text);
  });

  it('names the migration that fails, and refuses one that would run backwards', async function () {
    this.timeout(90_000);
    expect(await failureOf({ '0001_a.sql': 'create tabel a ();\n' })).to.include('0001_a.sql does not run in PGlite: syntax error');
    expect(await failureOf({ '0001_a.sql': 'create table a ();\n-- Down Migration\ndrop table a;\n' })).to.include(
      '0001_a.sql: "Down Migration"',
    );
  });
});
