/**
 * When a sandbox renews its lease: soon enough for any lease that an operator may configure, and for what is left of one.
 */
import { expect } from 'chai';
import { toRun } from '../../actors/conversation/pulls.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';

const renewEveryMs = (leaseTtlMs: number) => toRun({ runId: uuidv7<'run'>(), epoch: 1 }, { leaseTtlMs, deadlineMs: 300_000 }).renewEveryMs;

describe('a sandbox is told to renew its lease', () => {
  it('each 25 s of the usual 60, and as often where the lease is longer', () => {
    expect([60_000, 60_001, 900_000].map(renewEveryMs)).to.deep.equal([25_000, 25_000, 25_000]);
  });

  it('earlier where the lease is shorter, or little of it is left: twice before it is over', () => {
    for (const leaseTtlMs of [59_999, 30_000, 24_999, 5_000, 1_201]) expect(2 * renewEveryMs(leaseTtlMs)).to.be.below(leaseTtlMs);
    expect(renewEveryMs(59_999)).to.equal(24_999);
  });

  it('once before it is over with the shortest lease that is allowed, and not in a storm when it is as good as over', () => {
    expect([1_000, 1, 0].map(renewEveryMs)).to.deep.equal([500, 500, 500]);
  });
});
