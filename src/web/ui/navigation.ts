/**
 * Owns: going from one conversation to another and to one message: the page's URL, the browser's history, and what is to be shown there.
 */
import { z } from 'zod';
import { idSchema } from '../../contract/common.ts';
import { hrefOf, parseRoute, type Route } from '../route.ts';
import { Store } from '../store/store.ts';

/** What the browser keeps with a page of its history that was left at a message. */
const leftAtSchema = z.object({ leftAt: idSchema });

/** One message that is to be shown. A new object each time, so that the same message can be gone to again. */
export interface Goal {
  readonly threadId: string | null;
  readonly entryId: string;
}

export class Navigation {
  /** `panel`: a frame in a page of another site, whose address and history are not ours to change. */
  readonly #kind: 'page' | 'panel';
  readonly route = new Store<Route>(parseRoute(location.search));
  readonly goal = new Store<Goal | null>(null);

  constructor(kind: 'page' | 'panel') {
    this.#kind = kind;
  }

  /** Follows the browser's back and forward from now on. Returns the way to undo it. */
  listen(): () => void {
    const onPop = (event: PopStateEvent) => {
      const route = parseRoute(location.search);
      if (route.threadId === this.route.get().threadId) return;
      const leftAt = leftAtSchema.safeParse(event.state).data?.leftAt;
      this.goal.set(leftAt === undefined ? null : { threadId: route.threadId, entryId: leftAt });
      this.route.set(route);
    };
    addEventListener('popstate', onPop);
    return () => removeEventListener('popstate', onPop);
  }

  href(threadId: string | null): string {
    return hrefOf({ ...this.route.get(), threadId });
  }

  /**
   * @param entryId a message of that conversation that is to be shown; null: its end
   * @param from the message at which the person leaves: the browser's back button brings them back to it
   */
  open(threadId: string | null, { entryId = null, from = null }: { entryId?: string | null; from?: string | null } = {}): void {
    this.goal.set(entryId === null ? null : { threadId, entryId });
    if (threadId === this.route.get().threadId) return;
    if (this.#kind === 'page') {
      if (from !== null) history.replaceState({ leftAt: from }, '');
      history.pushState(null, '', this.href(threadId));
    }
    this.route.set({ ...this.route.get(), threadId });
  }
}
