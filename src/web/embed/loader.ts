/**
 * Owns: the script that a page of another site includes: a button, and behind it the panel in a frame.
 *   <script src="https://heph.example.com/embed.js" defer></script>      (data-label: the words of the button; data-workspace: the workspace in which
 *   it is asked; data-language: de)
 * It is one classic script without imports (types only), because it runs on pages that are not ours: it leaves no name there, asks for nothing but
 * the frame, and works under a policy that forbids inline styles. What the page shows is read when the panel comes into sight and when it changes
 * while it is in sight, and goes to the origin of this script only.
 */
import type { HostMessage, PanelMessage } from './messages.ts';

(() => {
  const script = document.currentScript;
  if (!(script instanceof HTMLScriptElement) || document.querySelector('[data-heph]') !== null) return;

  const { origin } = new URL(script.src);
  const german = (script.dataset['language'] ?? document.documentElement.lang ?? '').toLowerCase().startsWith('de');
  const words = german
    ? {
        open: 'Assistent fragen',
        close: 'Schließen',
        refused: 'Der Assistent lässt sich auf dieser Seite nicht zeigen. Wer ihn betreibt, kann sie erlauben:',
      }
    : { open: 'Ask the assistant', close: 'Close', refused: 'The assistant cannot be shown on this site. Its operator can allow it:' };
  const label = script.dataset['label'] ?? words.open;
  /** Of one text. The panel shows and cuts it (host-link.ts). */
  const textMaxChars = 10_000;
  /** A frame that says nothing for so long after it was loaded is no panel. */
  const patienceMs = 4_000;

  const styles = `
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

  const element = <K extends keyof HTMLElementTagNameMap>(tag: K, className: string, text = ''): HTMLElementTagNameMap[K] => {
    const made = document.createElement(tag);
    made.className = className;
    made.textContent = text;
    return made;
  };
  const place = element('div', '');
  place.dataset['heph'] = '';
  const root = place.attachShadow({ mode: 'open' });
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(styles);
  root.adoptedStyleSheets = [sheet];
  const toggle = element('button', 'toggle', label);
  toggle.type = 'button';
  toggle.setAttribute('aria-expanded', 'false');
  const panel = element('section', 'panel');
  panel.hidden = true;
  panel.setAttribute('role', 'dialog');
  panel.setAttribute('aria-label', label);
  root.append(toggle, panel);

  let frame: HTMLIFrameElement | null = null;
  let ready = false;
  let refusal: HTMLElement | null = null;

  const say = (message: HostMessage) => ready && frame?.contentWindow?.postMessage(message, origin);
  const sayPage = () => {
    const selection = document.getSelection()?.toString() ?? '';
    const { href: url } = location;
    const cut = (text: string) => text.slice(0, textMaxChars);
    say({ type: 'heph:page', url: cut(url), title: cut(document.title), selection: cut(selection) });
  };
  const inSight = () => !panel.hidden;

  const makeFrame = () => {
    frame = element('iframe', '');
    frame.title = label;
    frame.allow = 'clipboard-write';
    frame.referrerPolicy = 'no-referrer';
    const { workspace } = script.dataset;
    frame.src = `${origin}/embed?${new URLSearchParams({ host: location.origin, ...(workspace === undefined ? {} : { workspace }) })}`;
    // A frame that its server does not allow here is loaded, too: as a page of the browser, which says nothing.
    frame.addEventListener('load', () => setTimeout(() => !ready && showRefusal(), patienceMs));
    panel.append(frame);
  };
  const showRefusal = () => {
    if (refusal !== null || frame === null) return;
    refusal = element('div', 'refused');
    const text = element('p', '', `${words.refused} HEPH_EMBED_ORIGINS=${location.origin}`);
    text.setAttribute('role', 'status');
    const close = element('button', 'close', words.close);
    close.type = 'button';
    close.addEventListener('click', () => setOpen(false));
    refusal.append(text, close);
    frame.hidden = true;
    panel.append(refusal);
    if (inSight()) close.focus();
  };
  const hideRefusal = () => {
    refusal?.remove();
    refusal = null;
    if (frame !== null) frame.hidden = false;
  };

  const setOpen = (open: boolean) => {
    if (open === inSight()) return;
    if (open && frame === null) makeFrame();
    panel.hidden = !open;
    toggle.setAttribute('aria-expanded', String(open));
    if (!open) return toggle.focus();
    sayPage();
    frame?.focus();
    say({ type: 'heph:shown' });
  };

  toggle.addEventListener('click', () => setOpen(!inSight()));
  root.addEventListener('keydown', (event) => {
    if (!(event instanceof KeyboardEvent) || event.key !== 'Escape' || !inSight()) return;
    event.preventDefault();
    setOpen(false);
  });
  addEventListener('message', ({ origin: from, source, data }: MessageEvent) => {
    if (from !== origin || frame === null || source !== frame.contentWindow) return;
    const { type } = (data ?? {}) as Partial<PanelMessage>;
    if (type === 'heph:close') setOpen(false);
    if (type !== 'heph:ready') return;
    ready = true;
    hideRefusal();
    sayPage();
    if (inSight()) say({ type: 'heph:shown' });
  });
  let saying = 0;
  const onChange = () => {
    if (!inSight() || saying !== 0) return;
    saying = requestAnimationFrame(() => {
      saying = 0;
      sayPage();
    });
  };
  document.addEventListener('selectionchange', onChange);
  for (const moved of ['popstate', 'hashchange', 'blur']) addEventListener(moved, onChange);

  const attach = () => document.body.append(place);
  if (document.body === null) addEventListener('DOMContentLoaded', attach);
  else attach();
})();
