/**
 * Owns: a conversation as JSON, written piece by piece: an entry a line, so that a large file is still easy to look at.
 */
import type { ExportedEntry, ExportHead } from '../../../db/web/read-export.ts';
import type { Export } from '../../contract/web.ts';

/** Pieces of one JSON document that is an `Export`. */
export async function* exportJson(
  head: ExportHead,
  pages: AsyncIterable<readonly ExportedEntry[]>,
  assistantName: string,
): AsyncGenerator<string> {
  const { workspaceName: workspace, displayName, timeZone, exportedAt, conversationId, createdAt } = head;
  const about: Omit<Export, 'entries'> = {
    assistantName,
    workspace,
    account: { displayName, timeZone },
    conversation: { id: conversationId, createdAt },
    exportedAt,
  };
  yield `${JSON.stringify(about).slice(0, -1)},"entries":[`;
  let separator = '\n';
  for await (const page of pages) {
    let piece = '';
    for (const { entry, turn } of page) {
      piece += separator + JSON.stringify({ ...entry, turn } satisfies Export['entries'][number]);
      separator = ',\n';
    }
    yield piece;
  }
  yield '\n]}\n';
}
