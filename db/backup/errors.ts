/**
 * Owns: why a backup or a restore did not happen. Each message is for the operator who typed the command: what is so, then what to do.
 */

/** A backup that was not written, or a file or a database that a restore refused. Nothing was changed. */
export class BackupError extends Error {
  override readonly name = 'BackupError';
}
