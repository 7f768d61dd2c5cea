/**
 * Owns: the commands that make sense now, and their keys.
 */
import { useContext, useEffect, useSyncExternalStore } from 'react';
import { LANGUAGE_CHOICES, savedLanguage, saveLanguage } from '../language.ts';
import { exportUrl } from '../net/api.ts';
import { hrefOf } from '../route.ts';
import type { ThreadSummary } from '../store/threads.ts';
import type { AnswerItem, TimelineItem } from '../store/timeline.ts';
import { runningTurn } from '../store/timeline.ts';
import { t } from '../strings.ts';
import { leave } from './account.ts';
import type { Command } from './commands.ts';
import { type Page, useChat, usePage } from './context.ts';
import { ThreadsContext, useThreadId } from './conversation.ts';
import { isCovered, matches, SHORTCUTS } from './shortcuts.ts';
import { chooseTheme, THEMES, theme } from './theme.ts';
import { nearestQuestion } from './travel.ts';
import type { Follow } from './use-follow.ts';
import { MARK_CLASS } from './use-reading.ts';

interface Around {
  items: readonly TimelineItem[];
  follow: Follow;
  /** The mark of what is new is in the conversation. */
  marked: boolean;
  openPalette(): void;
  openSearch(): void;
  openShortcuts(): void;
}

export function focusComposer(): void {
  document.getElementById('composer-input')?.focus();
}

/** Loads the page anew in another language. Drafts and unsent questions are kept. */
export function chooseLanguage(choice: (typeof LANGUAGE_CHOICES)[number]): void {
  saveLanguage(choice);
  location.reload();
}

function download(url: string): void {
  const link = document.createElement('a');
  link.href = url;
  link.download = '';
  link.click();
}

/** Where the person goes inside the conversation. */
function travelCommands({ items, follow, marked }: Around): Command[] {
  if (items.length === 0) return [];
  const travel = (direction: 'up' | 'down') => () => {
    const question = nearestQuestion(follow, direction);
    if (question !== null) follow.show(question);
    else if (direction === 'down') follow.toEnd();
  };
  const toMark = () => {
    const mark = follow.content.current?.getElementsByClassName(MARK_CLASS)[0];
    if (mark !== undefined) follow.show(mark);
  };
  return [
    { id: 'latest', label: t.commands.latest, shortcut: SHORTCUTS.latest, run: follow.toEnd },
    ...(marked ? [{ id: 'firstNew', label: t.commands.firstNew, run: toMark }] : []),
    { id: 'previousQuestion', label: t.commands.previousQuestion, shortcut: SHORTCUTS.previousQuestion, run: travel('up') },
    { id: 'nextQuestion', label: t.commands.nextQuestion, shortcut: SHORTCUTS.nextQuestion, run: travel('down') },
  ];
}

function settingCommands(): Command[] {
  const themes = THEMES.filter((choice) => choice !== theme.get()).map((choice) => ({
    id: `theme-${choice}`,
    label: t.commands.setting(t.theme.label, t.theme[choice]),
    run: () => chooseTheme(choice),
  }));
  const languages = LANGUAGE_CHOICES.filter((choice) => choice !== savedLanguage()).map((choice) => ({
    id: `language-${choice}`,
    label: t.commands.setting(t.languages.label, t.languages[choice]),
    run: () => chooseLanguage(choice),
  }));
  return [...themes, ...languages];
}

function copyLast(items: readonly TimelineItem[]): Command[] {
  const last = items.findLast((item): item is AnswerItem => item.kind === 'answer' && item.entryId !== null && item.text !== '');
  if (last === undefined) return [];
  return [{ id: 'copyLast', label: t.commands.copyLast, run: () => void navigator.clipboard?.writeText(last.text).catch(() => undefined) }];
}

/** Threads that can be gone to by their words; the list in the header has them all. */
const threadCommandsMax = 10;

