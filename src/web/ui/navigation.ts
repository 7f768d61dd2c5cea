/**
 * Owns: going from one conversation to another and to one message: the page's URL, the browser's history, and what is to be shown there.
 */
import { hrefOf, parseRoute, type Route } from '../route.ts';
import { Store } from '../store/store.ts';

/** One message that is to be shown. A new object each time, so that the same message can be gone to again. */
export interface Goal {
  readonly threadId: string | null;
  readonly entryId: string;
}

export class Navigation {
  readonly route = new Store<Route>(parseRoute(location.search));
  readonly goal = new Store<Goal | null>(null);

  /** Follows the browser's back and forward from now on. Returns the way to undo it. */
  listen(): () => void {
    const onPop = () => {
      const route = parseRoute(location.search);
      if (route.threadId === this.route.get().threadId) return;
      this.goal.set(null);
      this.route.set(route);
    };
    addEventListener('popstate', onPop);
    return () => removeEventListener('popstate', onPop);
  }

  href(threadId: string | null): string {
    return hrefOf({ ...this.route.get(), threadId });
  }

  /** @param entryId a message of that conversation that is to be shown; null: its end */
  open(threadId: string | null, entryId: string | null = null): void {
    this.goal.set(entryId === null ? null : { threadId, entryId });
    if (threadId === this.route.get().threadId) return;
    history.pushState(null, '', this.href(threadId));
    this.route.set({ ...this.route.get(), threadId });
  }
}
