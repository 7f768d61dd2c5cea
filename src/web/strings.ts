/**
 * Owns: every word that the page itself says, in each language. Another language is another table of the same shape and a name in language.ts.
 * Does not own: words of the server (problem details, failures and stages of turns, warnings), which are shown as they come.
 */
import { type Language, languageFor, savedLanguage } from './language.ts';
import type { ApiFailure } from './net/api.ts';

/** `problem`: the server says why itself. */
function failureIn(words: { unreachable: string; garbled(status: number): string }): (failure: ApiFailure) => string {
  return (failure) => {
    switch (failure.kind) {
      case 'unreachable':
        return words.unreachable;
      case 'garbled':
        return words.garbled(failure.status);
      case 'problem':
        return failure.problem.detail || failure.problem.title;
    }
  };
}

function count(language: Language, things: number, [one, many]: readonly [string, string]): string {
  return `${things.toLocaleString(language)} ${things === 1 ? one : many}`;
}

const en = {
  language: 'en',
  /** Of the words that come from the server, for screen readers. */
  serverLanguage: 'en',
  skipToComposer: 'Skip to the message box',
  conversation: 'Conversation',
  title: (app: string, { answering, unread }: { answering: boolean; unread: number }) => {
    if (unread > 0) return `(${unread}) ${app}`;
    return answering ? `(answering) ${app}` : app;
  },
  menu: { label: 'Menu', conversation: 'This conversation', settings: 'Settings' },
  theme: { label: 'Colours', auto: 'As the system', light: 'Light', dark: 'Dark' },
  languages: { label: 'Language', auto: 'As the browser', en: 'English', de: 'Deutsch' },
  notify: {
    label: 'Notify me when an answer is ready',
    blocked: 'Notifications are blocked. Allow them in the settings of your browser.',
    ready: 'Your answer is ready.',
    failed: (text: string) => `There is no answer. ${text}`,
  },
  download: { markdown: 'Download as Markdown', json: 'Download as JSON' },
  demo: {
    label: 'Demo model',
    text: 'No AI provider is configured. Answers are made up from the files of the sandbox. See README to connect one.',
  },
  dismiss: 'Dismiss',
  close: 'Close',
  reload: 'Reload',
  banner: {
    connecting: 'Connecting…',
    reconnecting: 'Reconnecting…',
    offline: 'You are offline. What you write is kept; answers go on without you.',
    signedOut: 'You are signed out. Reload the page to sign in again.',
    noAccess: 'You no longer have access to this workspace.',
    outdated: 'This page is older than the server. Reload it to go on.',
  },
  readOnly: 'You can still read and copy what is here. What you have written is kept in this browser.',
  start: {
    connecting: 'Opening your conversation…',
    unreachable: 'The server does not answer yet. This page keeps trying.',
    crashed: 'This page ran into a fault of its own. Your conversation is safe on the server; reload to go on.',
  },
  empty: {
    heading: (name: string) => `Ask ${name}`,
    text: 'Each answer is worked out in a sandbox of your own. You can close this page at any time; the answer will be here.',
    examples: ['What files can you see?', 'Show me what you can do in the sandbox.', 'Write a small script that counts words, and run it.'],
  },
  composer: {
    label: (name: string) => `Message to ${name}`,
    placeholder: (name: string) => `Ask ${name}…`,
    followUp: 'Ask a follow-up…',
    send: 'Send',
    stop: 'Stop',
    stopping: 'Stopping…',
    hint: 'Enter sends, Shift+Enter starts a new line, Escape stops.',
    left: (chars: number) => `${count('en', chars, ['character', 'characters'])} left`,
    over: (chars: number) => `Your message is ${count('en', chars, ['character', 'characters'])} too long.`,
  },
  you: 'You',
  fromSlack: 'from Slack',
  digest: 'Weekly digest',
  erased: 'This message was deleted.',
  status: {
    sending: 'Sending…',
    unsent: 'Not sent',
    queued: (place: number) => (place === 1 ? 'Queued · next' : `Queued · place ${place}`),
    waiting: (name: string, position: number | null) =>
      position === null ? `Waiting for a free ${name}` : `Waiting for a free ${name} · place ${position}`,
    starting: 'Starting…',
    startingAgain: 'Interrupted. Starting again…',
    removed: 'Removed from the queue',
    stoppedWithoutAnswer: 'Stopped before an answer',
  },
  answer: { thinking: 'Thinking…', stopped: 'Stopped', failed: 'No answer' },
  unread: {
    marker: 'New',
    jump: (count: number) => (count === 1 ? '1 new answer' : `${count} new answers`),
  },
  actions: {
    sendAgain: 'Send again',
    discard: 'Discard',
    remove: 'Remove',
    removing: 'Removing…',
    tryAgain: 'Try again',
    copy: 'Copy',
    copied: 'Copied',
    copyAnswer: 'Copy answer',
    copyCode: 'Copy code',
    loadOlder: 'Load older messages',
    loadingOlder: 'Loading older messages…',
    olderFailed: 'Older messages could not be loaded. Try again',
    jumpToLatest: 'Jump to latest',
  },
  palette: { label: 'Commands', placeholder: 'What do you want to do?', none: 'There is no such command.' },
  commands: {
    palette: 'Show all commands',
    shortcuts: 'Keyboard shortcuts',
    write: 'Write a message',
    stop: 'Stop the answer',
    latest: 'Jump to the latest message',
    firstNew: 'Go to the first new answer',
    previousQuestion: 'Go to the previous question',
    nextQuestion: 'Go to the next question',
    copyLast: 'Copy the last answer',
    notifyOn: 'Turn notifications on',
    notifyOff: 'Turn notifications off',
    setting: (label: string, choice: string) => `${label}: ${choice}`,
  },
  keys: { mod: 'Ctrl', alt: 'Alt', shift: 'Shift', enter: 'Enter', escape: 'Esc', up: '↑', down: '↓', end: 'End' },
  shortcuts: { send: 'Send the message', newLine: 'Start a new line' },
  image: (alt: string) => (alt === '' ? 'Image (opens in a new tab)' : `Image: ${alt}`),
  table: 'Table',
  task: (done: boolean): string => (done ? 'Done' : 'Not done'),
  notices: 'Notices',
  tooComplex: 'This text is too large or too deeply nested to be formatted. It is shown as it is.',
  live: {
    started: (name: string) => `${name} is answering.`,
    stage: (name: string, stage: string) => `${name}: ${stage}`,
    done: 'The answer is complete.',
    stopped: 'The answer was stopped.',
    failed: (text: string) => `There is no answer. ${text}`,
    unsent: 'Your message was not sent.',
  },
  day: { today: 'Today', yesterday: 'Yesterday' },
  failure: failureIn({
    unreachable: 'The server could not be reached. Check your connection.',
    garbled: (status) => `The server gave an answer that this page cannot read (status ${status}). Try again in a moment.`,
  }),
  leftBeforeSent: 'The page was closed before the server confirmed it. Sending again never asks twice.',
};

