/**
 * Owns: reading one path now and again each 5 s, one request at a time, not while the page is hidden or the operator holds it.
 */
import { createContext, useContext, useEffect, useState } from 'react';
import { Refusal, request } from './wire.ts';

export const REFRESH_MS = 5_000;

/** How the read of a view went; the frame around it says so. */
export interface ReadState {
  readonly error: string | null;
  readonly at: Date | null;
  /** The server does not know any more who reads. */
  readonly unknown?: boolean;
}

export interface ReadControls {
  /** Read no more by itself. */
  readonly held: boolean;
  /** Changes when something was done, so that it is seen at once. */
  readonly turn: number;
  readonly report: (state: ReadState) => void;
}

export const ReadContext = createContext<ReadControls>({ held: false, turn: 0, report: () => undefined });

interface Reading<T> extends ReadState {
  readonly path: string;
  /** What was read last, also while a later read fails. */
  readonly data: T | null;
}

/** What this path answers; null until it has. */
export function useRead<T>(path: string): T | null {
  const { held, turn, report } = useContext(ReadContext);
  const [reading, setReading] = useState<Reading<T>>({ path, data: null, error: null, at: null });
  // biome-ignore lint/correctness/useExhaustiveDependencies: `turn` asks for a read of the same path
  useEffect(() => {
    let gone = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const read = async () => {
      if (document.visibilityState !== 'hidden') {
        const next = await request<T>(path).then(
          (data) => ({ path, data, error: null, at: new Date(), unknown: false }),
          (error: Error) => ({ path, error: error.message, unknown: error instanceof Refusal && error.status === 401 }),
        );
        if (gone) return;
        setReading((now) => ({ ...(now.path === path ? now : { data: null, at: null }), ...next }));
      }
      if (!held) timer = setTimeout(() => void read(), REFRESH_MS);
    };
    void read();
    return () => {
      gone = true;
      clearTimeout(timer);
    };
  }, [path, held, turn]);
  const { at, error, unknown = false } = reading;
  useEffect(() => report({ at, error, unknown }), [at, error, unknown, report]);
  return reading.path === path ? reading.data : null;
}
