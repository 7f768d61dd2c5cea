/**
 * Owns: proof of how a turn that nobody stopped is judged by its last answer, where the real runner needs luck to get there.
 * Does not own: the endings of real runs (spec/flows/runner-endings.spec.ts, spec/flows/runner-compaction.spec.ts).
 */
import { expect } from 'chai';
import type { SessionEntry } from '../../sandbox-runner/pi.ts';
import { judge } from '../../sandbox-runner/transcript.ts';

/** An attempt whose last model call failed with such words. */
function failedCall(errorMessage: string): SessionEntry[] {
  const message = { role: 'assistant', content: [], stopReason: 'error', errorMessage, provider: 'heph', timestamp: 1 };
  return [{ type: 'message', id: 'a1', parentId: null, timestamp: '2026-01-01T00:00:00.000Z', message } as unknown as SessionEntry];
}

const detailOf = (errorMessage: string, overflowed = false): string | undefined => {
  const judgement = judge(failedCall(errorMessage), overflowed);
  return judgement.outcome === 'FAILED' ? judgement.detail : undefined;
};

describe('a turn whose last model call failed', () => {
  it('was too long when the provider says so, also in the millisecond in which its summary was stored', () => {
    for (const words of ['413 {"error":{"message":"no"}}', 'prompt is too long: 213462 tokens > 200000 maximum', 'context_length_exceeded'])
      expect(detailOf(words), words).to.equal('context_overflow');
    expect(detailOf('whatever', true)).to.equal('context_overflow');
  });

  it('was not too long when the provider only asks to wait', () => {
    expect(detailOf('429 rate limit: too many tokens, please wait')).to.equal('model_error');
  });

  it('keeps the causes of its own', () => {
    expect(detailOf('429 {"code":"call_limit"}')).to.equal('call_limit');
    expect(detailOf('stream ended before it was finished')).to.equal('truncated_answer');
    expect(detailOf('500 {"error":"no"}')).to.equal('model_error');
  });
});
