/** `GET /auth/no-access`: the page for somebody who is signed in and belongs to no workspace. */
import type { Route } from '../route.ts';
import { answerPage, NO_ACCESS } from './pages.ts';

export const NO_ACCESS_PATH = '/auth/no-access';

export function getNoAccess(): Route {
  return { method: 'GET', path: NO_ACCESS_PATH, handle: (ctx) => answerPage(ctx, NO_ACCESS) };
}
