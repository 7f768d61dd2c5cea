/**
 * Owns: where in the chat a page is, as its URL says: `/?workspace=<slug>&thread=<id>`. A query and no fragment, because the query survives
 * a sign-in, and an anchor inside of an answer (a footnote) must not leave the thread.
 */
import { slugSchema } from '../contract/people.ts';
import { isUuid } from '../kernel/ids.ts';

export interface Route {
  /** null: the account's first workspace. */
  readonly workspace: string | null;
  /** null: the main conversation. */
  readonly threadId: string | null;
}

/** What is no slug or no id is as if it were not there. */
export function parseRoute(search: string): Route {
  const query = new URLSearchParams(search);
  const workspace = slugSchema.safeParse(query.get('workspace'));
  const threadId = query.get('thread');
  return { workspace: workspace.success ? workspace.data : null, threadId: threadId !== null && isUuid(threadId) ? threadId : null };
}

export function hrefOf({ workspace, threadId }: Route): string {
  const query = new URLSearchParams({ ...(workspace === null ? {} : { workspace }), ...(threadId === null ? {} : { thread: threadId }) });
  return query.size === 0 ? '/' : `/?${query}`;
}
