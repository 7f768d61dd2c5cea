/**
 * Owns: the only way a spec may be skipped: with a reason that the run prints at its end (tools/test.ts collects the line).
 */

/** Skips the running test (or, from a `before` hook, its whole suite) and says why in one line. Never returns. */
export function skipLoudly(context: Mocha.Context, reason: string): never {
  const runnable = context.currentTest ?? context.test;
  const isHook = runnable !== undefined && 'type' in runnable && runnable.type === 'hook';
  const title = isHook ? runnable.parent?.fullTitle() : runnable?.fullTitle();
  console.log(`SKIPPED: ${title}: ${reason.replaceAll('\n', ' ')}`);
  return context.skip();
}