function threadCommands(
  navigation: Page['navigation'],
  { threadId, threads }: { threadId: string | null; threads: readonly ThreadSummary[] },
): Command[] {
  const back = threadId === null ? [] : [{ id: 'toMain', label: t.commands.toMain, run: () => navigation.open(null) }];
  const others = threads.filter(({ id, title }) => id !== threadId && title !== '').slice(0, threadCommandsMax);
  return [...back, ...others.map(({ id, title }) => ({ id, label: `${t.thread.one}: ${title}`, run: () => navigation.open(id) }))];
}

function accountCommands(page: Page, me: ReturnType<Page['me']['get']>): Command[] {
  if (me === null) return [];
  const others = me.workspaces.filter(({ slug }) => slug !== page.session.workspace.slug);
  const workspaces = others.map(({ slug, name }) => ({
    id: `workspace-${slug}`,
    label: t.account.switchTo(name),
    run: () => location.assign(hrefOf({ workspace: slug, threadId: null })),
  }));
  const { signOutUrl } = me;
  if (signOutUrl === null) return workspaces;
  return [...workspaces, { id: 'signOut', label: t.account.signOut, run: () => void leave(page, signOutUrl) }];
}

export function useCommands(around: Around): readonly Command[] {
  const page = usePage();
  const { controller, session, notifier, navigation, host } = page;
  const { items, openPalette, openSearch, openShortcuts } = around;
  const threadId = useThreadId();
  const threads = useContext(ThreadsContext).list;
  const me = useSyncExternalStore(page.me.subscribe, page.me.get);
  const runningId = useChat((state) => runningTurn(state, threadId ?? state.mainId)?.id ?? null);
  const hasConversation = useChat((state) => state.mainId !== null);
  const notify = useSyncExternalStore(notifier.state.subscribe, notifier.state.get);
  const { slug } = session.workspace;
  const stop: Command[] =
    runningId === null
      ? []
      : [
          {
            ...{ id: 'stop', label: t.commands.stop, run: () => void controller.stopTurn(runningId) },
            // In a panel Escape leads back to the page around it, and must not stop an answer on the way.
            ...(host === null ? { shortcut: SHORTCUTS.stop } : {}),
          },
        ];
  const downloads: Command[] = !hasConversation
    ? []
    : (['markdown', 'json'] as const).map((format) => ({
        id: `download-${format}`,
        label: t.download[format],
        run: () => download(exportUrl(slug, format, threadId)),
      }));
  const notices: Command[] =
    notify === 'unsupported' || host !== null
      ? []
      : [
          {
            id: 'notify',
            label: notify === 'off' ? t.commands.notifyOn : t.commands.notifyOff,
            run: () => void notifier.turn(notify === 'off'),
          },
        ];
  return [
    { id: 'write', label: t.commands.write, shortcut: SHORTCUTS.write, run: focusComposer },
    ...stop,
    ...travelCommands(around),
    ...copyLast(items),
    ...threadCommands(navigation, { threadId, threads }),
    { id: 'search', label: t.commands.search, shortcut: SHORTCUTS.search, run: openSearch },
    ...downloads,
    ...notices,
    ...settingCommands(),
    ...(host === null ? accountCommands(page, me) : []),
    { id: 'shortcuts', label: t.commands.shortcuts, shortcut: SHORTCUTS.shortcuts, run: openShortcuts },
    { id: 'palette', label: t.commands.palette, shortcut: SHORTCUTS.palette, run: openPalette },
  ];
}

/** Runs the command whose keys are pressed, wherever the focus is; nothing while a dialog or a menu is open. */
export function useShortcuts(commands: readonly Command[]): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.isComposing || event.defaultPrevented || isCovered()) return;
      const command = commands.find(({ shortcut }) => shortcut !== undefined && matches(shortcut, event));
      if (command === undefined) return;
      event.preventDefault();
      command.run();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, [commands]);
}
