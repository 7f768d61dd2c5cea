/**
 * Owns: the script that a page of another site includes: a button, and behind it the panel in a frame.
 *   <script src="https://heph.example.com/embed.js" defer></script>      (data-label: the words of the button; data-workspace: the workspace in
 *   which it is asked; data-language: de)
 * It is one classic script without imports (types only), because it runs on pages that are not ours: the build puts it into a function, so that it
 * leaves no name there (vite.config.ts); it asks for nothing but the frame, and works under a policy that forbids inline styles. What the page shows
 * is read when the panel comes into sight and when it changes while it is in sight, and goes to the origin of this script only.
 */
import type { HostMessage, PanelMessage } from './messages.ts';

interface Words {
  readonly open: string;
  readonly close: string;
  readonly refused: string;
}

const ENGLISH: Words = {
  open: 'Ask the assistant',
  close: 'Close',
  refused: 'The assistant cannot be shown on this site. Its operator can allow it:',
};
const GERMAN: Words = {
  open: 'Assistent fragen',
  close: 'Schließen',
  refused: 'Der Assistent lässt sich auf dieser Seite nicht zeigen. Wer ihn betreibt, kann sie erlauben:',
};
/** Of one text. The panel shows and cuts it (host-link.ts). */
const textMaxChars = 10_000;
/** A frame that says nothing for so long after it was loaded is no panel. */
const patienceMs = 4_000;

const STYLES = `
  :host { all: initial; color-scheme: light dark; }
  * { box-sizing: border-box; font: 500 16px/1.5 system-ui, sans-serif; }
  [hidden] { display: none !important; }
  button { border: 0; border-radius: 999px; padding: 10px 18px; cursor: pointer; background: light-dark(#b3441c, #f29467); color: light-dark(#fff, #241006); }
  button:focus-visible { outline: 3px solid light-dark(#943613, #f7ae8a); outline-offset: 2px; }
  .toggle { position: fixed; z-index: 2147483647; inset: auto 20px 20px auto; box-shadow: 0 4px 16px rgb(0 0 0 / 25%); }
  .toggle:dir(rtl) { inset: auto auto 20px 20px; }
  .panel { position: fixed; z-index: 2147483647; inset: auto 20px 80px auto; inline-size: 400px; block-size: min(640px, 100dvh - 100px);
    overflow: hidden; border: 1px solid light-dark(#8c847a, #7b7267); border-radius: 14px; background: light-dark(#fbfaf8, #171513);
    color: light-dark(#1f1c19, #ece7e1); box-shadow: 0 8px 32px rgb(0 0 0 / 30%); }
  .panel:dir(rtl) { inset: auto auto 80px 20px; }
  iframe { display: block; inline-size: 100%; block-size: 100%; border: 0; }
  .refused { display: grid; gap: 16px; align-content: center; justify-items: center; block-size: 100%; padding: 24px; text-align: center; }
  .refused p { margin: 0; overflow-wrap: anywhere; }
  @media (width < 480px) { .panel, .panel:dir(rtl) { inset: 0; inline-size: auto; block-size: auto; border: 0; border-radius: 0; } }`;

function element<K extends keyof HTMLElementTagNameMap>(tag: K, className: string, text = ''): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = text;
  return made;
}

function buttonOf(className: string, text: string, press: () => void): HTMLButtonElement {
  const button = element('button', className, text);
  button.type = 'button';
  button.addEventListener('click', press);
  return button;
}

class Panel {
  /** What stands in the page. */
  readonly place = element('div', '');
  readonly #origin: string;
  readonly #workspace: string | undefined;
  readonly #words: Words;
  readonly #label: string;
  readonly #toggle: HTMLButtonElement;
  readonly #box = element('section', 'panel');
  #frame: HTMLIFrameElement | null = null;
  #refusal: HTMLElement | null = null;
  /** The frame has said that it listens. */
  #ready = false;
  #saying = 0;

