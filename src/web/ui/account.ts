/**
 * Owns: what a person can do about their account here: sign out, and choose whether an AI model may work for them.
 */
import { signOut } from '../net/api.ts';
import { forgetSettings } from '../settings.ts';
import { t } from '../strings.ts';
import type { Page } from './context.ts';

/** Ends the session of this browser, and takes along what it has kept of the person's words. */
export async function leave({ controller, session }: Page, signOutUrl: string): Promise<void> {
  const result = await signOut(signOutUrl);
  if (!result.ok) return controller.notice.set(t.failure(result.failure));
  controller.stop();
  forgetSettings((name) => name.startsWith('heph.') && name.includes(session.account.id));
  location.assign(result.value.issuerSignOutUrl ?? '/');
}

/** Shows at once, and falls back when the server refuses. Returns why it did, for the person; empty when it did not. */
export async function chooseAi({ api, aiAllowed }: Page, allowed: boolean): Promise<string> {
  const before = aiAllowed.get();
  aiAllowed.set(allowed);
  const result = await api.chooseAi(allowed);
  aiAllowed.set(result.ok ? result.value.allowed : before);
  return result.ok ? '' : t.failure(result.failure);
}
