/**
 * deploy/operating.md, as an operator reads it at night: short, and every command, rule, setting and alert in it is there.
 */
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { adminHelp } from '../../src/cli/run.ts';
import { readConfig } from '../../src/config.ts';
import { STUCK_RULES } from '../../src/contract/operators.ts';
import { STUCK_TEXTS } from '../../src/ops/stuck.ts';

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const MANUAL = read('deploy/operating.md');
const LINES_MAX = 150;

describe('the manual of an operator', () => {
  it('answers ten questions, each under a heading of its own that an alert can lead to', () => {
    const questions = [...MANUAL.matchAll(/^### (\d+)\. (.+)$/gm)].map(([, n]) => Number(n));
    expect(questions).to.deep.equal([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    for (const section of MANUAL.split(/^### /m).slice(1))
      expect(section, 'says what to run or where to look').to.match(/`heph |`\/|Overview/);
  });

  it('is short', () => expect(MANUAL.split('\n').length).to.be.at.most(LINES_MAX));

  it('names commands that there are', () => {
    const said = [...MANUAL.matchAll(/`(?:npx )?heph ([a-z]+(?: (?!ID|DATA)[a-z]+)?)/g)].map(([, words = '']) => words);
    expect(said.length).to.be.above(10);
    const known = [...adminHelp().matchAll(/^ {2}heph ([a-z]+(?: [a-z]+)?)/gm)].map(([, words = '']) => words);
    for (const words of said.filter((one) => !['doctor', 'backup', 'restore', 'migrate'].includes(one))) {
      expect(
        known.some((command) => command === words || command.startsWith(`${words} `) || words.startsWith(`${command} `)),
        `heph ${words}`,
      ).to.equal(true);
    }
  });

  it('explains every rule by which a turn is stuck, and no other', () => {
    const said = new Set([...MANUAL.matchAll(/\b(?:QUEUED|RUNNING|STOPPING|CALLS)_[A-Z_]+\b/g)].map(([rule]) => rule));
    expect([...said].sort()).to.deep.equal([...STUCK_RULES].sort());
    expect(Object.keys(STUCK_TEXTS).sort()).to.deep.equal([...STUCK_RULES].sort());
  });

  it('names settings and alerts that there are', () => {
    const settings = [...MANUAL.matchAll(/\bHEPH_[A-Z_]+[A-Z]\b/g)].map(([name]) => name).filter((name) => name !== 'HEPH_LLM');
    expect(settings.length).to.be.above(5);
    const given = { HEPH_PORT: '8080', HEPH_SECRET_KEY: Buffer.alloc(32).toString('base64'), HEPH_DATABASE_URL: 'postgres://x/y' };
    const odd = settings.filter((name) =>
      readConfig({ ...given, ...(name in given ? {} : { [name]: '' }) }, '/').unknownVariables.includes(name),
    );
    expect(odd).to.deep.equal([]);
    const alerts = read('deploy/alerts/heph.yml');
    for (const [name] of MANUAL.matchAll(/\bHeph[A-Z][A-Za-z]+\b/g)) expect(alerts).to.include(`alert: ${name}\n`);
  });
});
