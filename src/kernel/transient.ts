/**
 * Owns: the transient-fault table: for each path, what is retried, by whom, how often, what an unknown outcome means, what a client sees.
 * Whoever retries takes its numbers from here: they live once (a row whose retry is a sweep repeats the pace of the sweeps, src/server.ts).
 * Does not own: the timeouts of one try (beside each path).
 */

interface Rule {
  /** What a caller must know of a try whose outcome is unknown (the reply was lost). */
  readonly unknownOutcome: string;
  /** What the client sees when all tries have failed. */
  readonly clientSees: string;
}

/** Bounded: the pauses before the second, third, … try, milliseconds. Empty: not retried. */
interface BoundedRule extends Rule {
  readonly pausesMs: readonly number[];
}

/** For ever: the pause doubles from the first to the second number, milliseconds; those who wait for one another add jitter. */
interface EndlessRule extends Rule {
  readonly growsMs: readonly [minMs: number, maxMs: number];
}

/** Decided again at once, at most this often: nothing was waited for, somebody else was faster. */
interface RaceRule extends Rule {
  readonly triesMax: number;
}

export type RetryRule = BoundedRule | EndlessRule | RaceRule;

/** Seed, "Leases and retries": the loop sends a context read or an end again after these. */
const LOOP_PAUSES_MS = [1_000, 2_000, 4_000] as const;