export type Strings = typeof en;

const de: Strings = {
  language: 'de',
  serverLanguage: 'en',
  skipToComposer: 'Zum Eingabefeld springen',
  conversation: 'Unterhaltung',
  title: (app, { answering, unread }) => {
    if (unread > 0) return `(${unread}) ${app}`;
    return answering ? `(antwortet) ${app}` : app;
  },
  menu: { label: 'Menü', conversation: 'Diese Unterhaltung', settings: 'Einstellungen' },
  theme: { label: 'Farben', auto: 'Wie das System', light: 'Hell', dark: 'Dunkel' },
  languages: { label: 'Sprache', auto: 'Wie der Browser', en: 'English', de: 'Deutsch' },
  notify: {
    label: 'Melden, wenn eine Antwort fertig ist',
    blocked: 'Benachrichtigungen sind blockiert. Erlaube sie in den Einstellungen deines Browsers.',
    ready: 'Deine Antwort ist fertig.',
    failed: (text) => `Es gibt keine Antwort. ${text}`,
  },
  download: { markdown: 'Als Markdown herunterladen', json: 'Als JSON herunterladen' },
  demo: {
    label: 'Demomodell',
    text: 'Es ist kein KI-Anbieter eingerichtet. Die Antworten entstehen aus den Dateien der Sandbox. Wie man einen anbindet, steht in README.',
  },
  dismiss: 'Ausblenden',
  close: 'Schließen',
  reload: 'Neu laden',
  banner: {
    connecting: 'Verbinde…',
    reconnecting: 'Verbinde erneut…',
    offline: 'Du bist offline. Was du schreibst, bleibt erhalten; Antworten gehen ohne dich weiter.',
    signedOut: 'Du bist abgemeldet. Lade die Seite neu, um dich wieder anzumelden.',
    noAccess: 'Du hast keinen Zugang mehr zu diesem Arbeitsbereich.',
    outdated: 'Diese Seite ist älter als der Server. Lade sie neu, um weiterzumachen.',
  },
  readOnly: 'Du kannst hier weiter lesen und kopieren. Was du geschrieben hast, bleibt in diesem Browser erhalten.',
  start: {
    connecting: 'Deine Unterhaltung wird geöffnet…',
    unreachable: 'Der Server antwortet noch nicht. Diese Seite versucht es weiter.',
    crashed: 'Auf dieser Seite ist ein Fehler aufgetreten. Deine Unterhaltung ist auf dem Server sicher; lade neu, um weiterzumachen.',
  },
  empty: {
    heading: (name) => `Frag ${name}`,
    text: 'Jede Antwort entsteht in deiner eigenen Sandbox. Du kannst diese Seite jederzeit schließen; die Antwort wartet hier.',
    examples: [
      'Welche Dateien siehst du?',
      'Zeig mir, was du in der Sandbox kannst.',
      'Schreib ein kleines Skript, das Wörter zählt, und führ es aus.',
    ],
  },
  composer: {
    label: (name) => `Nachricht an ${name}`,
    placeholder: (name) => `Frag ${name}…`,
    followUp: 'Frag weiter…',
    send: 'Senden',
    stop: 'Anhalten',
    stopping: 'Wird angehalten…',
    hint: 'Eingabe sendet, Umschalt+Eingabe beginnt eine neue Zeile, Escape hält an.',
    left: (chars) => `Noch ${count('de', chars, ['Zeichen', 'Zeichen'])}`,
    over: (chars) => `Deine Nachricht ist ${count('de', chars, ['Zeichen', 'Zeichen'])} zu lang.`,
  },
  you: 'Du',
  fromSlack: 'aus Slack',
  digest: 'Wochenrückblick',
  erased: 'Diese Nachricht wurde gelöscht.',
  status: {
    sending: 'Wird gesendet…',
    unsent: 'Nicht gesendet',
    queued: (place) => (place === 1 ? 'Wartet · als Nächstes' : `Wartet · Platz ${place}`),
    waiting: (name, position) => (position === null ? `Wartet, bis ${name} frei ist` : `Wartet, bis ${name} frei ist · Platz ${position}`),
    starting: 'Beginnt…',
    startingAgain: 'Unterbrochen. Beginnt erneut…',
    removed: 'Aus der Warteschlange genommen',
    stoppedWithoutAnswer: 'Vor einer Antwort angehalten',
  },
  answer: { thinking: 'Denkt nach…', stopped: 'Angehalten', failed: 'Keine Antwort' },
  unread: {
    marker: 'Neu',
    jump: (count) => (count === 1 ? '1 neue Antwort' : `${count} neue Antworten`),
  },
  actions: {
    sendAgain: 'Erneut senden',
    discard: 'Verwerfen',
    remove: 'Entfernen',
    removing: 'Wird entfernt…',
    tryAgain: 'Noch einmal versuchen',
    copy: 'Kopieren',
    copied: 'Kopiert',
    copyAnswer: 'Antwort kopieren',
    copyCode: 'Code kopieren',
    loadOlder: 'Ältere Nachrichten laden',
    loadingOlder: 'Ältere Nachrichten werden geladen…',
    olderFailed: 'Ältere Nachrichten konnten nicht geladen werden. Noch einmal versuchen',
    jumpToLatest: 'Zum Neuesten',
  },
  palette: { label: 'Befehle', placeholder: 'Was möchtest du tun?', none: 'Diesen Befehl gibt es nicht.' },
  commands: {
    palette: 'Alle Befehle zeigen',
    shortcuts: 'Tastenkürzel',
    write: 'Eine Nachricht schreiben',
    stop: 'Die Antwort anhalten',
    latest: 'Zur neuesten Nachricht springen',
    firstNew: 'Zur ersten neuen Antwort gehen',
    previousQuestion: 'Zur vorherigen Frage gehen',
    nextQuestion: 'Zur nächsten Frage gehen',
    copyLast: 'Die letzte Antwort kopieren',
    notifyOn: 'Benachrichtigungen einschalten',
    notifyOff: 'Benachrichtigungen ausschalten',
    setting: (label, choice) => `${label}: ${choice}`,
  },
  keys: { mod: 'Strg', alt: 'Alt', shift: 'Umschalt', enter: 'Eingabe', escape: 'Esc', up: '↑', down: '↓', end: 'Ende' },
  shortcuts: { send: 'Die Nachricht senden', newLine: 'Eine neue Zeile beginnen' },
  image: (alt) => (alt === '' ? 'Bild (öffnet einen neuen Tab)' : `Bild: ${alt}`),
  table: 'Tabelle',
  task: (done) => (done ? 'Erledigt' : 'Nicht erledigt'),
  notices: 'Hinweise',
  tooComplex: 'Dieser Text ist zu groß oder zu tief verschachtelt, um formatiert zu werden. Er wird gezeigt, wie er ist.',
  live: {
    started: (name) => `${name} antwortet.`,
    stage: (name, stage) => `${name}: ${stage}`,
    done: 'Die Antwort ist vollständig.',
    stopped: 'Die Antwort wurde angehalten.',
    failed: (text) => `Es gibt keine Antwort. ${text}`,
    unsent: 'Deine Nachricht wurde nicht gesendet.',
  },
  day: { today: 'Heute', yesterday: 'Gestern' },
  failure: failureIn({
    unreachable: 'Der Server ist nicht erreichbar. Prüfe deine Verbindung.',
    garbled: (status) => `Der Server gab eine Antwort, die diese Seite nicht lesen kann (Status ${status}). Versuch es gleich noch einmal.`,
  }),
  leftBeforeSent: 'Die Seite wurde geschlossen, bevor der Server es bestätigt hat. Erneutes Senden fragt nie doppelt.',
};

export const tables: Readonly<Record<Language, Strings>> = { en, de };

/** The words of this page. The language does not change while the page lives. */
export const t: Strings = tables[languageFor(savedLanguage(), navigator.languages ?? [navigator.language])];
