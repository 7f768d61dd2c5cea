/**
 * Owns: structured logs (pino JSON on stderr, so that stdout stays for people and scripts).
 * Rule: ids, counts, outcomes and durations only; never the words of a person, a model or a provider, never a secret.
 */
import { pino } from 'pino';

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent';
export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>;

export interface Log {
  debug(event: string, fields?: LogFields): void;
  info(event: string, fields?: LogFields): void;
  warn(event: string, fields?: LogFields): void;
  /** `error` may carry an exception: its name and SQLSTATE or errno are logged, never its message. */
  error(event: string, fields?: LogFields, error?: unknown): void;
  child(fields: LogFields): Log;
}

/** The kind of a thrown value without its words: `DatabaseError 23505`, `TypeError`, `ECONNREFUSED`. */
export function errorKind(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  const code = (error as { code?: unknown }).code;
  const name = error.constructor.name || error.name;
  return typeof code === 'string' && /^[A-Za-z0-9_]{1,40}$/.test(code) ? `${name} ${code}` : name;
}

/** The stack's call sites (no message), so that a bug can be found without logging anybody's words. */
function callSites(error: unknown): string | undefined {
  if (!(error instanceof Error) || !error.stack) return undefined;
  return error.stack
    .split('\n')
    .filter((line) => /^\s+at /.test(line))
    .slice(0, 12)
    .map((line) => line.trim())
    .join(' | ');
}

function wrap(logger: pino.Logger): Log {
  return {
    debug: (event, fields) => logger.debug(fields ?? {}, event),
    info: (event, fields) => logger.info(fields ?? {}, event),
    warn: (event, fields) => logger.warn(fields ?? {}, event),
    error: (event, fields, error) => {
      const cause = error instanceof Error && error.cause !== undefined ? errorKind(error.cause) : undefined;
      const extra = error === undefined ? {} : { error: errorKind(error), cause, at: callSites(error) };
      logger.error({ ...fields, ...extra }, event);
    },
    child: (fields) => wrap(logger.child(fields)),
  };
}

/** A logger that writes one JSON line per event to stderr. */
export function createLog(level: LogLevel, fields: LogFields = {}): Log {
  const options = { level, base: fields, timestamp: pino.stdTimeFunctions.isoTime, messageKey: 'event' };
  return wrap(pino(options, pino.destination({ dest: 2, sync: true })));
}

/** Says nothing. For specs that do not look at logs. */
export const silentLog: Log = wrap(pino({ level: 'silent' }));
