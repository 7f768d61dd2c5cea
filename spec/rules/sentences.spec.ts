/**
 * spec/SENTENCES.md leads from a sentence of the specification to its proof. A name there that no test has leads nowhere.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';

const root = new URL('../../', import.meta.url);
const ROW = /^\|[^|]*\|\s*(spec\/\S+\.spec\.ts)\s*\|\s*(.+?)\s*\|$/;

interface Proof {
  readonly file: string;
  readonly test: string;
}

function proofs(page: string): readonly Proof[] {
  return page.split('\n').flatMap((line) => {
    const [, file, test] = ROW.exec(line) ?? [];
    return file && test ? [{ file, test }] : [];
  });
}

/** Names of tests and groups as they stand in the source; a name that is put together counts up to its first variable. */
function names(source: string): string {
  return source.replaceAll(/\\(['"`])/g, '$1');
}

/** The proofs that lead nowhere. */
function missing(wanted: readonly Proof[], read: (file: string) => string): readonly Proof[] {
  return wanted.filter(({ file, test }) => !names(read(file)).includes(test));
}

const read = (file: string): string => readFileSync(fileURLToPath(new URL(file, root)), 'utf8');

describe('each sentence of the specification that SENTENCES.md names', () => {
  it('is proved by a test of that name', () => {
    const wanted = proofs(read('spec/SENTENCES.md'));
    expect(wanted.length, 'the page was read').to.be.greaterThan(50);
    expect(missing(wanted, read)).to.deep.equal([]);
  });

  it('and a name that no test has is found', () => {
    const [row] = proofs('| a sentence | spec/rules/a.spec.ts | holds |');
    expect(missing([row as Proof], () => "it('fails', () => {});")).to.deep.equal([row]);
  });
});
