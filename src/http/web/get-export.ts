/**
 * `GET …/mentor/export?format=json|markdown&conversationId=`: a whole conversation of the asking account as a file.
 * It is streamed page by page: memory does not grow with the conversation, and a reader who is slow or gone reads no further page.
 */
import { Readable } from 'node:stream';
import { z } from 'zod';
import { exportPages, readExportHead } from '../../../db/web/read-export.ts';
import { type ExportFormat, exportFormatSchema } from '../../contract/web.ts';
import { requireMember } from '../auth/authenticator.ts';
import { parseInput, pathId } from '../input.ts';
import { param, type Route } from '../route.ts';
import { NO_CONVERSATION, noConversation, type WebDeps } from './deps.ts';
import { exportJson } from './export-json.ts';
import { exportMarkdown, localTimes } from './export-markdown.ts';

const exportQuerySchema = z.object({ format: exportFormatSchema });

const FILES = {
  json: { type: 'application/json; charset=utf-8', extension: 'json', write: exportJson },
  markdown: { type: 'text/markdown; charset=utf-8', extension: 'md', write: exportMarkdown },
} as const satisfies Record<ExportFormat, unknown>;

export function getExport({ db, authenticator, session }: WebDeps): Route {
  return {
    method: 'GET',
    path: '/workspaces/:slug/mentor/export',
    async handle(ctx) {
      const member = await requireMember(ctx, authenticator, db);
      const { format } = parseInput(exportQuerySchema, ctx.query);
      const { conversationId: asked } = ctx.query;
      const id = asked === undefined ? null : pathId<'conversation'>(String(asked), 'CONVERSATION_NOT_FOUND', NO_CONVERSATION);
      const head = await readExportHead(db, member, id);
      if (!head) throw noConversation();
      const { type, extension, write } = FILES[format];
      const day = localTimes(head.timeZone).of(head.exportedAt).slice(0, 10);
      ctx.set('Content-Disposition', `attachment; filename="heph-${param(ctx, 'slug')}-${day}.${extension}"`);
      ctx.set('Content-Type', type);
      ctx.status = 200;
      if (ctx.method === 'HEAD') return;
      ctx.body = Readable.from(write(head, exportPages(db, member, head), session.assistantName), { objectMode: false, highWaterMark: 1 });
    },
  };
}