export const TRANSIENT = {
  /** POST questions: the client repeats with the same requestId (rule R2); the server does not repeat. */
  submit: {
    pausesMs: [],
    unknownOutcome: 'repeat with the same requestId: same rows',
    clientSees: '503 DATABASE_UNAVAILABLE, Retry-After',
  },
  /** A statement that lost a version race is decided again by the actor. More often in a row is not contention but a fault. */
  versionRace: { triesMax: 20, unknownOutcome: 'nothing was written', clientSees: '503 BUSY, Retry-After' },
  /** POST next: the driver pulls again for ever; a lost grant is given again while the attempt has made no call. */
  pull: {
    growsMs: [100, 2_000],
    unknownOutcome: 'pull again: the same run and epoch',
    clientSees: 'nothing: the turn waits',
  },
  /** GET context: the loop repeats (seed, "Leases and retries"). */
  context: {
    pausesMs: LOOP_PAUSES_MS,
    unknownOutcome: 'a read: repeat',
    clientSees: 'the turn fails after the lease or the retries',
  },
  /** POST turn/search and turn/sandbox/document: the tool repeats them; they only read. */
  lookUp: {
    pausesMs: [1_000, 2_000, 4_000],
    unknownOutcome: 'a read: repeat',
    clientSees: 'the model is told, and the turn goes on',
  },
  /** POST turn/sandbox/load: never repeated by itself, because the server counts loads; the model may ask again. A remote that is
   * away is not needed for what is mirrored. */
  load: {
    pausesMs: [],
    unknownOutcome: 'counted, perhaps; nothing of it is visible',
    clientSees: 'the model is told, and the turn goes on',
  },
  /** POST turn/end: the loop repeats; a repeat of a stored end answers 409 and stores nothing. */
  end: {
    pausesMs: LOOP_PAUSES_MS,
    unknownOutcome: 'repeat: 409 means that it is stored',
    clientSees: 'the answer, or a second attempt after the lease',
  },
  /** POST lease: again after a pause, until the driver's own timer ends the attempt with its lease. */
  renewal: { growsMs: [2_000, 2_000], unknownOutcome: 'a renewal may be repeated', clientSees: 'nothing' },
  /** POST partial: never repeated; the next one sends the whole text. */
  partial: { pausesMs: [], unknownOutcome: 'the next partial is full', clientSees: 'the text grows in a larger step' },
  /** DELETE entries, PUT vote, an edit: the client repeats; what is so already changes nothing. */
  entryWrite: {
    pausesMs: [],
    unknownOutcome: 'repeat; other tabs hear of a change whose reply was lost from the catch-up sweep',
    clientSees: '503 DATABASE_UNAVAILABLE, Retry-After',
  },
  /** GET search and POST turn/search: the person types on, the model may ask again. */
  search: { pausesMs: [], unknownOutcome: 'a read: repeat', clientSees: '503 DATABASE_UNAVAILABLE, Retry-After' },
  /** The host lock: for ever, at once and then each 125 to 375 ms, before another server has looked twice. */
  hostLock: {
    growsMs: [250, 250],
    unknownOutcome: 'the lock is asked for again',
    clientSees: 'nothing; held too late, one attempt of each running turn',
  },
  /** The LISTEN connection: for ever, with a growing pause that is short enough for pages to be right again within 2 s of the heal. */
  sessionConnection: {
    growsMs: [50, 1_000],
    unknownOutcome: 'the catch-up sweep reads what was missed',
    clientSees: 'live updates up to 2 s late',
  },
  /** The closing of a model call's row: written in the background. What is given up stays open, and is closed as unknown (ADR 15). */
  modelCallClosing: {
    pausesMs: [250, 500, 1_000, 2_000, 4_000, 8_000, 16_000],
    unknownOutcome: 'repeat: a row is closed once',
    clientSees: 'nothing; its cost is not known',
  },
  /** The start of a sandbox: the next try of this server, for whichever conversation is next; the turn is given up by db/ledger/give-up.ts. */
  sandboxStart: {
    growsMs: [1_000, 30_000],
    unknownOutcome: 'the sweep ends a row without a runner, and a runner without a row',
    clientSees: 'the turn waits; NOT_STARTED once no server can start it',
  },
  /** A call to the cluster's API that was not answered, was refused for a while (429, 5xx), or came with a token that has just expired (401): until
   * the sandbox's start has taken HEPH_KUBERNETES_READY. What RBAC forbids is not repeated. */
  kubernetesCall: {
    growsMs: [500, 8_000],
    unknownOutcome: 'repeat: a claim has the name of its sandbox, and a pod takes the same assignment twice',
    clientSees: 'the turn waits; NOT_STARTED once no server can start it',
  },
  /** The watch of claims: for ever, from its last version; a new list when that history is gone (410). */
  kubernetesWatch: {
    growsMs: [250, 30_000],
    unknownOutcome: 'the next list says what was missed; nothing is concluded from a list that failed',
    clientSees: 'nothing; a dead pod is found by its lease',
  },
  /** A claim for a pull that waits at another server: no word of it arrives. That server's next sweep finds it (ADR 14). */
  placedPull: { growsMs: [1_000, 1_000], unknownOutcome: 'the same run and epoch', clientSees: 'the turn starts up to 1 s late' },
  /** Discovery and keys of the issuer: the next request asks again, discovery at most each 2 s; what was known serves on. */
  issuer: { pausesMs: [], unknownOutcome: 'a read: repeat', clientSees: '503 SIGN_IN_UNAVAILABLE, Retry-After, or a page that says so' },
  /** The code of a sign-in: never exchanged twice; the person begins again. */
  signIn: { pausesMs: [], unknownOutcome: 'no session: begin again', clientSees: 'a page with a link to begin again' },
  /** A model call that the gateway could not take (its database is away, it is full, it drains): the runner sends it again. */
  modelCallNotTaken: { pausesMs: [1_000, 2_000, 4_000], unknownOutcome: 'nothing was sent', clientSees: 'the turn goes on' },
  /** A model call: Pi retries a failed request itself; a stream that has begun is never repeated by the gateway. */
  modelCall: { pausesMs: [500, 1_000], unknownOutcome: 'billed as started', clientSees: 'the turn goes on, or its failure text' },
  /** A post in Slack that is known not to be there: its pause doubles (or is Slack's own). After 20 tries it is parked for an operator. */
  slackPost: {
    growsMs: [1_000, 300_000],
    unknownOutcome: 'never repeated: the thread is read back, or an operator decides (ADR 29)',
    clientSees: 'the answer comes late in Slack; the app has it',
  },
  /** What Slack delivered and could not be done: again by any server; after 25 tries it is given up with an error in the log. */
  slackEvent: {
    growsMs: [2_000, 30_000],
    unknownOutcome: 'do it again: the same question by its requestId, the same edit, the same erasure',
    clientSees: 'the answer comes late',
  },
} as const satisfies Record<string, RetryRule>;
