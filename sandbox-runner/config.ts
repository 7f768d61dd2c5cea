/**
 * Owns: how a runner is configured: its arguments, and every number of the runner that no other process must agree on.
 * Does not own: limits of a wire (src/contract/limits.ts) and what is secret: a credential comes on standard input only.
 * This is the only reader of argv and of the environment in the runner.
 */
import { parseArgs } from 'node:util';
import { LIMITS } from '../src/contract/limits.ts';
import { TRANSIENT } from '../src/kernel/transient.ts';

/** Pi's working directory on the wire. A constant, so that the system entry and the tool texts are the same on each machine. */
export const WORKSPACE_DIR = '/workspace/work';

export const RUNNER = {
  /** A call that the server could not answer is sent again after each of these. */
  retryDelaysMs: TRANSIENT.end.pausesMs,
  /** Pause between pulls that the server could not answer: doubles from the first to the second, with jitter. */
  pullBackoffMinMs: TRANSIENT.pull.growsMs[0],
  pullBackoffMaxMs: TRANSIENT.pull.growsMs[1],
  /** A pull that is refused or answered with nothing sooner than this counts as not answered, so that it cannot spin. */
  pullQuickMs: 50,
  /** Whole duration of one call, its body included. A pull adds its waiting time. */
  callTimeoutMs: 10_000,
  contextTimeoutMs: 60_000,
  endTimeoutMs: 30_000,
  connectTimeoutMs: 5_000,
  /** Largest answer of the server. A context carries up to 32 MiB of documents as Base64 and the stored path. */
  contextMaxBytes: 96 * 1024 * 1024,
  replyMaxBytes: 256 * 1024,
  /** A renewal that failed is tried again after this, until the lease is over. */
  renewRetryMs: TRANSIENT.renewal.growsMs[0],
  /** A turn that writes nothing still asks this often whether it was stopped. */
  heartbeatEveryMs: 1_000,
  /** UTF-16 units of one report: even if each needs 6 bytes in JSON it fits a request of 512 KiB. */
  partialSliceMaxChars: 64 * 1024,
  /** Pi tries a failed model call again this often, and waits this long before the first time. */
  modelRetries: TRANSIENT.modelCall.pausesMs.length,
  modelRetryBaseMs: TRANSIENT.modelCall.pausesMs[0],
  /** What Pi's summary prompts take at most, and a tool result in one: Pi cuts it to 2,000 characters. Tokens. */
  summaryPromptTokens: 1_024,
  summaryToolResultTokens: 520,
  /** A request for a summary takes at least this part of the window, also of a model that may write very long answers. */
  summaryPartOfWindow: 4,
  /** No model packs more text into a token than this part of the estimate of four characters for each (five characters). */
  leastPartOfEstimate: 0.8,
  /** How long an aborted Pi may take to become idle. After that the process is given up. */
  abortMaxMs: 10_000,
  /** Code points of a path or a command in the note that replaces a tool result. */
  noteSubjectMaxChars: 200,
  /** A tool result longer than this is reduced to a note when the end is too large for the server. */
  toolResultKeptChars: 1_000,
  /** Limits of the context folder. */
  folderMaxFiles: 2_000,
  folderMaxBytes: 32 * 1024 * 1024,
  pathMaxChars: 512,
  pathMaxSegments: 64,
  /** Limits of one loaded repository: its archive, its files with their folders and those of git itself, and what one entry may say about the next. */
  loadMaxBytes: 1024 * 1024 * 1024,
  loadMaxFiles: 2 * LIMITS.loadFilesMax,
  tarExtensionMaxBytes: 16 * 1024,
  /** Files of a load that are written at the same time, and the piece in which one is copied. */
  loadWriters: 8,
  copyChunkBytes: 64 * 1024,
  /** An item document in JSON: each byte can need six. */
  documentReplyMaxBytes: 6 * LIMITS.documentMaxBytes + 4 * 1024,
  /** Standard input: one line. */
  lineMaxChars: 64 * 1024,
  /** What one command may print before it is killed, and how much of its tail is looked at. */
  bashOutputMaxBytes: 64 * 1024 * 1024,
  bashTailBytes: 256 * 1024,
  /** How long the pipes of a command that ended may stay open (a descendant that left its group can hold them). */
  bashPipesMaxMs: 250,
} as const;

export interface RunnerConfig {
  /** Folder of Node's compile cache, or null for none. */
  readonly compileCacheDir: string | null;
  /** Path of setpriv, which ties a child's life to its parent's. Null where there is none. */
  readonly setprivPath: string | null;
  /** The system call filter of a command's own layer: commands run in one. Null: this process is not isolated. */
  readonly toolFilter: string | null;
  /** Where the assignment arrives in a pod. Null: on standard input. */
  readonly socketPath: string | null;
}

/** Reads the arguments of the process. Throws on an unknown one: it says which. */
export function readConfig(argv: readonly string[] = process.argv.slice(2)): RunnerConfig {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      'compile-cache': { type: 'string' },
      setpriv: { type: 'string' },
      'tool-filter': { type: 'string' },
      socket: { type: 'string' },
    },
    strict: true,
  });
  const { 'compile-cache': compileCacheDir = null, setpriv: setprivPath = null, 'tool-filter': toolFilter = null } = values;
  return { compileCacheDir, setprivPath, toolFilter, socketPath: values.socket ?? null };
}
