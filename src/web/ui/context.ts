/**
 * Owns: what every part of the page may need: the session, the chat, the account's dates, notifications. Set once, never changes while the page lives.
 */
import { createContext, useContext, useSyncExternalStore } from 'react';
import type { Me } from '../../contract/people.ts';
import type { Session } from '../../contract/web.ts';
import type { ChatController } from '../chat/controller.ts';
import type { HostLink } from '../embed/host-link.ts';
import type { PageApi } from '../net/api.ts';
import type { ChatState } from '../store/state.ts';
import type { Store } from '../store/store.ts';
import type { Dates } from './dates.ts';
import type { Navigation } from './navigation.ts';
import type { Notifier } from './notifier.ts';

export interface Page {
  session: Session;
  controller: ChatController;
  dates: Dates;
  notifier: Notifier;
  api: PageApi;
  navigation: Navigation;
  /** The page of another site that shows this one as its panel; null: this is a page of its own. */
  host: HostLink | null;
  /** Who is signed in; null until it is known. */
  me: Store<Me | null>;
  /** Whether an AI model may work for the person here, as they chose last. */
  aiAllowed: Store<boolean>;
}

export const PageContext = createContext<Page | null>(null);

export function usePage(): Page {
  const page = useContext(PageContext);
  if (page === null) throw new Error('usePage outside of PageContext');
  return page;
}

/** A part of the chat's state. `select` must return the same object while nothing changed. */
export function useChat<T>(select: (state: ChatState) => T): T {
  const { chat } = usePage().controller;
  return useSyncExternalStore(chat.subscribe, () => select(chat.get()));
}
