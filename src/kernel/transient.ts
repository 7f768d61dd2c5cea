/**
 * Owns: the transient-fault table: for each path, what is retried, by whom, how often, what an unknown outcome means, what a client sees.
 * It documents what the code does and is not read by it: the numbers live beside each retry (sandbox-runner/gateway-client.ts and config.ts,
 * db/host-lock.ts, db/live/listener.ts, actors/conversation/writes.ts). Change both together.
 */

export interface RetryRule {
  /** Pauses before the second, third, … try, milliseconds. Empty: not retried. */
  readonly pausesMs: readonly number[];
  /** What a caller must know of a try whose outcome is unknown (the reply was lost). */
  readonly unknownOutcome: string;
  /** What the client sees when all tries have failed. */
  readonly clientSees: string;
}

export const TRANSIENT = {
  /** POST questions: the client repeats with the same requestId (rule R2); the server does not repeat. */
  submit: {
    pausesMs: [],
    unknownOutcome: 'repeat with the same requestId: same rows',
    clientSees: '503 DATABASE_UNAVAILABLE, Retry-After',
  },
  /** A statement that lost a version race is decided again by the actor, at most 20 times. */
  versionRace: { pausesMs: [], unknownOutcome: 'nothing was written', clientSees: '503 BUSY, Retry-After' },
  /** POST next: the driver pulls again for ever; a lost grant is given again while the attempt has made no call. */
  pull: {
    pausesMs: [100, 200, 400, 800, 1_600, 2_000],
    unknownOutcome: 'pull again: the same run and epoch',
    clientSees: 'nothing: the turn waits',
  },
  /** GET context: the loop repeats (seed, "Leases and retries"). */
  context: {
    pausesMs: [1_000, 2_000, 4_000],
    unknownOutcome: 'a read: repeat',
    clientSees: 'the turn fails after the lease or the retries',
  },
  /** POST turn/end: the loop repeats; a repeat of a stored end answers 409 and stores nothing. */
  end: {
    pausesMs: [1_000, 2_000, 4_000],
    unknownOutcome: 'repeat: 409 means that it is stored',
    clientSees: 'the answer, or a second attempt after the lease',
  },
  /** POST lease: the next renewal is the retry; the driver's own timer ends the attempt with its lease. */
  renewal: { pausesMs: [], unknownOutcome: 'a renewal may be repeated', clientSees: 'nothing' },
  /** POST partial: never repeated; the next one sends the whole text. */
  partial: { pausesMs: [], unknownOutcome: 'the next partial is full', clientSees: 'the text grows in a larger step' },
  /** The host lock: for ever, at once and then each 125 to 375 ms, before another server has looked twice. */
  hostLock: {
    pausesMs: [250],
    unknownOutcome: 'the lock is asked for again',
    clientSees: 'nothing; held too late, one attempt of each running turn',
  },
  /** The LISTEN connection: for ever, with a growing pause. */
  sessionConnection: {
    pausesMs: [100, 200, 400, 800, 1_600, 2_000],
    unknownOutcome: 'the catch-up sweep reads what was missed',
    clientSees: 'live updates up to 2 s late',
  },
  /** A model call that the gateway could not take (its database is away, it is full, it drains): the runner sends it again. */
  modelCallNotTaken: { pausesMs: [1_000, 2_000, 4_000], unknownOutcome: 'nothing was sent', clientSees: 'the turn goes on' },
  /** A model call: Pi retries a failed request itself; a stream that has begun is never repeated by the gateway. */
  modelCall: { pausesMs: [500, 1_000], unknownOutcome: 'billed as started', clientSees: 'the turn goes on, or its failure text' },
} as const satisfies Record<string, RetryRule>;
