/**
 * Owns: the small pages of the sign-in. They need no script and no style, and say nothing that came from an issuer.
 */
import type Koa from 'koa';
import type { SignInRefusal } from '../../contract/people.ts';

export interface SmallPage {
  readonly status: number;
  /** A stable word for programs and specs, in `data-reason`. */
  readonly reason: string;
  readonly title: string;
  readonly text: string;
  readonly links: readonly { readonly href: string; readonly label: string }[];
  readonly signOut?: boolean;
  /** Asks for one thing, with a button. */
  readonly form?: { readonly action: string; readonly fields: Readonly<Record<string, string>>; readonly button: string };
}

const RETRY_AFTER_S = 5;
const AGAIN = { href: '/auth/login', label: 'Sign in again' };
const HOME = { href: '/', label: 'Open the chat' };

export const REFUSALS: Readonly<Record<SignInRefusal, SmallPage>> = {
  expired: {
    ...{ status: 400, reason: 'expired', title: 'This sign-in is over', links: [AGAIN, HOME] },
    text: 'It was used already, took longer than ten minutes, or began in another browser.',
  },
  denied: {
    ...{ status: 403, reason: 'denied', title: 'You are not signed in', links: [AGAIN] },
    text: 'The identity provider did not let you in, or you said no there.',
  },
  invalid: {
    ...{ status: 502, reason: 'invalid', title: 'The sign-in failed', links: [AGAIN] },
    text: 'The identity provider sent something that is not valid. If it happens again, tell the operator of this installation.',
  },
  unreachable: {
    ...{ status: 503, reason: 'unreachable', title: 'The identity provider does not answer', links: [AGAIN] },
    text: 'Nothing is wrong with your account. Try again in a moment.',
  },
  erased: {
    ...{ status: 410, reason: 'erased', title: 'This account is being erased', links: [] },
    text: 'Its personal data is being erased, as somebody asked. Nobody can sign in to it any more.',
  },
};

/** For somebody who is signed in and was invited nowhere. */
export const NO_ACCESS: SmallPage = {
  ...{ status: 200, reason: 'no-access', title: 'No access yet', links: [HOME], signOut: true },
  text: 'You are signed in, but belong to no workspace. Ask the operator of this installation to add you; then open the chat.',
};

/** `issuerUrl`: where to sign out at the issuer, too. */
export function signedOutPage(issuerUrl: string | null): SmallPage {
  const there = issuerUrl === null ? [] : [{ href: issuerUrl, label: 'Sign out at the identity provider, too' }];
  return {
    status: 200,
    reason: 'signed-out',
    title: 'You are signed out',
    text: 'This browser is signed out of Heph.',
    links: [...there, AGAIN],
  };
}

export function answerPage(ctx: Koa.Context, { status, reason, title, text, links, signOut, form: asked }: SmallPage): void {
  const items = links.map(({ href, label }) => `<p><a href="${escapeHtml(href)}">${escapeHtml(label)}</a></p>`);
  if (asked) items.push(formOf(asked));
  const form = signOut ? ['<form method="post" action="/auth/logout"><button>Sign out</button></form>'] : [];
  ctx.status = status;
  if (status === 503) ctx.set('Retry-After', String(RETRY_AFTER_S));
  ctx.type = 'html';
  // So that the form's Origin is ours: without a referrer a browser would send "null".
  ctx.set('Referrer-Policy', 'same-origin');
  ctx.body = `<!doctype html>
<html lang="en" data-reason="${reason}">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark"><title>${title}</title></head>
<body><main><h1>${title}</h1><p>${text}</p>${[...items, ...form].join('')}</main></body>
</html>
`;
}

function formOf({ action, fields, button }: NonNullable<SmallPage['form']>): string {
  const hidden = Object.entries(fields).map(
    ([name, value]) => `<input type="hidden" name="${escapeHtml(name)}" value="${escapeHtml(value)}">`,
  );
  return `<form method="post" action="${escapeHtml(action)}">${hidden.join('')}<button>${escapeHtml(button)}</button></form>`;
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
