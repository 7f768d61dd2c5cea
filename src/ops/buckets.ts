/**
 * Owns: the buckets of the histograms, in seconds.
 */

/** For what should take milliseconds. */
export const SHORT_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
/** For what a person waits for. */
export const LONG_SECONDS = [0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 900];
