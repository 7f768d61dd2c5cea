/**
 * Owns: a log that a spec can read.
 */
import type { Log, LogFields } from '../../src/kernel/log.ts';

export interface NotedLine extends LogFields {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly event: string;
}

/** Keeps every line, oldest first. */
export class NotedLog implements Log {
  readonly lines: NotedLine[] = [];

  debug = this.#note('debug');
  info = this.#note('info');
  warn = this.#note('warn');
  error = this.#note('error');

  child(): Log {
    return this;
  }

  /** The lines of one event. */
  of(event: string): readonly NotedLine[] {
    return this.lines.filter((line) => line.event === event);
  }

  #note(level: NotedLine['level']) {
    return (event: string, fields: LogFields = {}): void => void this.lines.push({ ...fields, level, event });
  }
}
