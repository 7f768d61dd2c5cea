/**
 * Owns: the way to the sign-in and back to the same place: the conversation by the URL, the message by what the tab remembers meanwhile.
 */
import { z } from 'zod';
import { idSchema } from '../../contract/common.ts';
import { storageOr } from '../settings.ts';
import type { Page } from './context.ts';
import type { Goal } from './navigation.ts';

/** Closer to the end than this is the end, where a page opens anyway. */
const endSlackPx = 40;
const placeSchema = z.object({ threadId: idSchema.nullable(), entryId: idSchema });

/** A frame signs in in another tab, which has a page of its own to come back to. */
export function signInHref(signInUrl: string): string {
  const here = window.parent === window ? location.pathname + location.search : '/';
  return `${signInUrl}?${new URLSearchParams({ return: here })}`;
}

const nameOf = ({ workspace, account }: Page['session']): string => `heph.place.${workspace.slug}.${account.id}`;

/** The message at the upper edge of what the person sees; null at the end of the conversation. */
function entryInSight(): string | null {
  const box = document.querySelector('.scroller');
  if (box === null || box.scrollHeight - box.clientHeight - box.scrollTop <= endSlackPx) return null;
  const edgePx = box.getBoundingClientRect().top;
  const first = [...box.querySelectorAll<HTMLElement>('[data-entry-id]')].find((one) => one.getBoundingClientRect().bottom > edgePx);
  return first?.dataset['entryId'] ?? null;
}

/** Remembers where the person is, for the page that this tab comes back to. */
export function rememberPlace({ session, navigation }: Pick<Page, 'session' | 'navigation'>): void {
  const entryId = entryInSight();
  try {
    if (entryId === null) storageOr('sessionStorage').removeItem(nameOf(session));
    else storageOr('sessionStorage').setItem(nameOf(session), JSON.stringify({ threadId: navigation.route.get().threadId, entryId }));
  } catch {
    // A browser that keeps nothing opens the conversation at its end.
  }
}

/** Where this tab was left for a sign-in; once. */
export function takePlace(session: Page['session']): Goal | null {
  try {
    const storage = storageOr('sessionStorage');
    const saved = storage.getItem(nameOf(session));
    storage.removeItem(nameOf(session));
    return saved === null ? null : placeSchema.parse(JSON.parse(saved));
  } catch {
    return null;
  }
}

/** Calls this whenever the person comes back to the page. Returns the way to undo it. */
export function onReturn(listener: () => void): () => void {
  const leaving = new AbortController();
  addEventListener('focus', listener, { signal: leaving.signal });
  const look = () => document.visibilityState === 'visible' && listener();
  document.addEventListener('visibilitychange', look, { signal: leaving.signal });
  return () => leaving.abort();
}
