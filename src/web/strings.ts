/**
 * Owns: every word that the page itself says. A second language is a second table of the same type; nothing else changes.
 * Does not own: words of the server (problem details, failures of turns, warnings), which are shown as they come.
 */
import type { ApiFailure } from './net/api.ts';

export interface Strings {
  language: string;
  skipToComposer: string;
  conversation: string;
  title(app: string, state: 'answering' | 'answered' | 'idle'): string;
  theme: { label: string; auto: string; light: string; dark: string };
  demo: { label: string; text: string };
  dismiss: string;
  reload: string;
  banner: {
    connecting: string;
    reconnecting: string;
    offline: string;
    signedOut: string;
    noAccess: string;
    outdated: string;
  };
  start: { connecting: string; unreachable: string; crashed: string };
  empty: { heading(name: string): string; text: string; examples: readonly string[] };
  composer: {
    label(name: string): string;
    placeholder(name: string): string;
    followUp(name: string): string;
    send: string;
    stop: string;
    stopping: string;
    hint: string;
    left(chars: number): string;
    over(chars: number): string;
  };
  you: string;
  fromSlack: string;
  digest: string;
  erased: string;
  status: {
    sending: string;
    unsent: string;
    queued(place: number): string;
    waiting(name: string, position: number | null): string;
    starting: string;
    startingAgain: string;
    removed: string;
    stoppedWithoutAnswer: string;
  };
  answer: { thinking: string; stopped: string; failed: string };
  actions: {
    sendAgain: string;
    discard: string;
    remove: string;
    removing: string;
    tryAgain: string;
    copy: string;
    copied: string;
    copyAnswer: string;
    copyCode: string;
    loadOlder: string;
    loadingOlder: string;
    olderFailed: string;
    jumpToLatest: string;
  };
  image(alt: string): string;
  table: string;
  task(done: boolean): string;
  notices: string;
  tooComplex: string;
  live: {
    started(name: string): string;
    stage(name: string, stage: string): string;
    done: string;
    stopped: string;
    failed(text: string): string;
    unsent: string;
  };
  day: { today: string; yesterday: string };
  failure(failure: ApiFailure): string;
  leftBeforeSent: string;
}

function failureEn(failure: ApiFailure): string {
  switch (failure.kind) {
    case 'unreachable':
      return 'The server could not be reached. Check your connection.';
    case 'garbled':
      return `The server gave an answer that this page cannot read (status ${failure.status}). Try again in a moment.`;
    case 'problem':
      return failure.problem.detail || failure.problem.title;
  }
}

function characters(count: number): string {
  return `${count.toLocaleString('en')} ${count === 1 ? 'character' : 'characters'}`;
}

const en: Strings = {
  language: 'en',
  skipToComposer: 'Skip to the message box',
  conversation: 'Conversation',
  title: (app, state) => ({ answering: `(answering) ${app}`, answered: `(answered) ${app}`, idle: app })[state],
  theme: { label: 'Colours', auto: 'As the system', light: 'Light', dark: 'Dark' },
  demo: {
    label: 'Demo model',
    text: 'No AI provider is configured. Answers are made up from the files of the sandbox. See README to connect one.',
  },
  dismiss: 'Dismiss',
  reload: 'Reload',
  banner: {
    connecting: 'Connecting…',
    reconnecting: 'Reconnecting…',
    offline: 'You are offline. What you write is kept; answers go on without you.',
    signedOut: 'You are signed out. Reload the page to sign in again.',
    noAccess: 'You no longer have access to this workspace.',
    outdated: 'This page is older than the server. Reload it to go on.',
  },
  start: {
    connecting: 'Opening your conversation…',
    unreachable: 'The server does not answer yet. This page keeps trying.',
    crashed: 'This page ran into a fault of its own. Your conversation is safe on the server; reload to go on.',
  },
  empty: {
    heading: (name) => `Ask ${name}`,
    text: 'Each answer is worked out in a sandbox of your own. You can close this page at any time; the answer will be here.',
    examples: ['What files can you see?', 'Show me what you can do in the sandbox.', 'Write a small script that counts words, and run it.'],
  },
  composer: {
    label: (name) => `Message to ${name}`,
    placeholder: (name) => `Ask ${name}…`,
    followUp: () => 'Ask a follow-up…',
    send: 'Send',
    stop: 'Stop',
    stopping: 'Stopping…',
    hint: 'Enter sends, Shift+Enter starts a new line, Escape stops.',
    left: (chars) => `${characters(chars)} left`,
    over: (chars) => `Your message is ${characters(chars)} too long.`,
  },
  you: 'You',
  fromSlack: 'from Slack',
  digest: 'Weekly digest',
  erased: 'This message was deleted.',
  status: {
    sending: 'Sending…',
    unsent: 'Not sent',
    queued: (place) => (place === 1 ? 'Queued · next' : `Queued · place ${place}`),
    waiting: (name, position) => (position === null ? `Waiting for a free ${name}` : `Waiting for a free ${name} · place ${position}`),
    starting: 'Starting…',
    startingAgain: 'Interrupted. Starting again…',
    removed: 'Removed from the queue',
    stoppedWithoutAnswer: 'Stopped before an answer',
  },
  answer: { thinking: 'Thinking…', stopped: 'Stopped', failed: 'No answer' },
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
  image: (alt) => (alt === '' ? 'Image (opens in a new tab)' : `Image: ${alt}`),
  table: 'Table',
  task: (done) => (done ? 'Done' : 'Not done'),
  notices: 'Notices',
  tooComplex: 'This text is too large or too deeply nested to be formatted. It is shown as it is.',
  live: {
    started: (name) => `${name} is answering.`,
    stage: (name, stage) => `${name}: ${stage}`,
    done: 'The answer is complete.',
    stopped: 'The answer was stopped.',
    failed: (text) => `There is no answer. ${text}`,
    unsent: 'Your message was not sent.',
  },
  day: { today: 'Today', yesterday: 'Yesterday' },
  failure: failureEn,
  leftBeforeSent: 'The page was closed before the server confirmed it. Sending again never asks twice.',
};

const tables = { en } satisfies Record<string, Strings>;

/** The words of this page. One language so far; the choice between tables belongs here. */
export const t: Strings = tables.en;
