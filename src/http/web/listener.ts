/**
 * Owns: the web listener: for people, their browsers and their programs.
 */
import type { Log } from '../../kernel/log.ts';
import { signInRoutes } from '../auth/routes.ts';
import { createApp, type RequestObserver, type Route } from '../route.ts';
import { securityHeaders } from '../security-headers.ts';
import { createServer, type HttpListener } from '../server.ts';
import { SLACK_EVENTS_PATH } from '../slack/post-events.ts';
import { slackRoutes } from '../slack/routes.ts';
import { deleteEntry } from './delete-entry.ts';
import type { WebDeps } from './deps.ts';
import { serveEmbed } from './embed.ts';
import { getConversation } from './get-conversation.ts';
import { getEntries } from './get-entries.ts';
import { getEntry } from './get-entry.ts';
import { getEvents } from './get-events.ts';
import { getExport } from './get-export.ts';
import { getOpenApi } from './get-openapi.ts';
import { getOwnConversation } from './get-own-conversation.ts';
import { getSearch } from './get-search.ts';
import { getSession } from './get-session.ts';
import { getThreads } from './get-threads.ts';
import { getTurn } from './get-turn.ts';
import { servePage } from './page.ts';
import { patchTurnStatus } from './patch-turn-status.ts';
import { postQuestion } from './post-question.ts';
import { postThread } from './post-thread.ts';
import { putAiChoice } from './put-ai-choice.ts';
import { putConversationRead, putRead } from './put-read.ts';
import { putVote } from './put-vote.ts';

export interface WebListenerOptions extends WebDeps {
  /** Folder of the built page (dist/web). */
  readonly pageFolder: string;
  /** Origins of other sites that may show the panel; none by default. */
  readonly embedOrigins?: readonly string[];
  readonly connectionsMax: number;
  readonly log: Log;
  readonly observe?: RequestObserver;
}

const IDLE_TIMEOUT_MS = 120_000;

/** Every route of the web wire. */
export function webRoutes(deps: WebDeps): readonly Route[] {
  return [
    getSession(deps),
    postQuestion(deps),
    getConversation(deps),
    getOwnConversation(deps),
    getEntries(deps),
    getThreads(deps),
    postThread(deps),
    getTurn(deps),
    patchTurnStatus(deps),
    putRead(deps),
    putConversationRead(deps),
    putAiChoice(deps),
    putVote(deps),
    getEntry(deps),
    deleteEntry(deps),
    getSearch(deps),
    getEvents(deps),
    getExport(deps),
    getOpenApi(),
    ...signInRoutes(deps),
    ...slackRoutes(deps),
  ];
}

export function createWebListener(options: WebListenerOptions): HttpListener {
  const { authenticator, log, observe, pageFolder, connectionsMax, embedOrigins = [] } = options;
  const app = createApp({
    log,
    observe,
    routes: webRoutes(options),
    before: [
      securityHeaders,
      async (ctx, next) => {
        if (ctx.path !== SLACK_EVENTS_PATH) authenticator.admit(ctx); // a delivery has its signature, and comes by any name
        if (!authenticator.greet?.(ctx)) await next();
      },
      serveEmbed(pageFolder, embedOrigins),
    ],
    otherwise: servePage(pageFolder),
  });
  return createServer({ callback: app.callback(), portVariable: 'HEPH_PORT', connectionsMax, idleTimeoutMs: IDLE_TIMEOUT_MS });
}
