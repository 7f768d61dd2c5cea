/**
 * Owns: what this browser remembers for the person: small values by name. Nothing here ever throws.
 * A browser may forbid storage altogether (then even asking for it throws), or have no room left: then nothing is remembered.
 */
export type KeyValueStorage = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

const FORGETFUL: KeyValueStorage = { getItem: () => null, setItem: () => undefined, removeItem: () => undefined };

/** The browser's storage, or one that forgets everything. */
export function storageOr(kind: 'localStorage' | 'sessionStorage'): KeyValueStorage {
  try {
    return globalThis[kind] ?? FORGETFUL;
  } catch {
    return FORGETFUL;
  }
}

/** The value of this name; null when there is none. */
export function readSetting(name: string): string | null {
  try {
    return storageOr('localStorage').getItem(name);
  } catch {
    return null;
  }
}

/** Remembers a value under this name; null forgets it. */
export function writeSetting(name: string, value: string | null): void {
  try {
    const storage = storageOr('localStorage');
    if (value === null) storage.removeItem(name);
    else storage.setItem(name, value);
  } catch {
    // See above.
  }
}

/** Forgets every value whose name is like that, in the tab and in the browser. */
export function forgetSettings(isWanted: (name: string) => boolean): void {
  for (const kind of ['localStorage', 'sessionStorage'] as const) {
    try {
      const storage = globalThis[kind];
      for (const name of Object.keys(storage).filter(isWanted)) storage.removeItem(name);
    } catch {
      // See above.
    }
  }
}

/** The value of this name when it is one of the choices, else the first choice. */
export function readChoice<T extends string>(name: string, choices: readonly [T, ...T[]]): T {
  const saved = readSetting(name);
  return choices.find((choice) => choice === saved) ?? choices[0];
}
