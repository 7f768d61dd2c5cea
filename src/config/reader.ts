/**
 * Owns: reading one variable of the environment as text, number, duration, URL … and complaining about a bad one.
 * Does not own: which variables there are (src/config.ts, auth.ts).
 */
import { SECRET_KEY_BYTES } from '../kernel/secret-box.ts';

/** Every complaint about the environment, one line each. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly string[];
  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.problems = problems;
  }
}

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** `250ms`, `25s`, `15m`, `14d` -> milliseconds; null for anything else. */
export function parseDurationMs(value: string): number | null {
  const parts = /^(\d{1,12})(ms|s|m|h|d)$/.exec(value);
  return parts ? Number(parts[1]) * UNIT_MS[parts[2] as keyof typeof UNIT_MS] : null;
}

/** Reads variables one by one and collects what is wrong with them. */
export class Reader {
  readonly #env: Readonly<Record<string, string | undefined>>;
  readonly problems: string[] = [];
  readonly known = new Set<string>();

  constructor(env: Readonly<Record<string, string | undefined>>) {
    this.#env = env;
  }

  /** The trimmed value; an empty variable counts as not set. */
  raw(name: string): string | null {
    this.known.add(name);
    return this.#env[name]?.trim() || null;
  }

  text(name: string, fallback: string, lengthMax = 200): string {
    const value = this.raw(name) ?? fallback;
    if (value.length > lengthMax) this.bad(name, `${value.slice(0, 20)}…`, `at most ${lengthMax} characters`);
    return value;
  }

  integer(name: string, fallback: number, [min, max]: readonly [number, number]): number {
    const value = this.raw(name);
    if (value === null) return fallback;
    const number = /^\d{1,12}$/.test(value) ? Number(value) : Number.NaN;
    if (!(number >= min && number <= max)) this.bad(name, value, `a whole number from ${min} to ${max}`);
    return number;
  }

  durationMs(name: string, fallback: string, [min, max]: readonly [string, string]): number {
    const value = this.raw(name) ?? fallback;
    const ms = parseDurationMs(value) ?? Number.NaN;
    const inRange = ms >= (parseDurationMs(min) as number) && ms <= (parseDurationMs(max) as number);
    if (!inRange) this.bad(name, value, `a duration from ${min} to ${max}, written like 250ms, 25s, 15m or 14d`);
    return ms;
  }

  /** A price, written as a decimal; the text is kept, so that nothing is rounded. */
  decimal(name: string): string | null {
    const value = this.raw(name);
    if (value !== null && !/^\d{1,9}(\.\d{1,9})?$/.test(value)) this.bad(name, value, 'a decimal such as 0.25');
    return value;
  }

  boolean(name: string, fallback: boolean): boolean {
    const value = this.raw(name);
    if (value === null) return fallback;
    if (value !== 'true' && value !== 'false') this.bad(name, value, 'true or false');
    return value === 'true';
  }

  choice<T extends string>(name: string, fallback: T, allowed: readonly T[]): T {
    const value = this.raw(name) ?? fallback;
    if (!(allowed as readonly string[]).includes(value)) this.bad(name, value, `one of: ${allowed.join(', ')}`);
    return value as T;
  }

  url(name: string, protocols: readonly string[]): URL | null {
    const value = this.raw(name);
    if (value === null) return null;
    const allowed = `a URL that starts with ${protocols.map((p) => `${p}//`).join(' or ')}`;
    if (!URL.canParse(value)) {
      this.bad(name, value, allowed);
      return null;
    }
    const url = new URL(value);
    // The value may hold a password: only its scheme is repeated.
    if (!protocols.includes(url.protocol)) this.bad(name, `${url.protocol}//…`, allowed);
    return url;
  }

  /** 32 bytes in Base64. What is wrong with it is told without it. */
  secretKey(name: string): Buffer | null {
    const value = this.raw(name);
    if (value === null) return null;
    const bytes = Buffer.from(value, 'base64');
    if (bytes.length !== SECRET_KEY_BYTES) {
      const how = 'for example what `openssl rand -base64 32` prints';
      this.problems.push(`${name} must hold ${SECRET_KEY_BYTES} random bytes in Base64, ${how}. It holds ${bytes.length}.`);
    }
    return bytes;
  }

  bad(name: string, value: string, allowed: string): void {
    this.problems.push(`${name} is "${value}"; allowed: ${allowed}.`);
  }
}
