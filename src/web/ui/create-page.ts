/**
 * Owns: the composition of the chat: controller, shared stream and browser, put together for one session.
 */
import type { Session } from '../../contract/web.ts';
import { uuidv7 } from '../../kernel/ids.ts';
import { ChatController } from '../chat/controller.ts';
import { localeFor } from '../language.ts';
import { createApi, eventsUrl, readMe } from '../net/api.ts';
import { browserClock } from '../net/browser-clock.ts';
import { EventStream } from '../net/event-stream.ts';
import { SharedStream } from '../net/shared-stream.ts';
import { storageOr } from '../settings.ts';
import { Store } from '../store/store.ts';
import { t } from '../strings.ts';
import type { Page } from './context.ts';
import { createDates } from './dates.ts';
import { Notifier } from './notifier.ts';
import { takePlace } from './sign-in.ts';

/** A line that was silent for this long is not trusted when the page comes to the front. The server pings every 15 s. */
const trustedSilenceMs = 20_000;

export interface RunningPage extends Page {
  /** Connects, and listens to what the browser says about network and visibility. Returns the way to undo it. */
  run(): () => void;
}

export function createPage(session: Session, { navigation, host }: Pick<Page, 'navigation' | 'host'>): RunningPage {
  const { slug } = session.workspace;
  const scope = `${slug}.${session.account.id}`;
  const api = createApi(slug);
  let stream: SharedStream | null = null;
  const controller = new ChatController({
    api,
    clock: browserClock,
    random: Math.random,
    storage: storageOr('sessionStorage'),
    storageKey: `heph.outbox.${scope}`,
    words: t,
    openStream(handlers) {
      stream = new SharedStream(
        `heph.events.${scope}`,
        {
          connect: (inner) =>
            new EventStream(
              eventsUrl(slug),
              { fetch: (input, init) => fetch(input, init), clock: browserClock, random: Math.random },
              inner,
            ),
          locks: navigator.locks ?? null,
          openChannel: typeof BroadcastChannel === 'function' ? (name) => new BroadcastChannel(name) : null,
          clock: browserClock,
          newTabId: () => uuidv7(),
        },
        handlers,
      );
      return stream;
    },
  });
  const me: RunningPage['me'] = new Store(null);
  const meet = () => void readMe().then((result) => result.ok && me.set(result.value));
  const run = () => {
    const leaving = new AbortController();
    const { signal } = leaving;
    controller.start();
    meet();
    const unlisten = navigation.listen();
    addEventListener('online', () => stream?.wake(0), { signal });
    document.addEventListener('visibilitychange', () => document.visibilityState === 'visible' && stream?.wake(trustedSilenceMs), {
      signal,
    });
    // A page in the back-forward cache must not hold the lock; when it comes back it starts like a new one.
    addEventListener('pagehide', () => controller.stop(), { signal });
    addEventListener('pageshow', (event) => event.persisted && controller.start(), { signal });
    return () => {
      leaving.abort();
      unlisten();
      controller.stop();
    };
  };
  const place = host === null ? takePlace(session) : null;
  if (place !== null && place.threadId === navigation.route.get().threadId) navigation.goal.set(place);
  const dates = createDates(session.account.timeZone, t, localeFor(t.language, navigator.languages ?? []));
  const aiAllowed = new Store(session.aiAllowed);
  return { session, controller, dates, notifier: new Notifier(), api, navigation, host, me, aiAllowed, run };
}
