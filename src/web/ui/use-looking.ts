/**
 * Owns: whether the person looks at this page: it is in front and its window has the focus.
 */
import { useSyncExternalStore } from 'react';

export function isLooking(): boolean {
  return document.visibilityState === 'visible' && document.hasFocus();
}

function subscribe(listener: () => void): () => void {
  document.addEventListener('visibilitychange', listener);
  addEventListener('focus', listener);
  addEventListener('blur', listener);
  return () => {
    document.removeEventListener('visibilitychange', listener);
    removeEventListener('focus', listener);
    removeEventListener('blur', listener);
  };
}

export function useLooking(): boolean {
  return useSyncExternalStore(subscribe, isLooking);
}