  constructor(script: HTMLScriptElement) {
    const { label, workspace, language = document.documentElement.lang } = script.dataset;
    this.#origin = new URL(script.src).origin;
    this.#workspace = workspace;
    this.#words = language.toLowerCase().startsWith('de') ? GERMAN : ENGLISH;
    this.#label = label ?? this.#words.open;
    this.#toggle = buttonOf('toggle', this.#label, () => this.#setOpen(!this.#inSight));
    this.#toggle.setAttribute('aria-expanded', 'false');
    this.#box.hidden = true;
    this.#box.setAttribute('role', 'dialog');
    this.#box.setAttribute('aria-label', this.#label);
    this.place.dataset['heph'] = '';
    const root = this.place.attachShadow({ mode: 'open' });
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLES);
    root.adoptedStyleSheets = [sheet];
    root.append(this.#toggle, this.#box);
    root.addEventListener('keydown', (event) => this.#onKey(event as KeyboardEvent));
    this.#listen();
  }

  get #inSight(): boolean {
    return !this.#box.hidden;
  }

  #listen(): void {
    addEventListener('message', (event) => this.#hear(event));
    const onChange = () => {
      if (!this.#inSight || this.#saying !== 0) return;
      this.#saying = requestAnimationFrame(() => {
        this.#saying = 0;
        this.#sayPage();
      });
    };
    document.addEventListener('selectionchange', onChange);
    for (const moved of ['popstate', 'hashchange', 'blur']) addEventListener(moved, onChange);
  }

  #hear({ origin, source, data }: MessageEvent): void {
    if (origin !== this.#origin || this.#frame === null || source !== this.#frame.contentWindow) return;
    const { type } = (data ?? {}) as Partial<PanelMessage>;
    if (type === 'heph:close') this.#setOpen(false);
    if (type !== 'heph:ready') return;
    this.#ready = true;
    this.#refusal?.remove();
    this.#refusal = null;
    this.#frame.hidden = false;
    if (this.#inSight) this.#enter();
  }

  #say(message: HostMessage): void {
    if (this.#ready) this.#frame?.contentWindow?.postMessage(message, this.#origin);
  }

  #sayPage(): void {
    const [url, title, selection] = [location.href, document.title, document.getSelection()?.toString() ?? ''].map((text) =>
      text.slice(0, textMaxChars),
    ) as [string, string, string];
    this.#say({ type: 'heph:page', url, title, selection });
  }

  #setOpen(open: boolean): void {
    if (open === this.#inSight) return;
    if (open) this.#frame ??= this.#makeFrame();
    this.#box.hidden = !open;
    this.#toggle.setAttribute('aria-expanded', String(open));
    if (open) this.#enter();
    else this.#toggle.focus();
  }

  #enter(): void {
    this.#sayPage();
    this.#frame?.focus();
    this.#say({ type: 'heph:shown' });
  }

  #onKey(event: KeyboardEvent): void {
    if (event.key !== 'Escape' || !this.#inSight) return;
    event.preventDefault();
    this.#setOpen(false);
  }

  #makeFrame(): HTMLIFrameElement {
    const frame = element('iframe', '');
    frame.title = this.#label;
    frame.allow = 'clipboard-write';
    frame.referrerPolicy = 'no-referrer';
    const where = this.#workspace === undefined ? {} : { workspace: this.#workspace };
    frame.src = `${this.#origin}/embed?${new URLSearchParams({ host: location.origin, ...where })}`;
    // A frame that its server does not allow here is loaded, too: as a page of the browser, which says nothing.
    frame.addEventListener('load', () => setTimeout(() => this.#refuse(frame), patienceMs));
    this.#box.append(frame);
    return frame;
  }

  #refuse(frame: HTMLIFrameElement): void {
    if (this.#ready || this.#refusal !== null) return;
    const text = element('p', '', `${this.#words.refused} HEPH_EMBED_ORIGINS=${location.origin}`);
    text.setAttribute('role', 'status');
    const close = buttonOf('close', this.#words.close, () => this.#setOpen(false));
    this.#refusal = element('div', 'refused');
    this.#refusal.append(text, close);
    frame.hidden = true;
    this.#box.append(this.#refusal);
    if (this.#inSight) close.focus();
  }
}

const script = document.currentScript;
if (script instanceof HTMLScriptElement && document.querySelector('[data-heph]') === null) {
  const { place } = new Panel(script);
  if (document.body === null) addEventListener('DOMContentLoaded', () => document.body.append(place));
  else document.body.append(place);
}
