/**
 * Owns: what the person should know about the connection. Short gaps are not worth a word: a missing stream shows after a second.
 */
import { useEffect, useState, useSyncExternalStore } from 'react';
import { useChat, usePage } from './context.ts';

export type ConnectionNews = 'fine' | 'connecting' | 'reconnecting' | 'offline' | 'signed-out' | 'no-access' | 'outdated';

const patienceMs = 1_000;

function subscribeOnline(listener: () => void): () => void {
  addEventListener('online', listener);
  addEventListener('offline', listener);
  return () => {
    removeEventListener('online', listener);
    removeEventListener('offline', listener);
  };
}

/** `value`, but true only after it has been true for `delayMs`. */
function useLasting(value: boolean, delayMs: number): boolean {
  const [lasting, setLasting] = useState(false);
  useEffect(() => {
    if (!value) return setLasting(false);
    const timer = setTimeout(() => setLasting(true), delayMs);
    return () => clearTimeout(timer);
  }, [value, delayMs]);
  return value && lasting;
}

export function useConnection(): ConnectionNews {
  const { connection } = usePage().controller;
  const { status, outdated } = useSyncExternalStore(connection.subscribe, connection.get);
  const online = useSyncExternalStore(subscribeOnline, () => navigator.onLine);
  const ready = useChat((state) => state.ready);
  const syncing = useChat((state) => state.sync !== null);
  const gone = useLasting(status.kind !== 'open' || syncing || !ready, patienceMs);
  if (outdated) return 'outdated';
  if (status.kind === 'refused') return status.status === 401 ? 'signed-out' : 'no-access';
  if (!online) return 'offline';
  if (!gone) return 'fine';
  return ready ? 'reconnecting' : 'connecting';
}

/** The account may not write here now: it is signed out, or has lost its access. */
export function useReadOnly(): boolean {
  const { connection } = usePage().controller;
  return useSyncExternalStore(connection.subscribe, () => connection.get().status.kind === 'refused');
}
