/**
 * Owns: the panel's side of the talk with the page around it: what that page says about itself, and whether the person sends it along.
 * Does not own: who may show the panel at all, which the browser enforces (src/http/web/embed.ts).
 * - Only the window around the frame is heard, and only under the origin that it named when it made the frame. Whatever else is said, by another
 *   window, by another origin or in another form, changes nothing.
 * - Words go to that origin only, never to whoever happens to be there.
 */
import { LIMITS } from '../../contract/limits.ts';
import type { PageContext } from '../../contract/web.ts';
import { readSetting, writeSetting } from '../settings.ts';
import { Store } from '../store/store.ts';
import { type HostMessage, hostMessageSchema, type PanelMessage } from './messages.ts';

/** What this file needs of the window around the frame. */
export type HostWindow = Pick<Window, 'postMessage'>;

export interface HostLinkPorts {
  /** `location.search` of the frame: `host` names the origin of the page around it. */
  readonly search: string;
  /** null: there is no window around this one. */
  readonly around: HostWindow | null;
  /** The panel has come into sight. */
  onShown(): void;
}

const name = 'heph.panel.page';

/** At most so many UTF-16 units; no character is cut in half. */
function cut(text: string, maxChars: number): string {
  return text.slice(0, maxChars).replace(/[\ud800-\udbff]$/u, '');
}

function parse(text: string): URL | null {
  return URL.canParse(text) ? new URL(text) : null;
}

/** A URL that was cut would lead elsewhere: a longer one loses its query, then its path. */
function cutUrl(text: string): string {
  if (text.length <= LIMITS.pageUrlMaxChars) return text;
  const { origin, pathname } = parse(text) ?? { origin: '', pathname: '' };
  return origin.length + pathname.length <= LIMITS.pageUrlMaxChars ? origin + pathname : cut(origin, LIMITS.pageUrlMaxChars);
}

/** null: the frame does not say who shows it, or says no origin. */
function originIn(search: string): string | null {
  const named = new URLSearchParams(search).get('host') ?? '';
  const origin = parse(named)?.origin ?? null;
  return origin === named && origin !== 'null' ? origin : null;
}

/** As much of it as the wire takes. */
function toPage({ url, title, selection }: Extract<HostMessage, { type: 'heph:page' }>): PageContext {
  const marked = cut(selection.trim(), LIMITS.pageSelectionMaxChars);
  return { url: cutUrl(url), title: cut(title.trim(), LIMITS.pageTitleMaxChars), ...(marked === '' ? {} : { selection: marked }) };
}

export class HostLink {
  /** What the person looks at; null until the page has said it. */
  readonly page = new Store<PageContext | null>(null);
  /** Whether it goes along with a question. A person's no holds until they say yes. */
  readonly wanted = new Store(readSetting(name) !== 'no');
  readonly #origin: string | null;
  readonly #ports: HostLinkPorts;

  constructor(ports: HostLinkPorts) {
    this.#ports = ports;
    this.#origin = originIn(ports.search);
  }

  /** A message that came to this window. */
  hear({ origin, source, data }: Pick<MessageEvent, 'origin' | 'source' | 'data'>): void {
    if (this.#origin === null || origin !== this.#origin || source === null || source !== this.#ports.around) return;
    const message = hostMessageSchema.safeParse(data).data;
    if (message === undefined) return;
    if (message.type === 'heph:shown') this.#ports.onShown();
    else this.page.set(toPage(message));
  }

  /** Tells the page that this side listens. */
  ready(): void {
    this.#say('heph:ready');
  }

  readonly close = (): void => this.#say('heph:close');

  want(wanted: boolean): void {
    writeSetting(name, wanted ? null : 'no');
    this.wanted.set(wanted);
  }

  /** What goes along with a question now. */
  sent(): PageContext | null {
    return this.wanted.get() ? this.page.get() : null;
  }

  #say(type: PanelMessage['type']): void {
    if (this.#origin !== null) this.#ports.around?.postMessage({ type } satisfies PanelMessage, this.#origin);
  }
}
