/**
 * The isolation gate: every probe holds inside of a sandbox, and without isolation most of them would not, so that the gate can see.
 */
import { expect } from 'chai';
import { IsolationLab, isolationOfThisMachine } from '../support/isolation-lab.ts';
import { skipLoudly } from '../support/skip.ts';
import { PROBES } from './probes.ts';

const PROBES_MIN = 33;
const SEEN_MIN = 20;

describe('a command of the assistant', function () {
  this.timeout(60_000);
  let lab: IsolationLab | undefined;

  before(async function () {
    const { tier, why } = await isolationOfThisMachine();
    if (tier === 'none') skipLoudly(this, `this machine cannot isolate sandboxes: ${why}`);
    lab = await IsolationLab.open(true);
  });
  after(() => lab?.close());

  for (const { id, title, holds } of PROBES) {
    it(`${id}: ${title}`, async () => {
      expect(await holds(lab as IsolationLab), id).to.equal(true);
    });
  }
});

describe('the isolation gate', function () {
  this.timeout(120_000);
  let lab: IsolationLab | undefined;

  before(async function () {
    if (process.platform !== 'linux') skipLoudly(this, 'the probes ask a Linux system');
    lab = await IsolationLab.open(false);
  });
  after(() => lab?.close());

  it(`has at least ${PROBES_MIN} probes, each with a name of its own`, () => {
    expect(new Set(PROBES.map(({ id }) => id)).size)
      .to.equal(PROBES.length)
      .and.to.be.at.least(PROBES_MIN);
  });

  it(`sees a sandbox without isolation: at least ${SEEN_MIN} of its harmless probes fail there`, async () => {
    const failed: string[] = [];
    for (const { id, harmless, holds } of PROBES) if (harmless && !(await holds(lab as IsolationLab))) failed.push(id);
    expect(failed, failed.join(', ')).to.have.length.at.least(SEEN_MIN);
  });
});
