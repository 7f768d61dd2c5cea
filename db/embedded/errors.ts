/**
 * Owns: what can go wrong before the embedded PostgreSQL serves. Each message is for the person who starts Heph: what happened, then what to do.
 * They are plain errors, not RuntimeFaults: no client of the server ever sees them.
 */

/** Base of the four below: the composition root prints `message` and ends; a stack trace would help nobody. */
export class EmbeddedPostgresError extends Error {
  override readonly name: string = 'EmbeddedPostgresError';
}

/** Another live Heph server uses the data directory. */
export class DataDirInUse extends EmbeddedPostgresError {
  override readonly name = 'DataDirInUse';
  readonly dataDir: string;
  /** The process that holds the directory. */
  readonly pid: number;

  constructor(dataDir: string, pid: number) {
    super(
      `The data directory ${dataDir} is in use by another Heph server (process ${pid}). ` +
        'Stop that server, or set HEPH_DATA_DIR to another directory.',
    );
    this.dataDir = dataDir;
    this.pid = pid;
  }
}

/** The data directory cannot hold a database, or holds one that this server must not touch. */
export class DataDirUnusable extends EmbeddedPostgresError {
  override readonly name = 'DataDirUnusable';
  readonly dataDir: string;

  /** `why` and `whatToDo` are whole sentences. */
  constructor(dataDir: string, sentences: { why: string; whatToDo: string; cause?: unknown }) {
    super(`The data directory ${dataDir} cannot be used. ${sentences.why} ${sentences.whatToDo}`, { cause: sentences.cause });
    this.dataDir = dataDir;
  }
}

/** This machine has no PostgreSQL program that we could start. */
export class PostgresUnavailable extends EmbeddedPostgresError {
  override readonly name = 'PostgresUnavailable';
}

/** PostgreSQL (or initdb) ran and gave up, or did not come up in time. */
export class PostgresStartFailed extends EmbeddedPostgresError {
  override readonly name = 'PostgresStartFailed';
}

const ELSEWHERE = 'Set HEPH_DATA_DIR to a directory that this user can write, or HEPH_DATABASE_URL to a PostgreSQL of your own.';

const WHY: Readonly<Record<string, string>> = {
  EACCES: 'This user may not write there.',
  EPERM: 'This user may not write there.',
  EROFS: 'The file system is read-only.',
  EEXIST: 'There is a file in its place.',
  ENOTDIR: 'A part of the path is a file.',
  ENOSPC: 'The disk is full.',
  EDQUOT: 'The disk quota is used up.',
  ENAMETOOLONG: 'The path is too long.',
};

const NOT_OF_FILES = /^(spawn|kill|listen|bind|connect)/;

/** Runs `work`; a failure of the file system becomes a DataDirUnusable, everything else passes unchanged. */
export async function onDisk<T>(dataDir: string, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException;
    if (error instanceof EmbeddedPostgresError || code === undefined || syscall === undefined || NOT_OF_FILES.test(syscall)) throw error;
    throw new DataDirUnusable(dataDir, { why: `${WHY[code] ?? 'The file system refused.'} (${code})`, whatToDo: ELSEWHERE, cause: error });
  }
}
