/**
 * When a conversation is shortened, and by how much: the seed's numbers for real windows, each at its limit, one under and one over.
 */
import { expect } from 'chai';
import { type CompactionPlan, compactionPlan, isPastTrigger, mayAsk } from '../../sandbox-runner/compaction.ts';
import { SMALLEST_MODEL } from '../../src/contract/limits.ts';

const WINDOWS: readonly (readonly [windowTokens: number, outputTokens: number, plan: Omit<CompactionPlan, 'windowTokens'>])[] = [
  [
    SMALLEST_MODEL.contextTokens,
    SMALLEST_MODEL.outputTokens,
    { triggerTokens: 24_576, reserveTokens: 8_192, keepRecentTokens: 5_461, summaryMaxTokens: 4_096, answerRoomTokens: 4_096 },
  ],
  [
    128_000,
    16_384,
    { triggerTokens: 49_152, reserveTokens: 78_848, keepRecentTokens: 20_000, summaryMaxTokens: 16_384, answerRoomTokens: 16_000 },
  ],
  [
    200_000,
    64_000,
    { triggerTokens: 49_152, reserveTokens: 150_848, keepRecentTokens: 20_000, summaryMaxTokens: 64_000, answerRoomTokens: 25_000 },
  ],
  [
    1_000_000,
    128_000,
    { triggerTokens: 49_152, reserveTokens: 950_848, keepRecentTokens: 20_000, summaryMaxTokens: 128_000, answerRoomTokens: 125_000 },
  ],
];

describe('the plan for shortening a conversation', () => {
  for (const [windowTokens, outputTokens, plan] of WINDOWS) {
    it(`is the seed's for a window of ${windowTokens} tokens`, () => {
      expect(compactionPlan(windowTokens, outputTokens)).to.deep.equal({ windowTokens, ...plan });
    });
  }

  it('caps a summary by the reserve where a model may write more than that', () => {
    expect(compactionPlan(SMALLEST_MODEL.contextTokens, 8_192).summaryMaxTokens).to.equal(8_192);
    expect(compactionPlan(SMALLEST_MODEL.contextTokens, 8_193).summaryMaxTokens).to.equal(8_192);
    expect(compactionPlan(SMALLEST_MODEL.contextTokens, 8_191).summaryMaxTokens).to.equal(8_191);
  });

  it('reserves a quarter of the window until that is more than 16,384 tokens, and waits for 49,152 tokens in larger ones', () => {
    const trigger = (windowTokens: number) => compactionPlan(windowTokens, 4_096).triggerTokens;
    // One under the window whose quarter is 16,384, at it, and one over.
    expect([65_535, 65_536, 65_537].map(trigger)).to.deep.equal([49_152, 49_152, 49_152]);
    expect([65_534, 65_532].map(trigger)).to.deep.equal([49_151, 49_149]);
  });

  it('keeps 20,000 tokens from the window on of which they are a sixth', () => {
    const keep = (windowTokens: number) => compactionPlan(windowTokens, 4_096).keepRecentTokens;
    expect([119_999, 120_000, 120_001].map(keep)).to.deep.equal([19_999, 20_000, 20_000]);
  });

  it('gives the answer its output limit until that is more than an eighth of the window', () => {
    const room = (outputTokens: number) => compactionPlan(128_000, outputTokens).answerRoomTokens;
    expect([15_999, 16_000, 16_001].map(room)).to.deep.equal([15_999, 16_000, 16_000]);
  });

  it('shortens one token above the trigger, not at it', () => {
    const plan = compactionPlan(128_000, 16_384);
    expect([49_151, 49_152, 49_153].map((tokens) => isPastTrigger(plan, tokens))).to.deep.equal([false, false, true]);
  });

  it('asks while the conversation fits the window, after a summary only with room to answer', () => {
    const plan = compactionPlan(SMALLEST_MODEL.contextTokens, SMALLEST_MODEL.outputTokens);
    expect([32_767, 32_768, 32_769].map((tokens) => mayAsk(plan, tokens, false))).to.deep.equal([true, true, false]);
    expect([28_671, 28_672, 28_673].map((tokens) => mayAsk(plan, tokens, true))).to.deep.equal([true, true, false]);
  });
});
