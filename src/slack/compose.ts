/**
 * Owns: the words of a message: of a turn that has ended, and the fixed ones. The only place that holds them.
 */
import type { Saying } from '../../db/slack/outbox.ts';
import { LIMITS } from '../contract/limits.ts';
import { fitMessage } from './fit.ts';

/** What a person is told without a turn. */
export type Notice = 'WELCOME' | 'LINK' | 'NO_MEMBER' | 'AI_CHOICE' | 'FULL' | 'TOO_LONG' | 'PERSON_ERASED' | 'FILE_ONLY' | 'FILE_LEFT_OUT';

export interface Voice {
  readonly assistantName: string;
  /** Where people open the app. */
  readonly appUrl: string;
  /** The address that links a user to an account; it names the notice that offers it. */
  linkUrl(actionId: string): string;
}

/** The message of an action, or null when there is nothing to say any more. */
export function compose(action: { readonly id: string; readonly saying: Saying }, voice: Voice): string | null {
  const { saying } = action;
  if (saying.kind === 'nothing') return null;
  if (saying.kind === 'notice') return noticeText(saying.notice as Notice, action.id, voice);
  if (saying.kind === 'digest') return `Your weekly digest is here. Read it in the app: ${voice.appUrl}`;
  const note = `_This answer is longer than a Slack message. The full answer is in the app: ${voice.appUrl}_`;
  const words = saying.answers.join('\n\n');
  switch (saying.status) {
    case 'DONE':
      return fitMessage(words, note);
    case 'STOPPED':
      return fitMessage(
        words === '' ? '_Stopped before there was an answer._' : `${words}\n\n_Stopped here._`,
        `${note}\n\n_Stopped here._`,
      );
    case 'FAILED':
      return fitMessage(saying.error ?? `${voice.assistantName} could not finish this reply. Try again.`, note);
  }
}

const ABOUT_THE_LINK = 'The link is for you alone, serves once and ends in an hour.';
const count = new Intl.NumberFormat('en');

function noticeText(notice: Notice, actionId: string, { assistantName, appUrl, linkUrl }: Voice): string {
  switch (notice) {
    case 'WELCOME':
      return `Hello, I am ${assistantName}. <${linkUrl(actionId)}|Link your account>, then ask me something here. ${ABOUT_THE_LINK}`;
    case 'LINK':
      return `I do not know yet who you are. <${linkUrl(actionId)}|Link your account>, then ask again. ${ABOUT_THE_LINK}`;
    case 'NO_MEMBER':
      return 'Your account does not belong to the workspace that this Slack team is connected to. Ask an administrator to add you.';
    case 'AI_CHOICE':
      return `AI is switched off for you in this workspace, so ${assistantName} did not start this reply. Ask an administrator to switch it on.`;
    case 'FULL':
      return `Too many of your questions wait for an answer. Wait for one, or stop one in the app: ${appUrl}`;
    case 'TOO_LONG':
      return `A question may have at most ${count.format(LIMITS.questionMaxChars)} characters. Shorten it and send it again.`;
    case 'FILE_ONLY':
      return 'I cannot read files yet, and did not keep this one. Write your question as a message.';
    case 'FILE_LEFT_OUT':
      return 'I cannot read files yet: I answer your words alone, and did not keep the file.';
    case 'PERSON_ERASED':
      return 'The personal data of this account is being erased, so nothing new is stored.';
  }
}
