/**
 * `POST …/mentor/questions`: a question becomes a durable turn; the same requestId gives the same rows again.
 * The text is normalised before it is judged, so that what is counted is what is stored and shown.
 */
import type { SubmitReply } from '../../../actors/index.ts';
import { readEntries } from '../../../db/web/read-entries.ts';
import { readTurns } from '../../../db/web/read-turns.ts';
import { LIMITS } from '../../contract/limits.ts';
import { type PageContext, postQuestionRequestSchema, type QuestionResponse } from '../../contract/web.ts';
import { RuntimeFault } from '../../kernel/faults.ts';
import type { ConversationId } from '../../kernel/ids.ts';
import { codePoints, isBlank, wellFormed } from '../../kernel/text.ts';
import { requireMember } from '../auth/authenticator.ts';
import { readJsonBody } from '../body.ts';
import { parseInput } from '../input.ts';
import type { Route } from '../route.ts';
import { noConversation, personErased, type WebDeps, withStage } from './deps.ts';

export function postQuestion(deps: WebDeps): Route {
  return {
    method: 'POST',
    path: '/workspaces/:slug/mentor/questions',
    async handle(ctx) {
      const member = await requireMember(ctx, deps.authenticator, deps.db);
      const request = parseInput(postQuestionRequestSchema, await readJsonBody(ctx, { maxBytes: LIMITS.webBodyMaxBytes }));
      const reply = await deps.runtime.submitQuestion({
        ...member,
        conversationId: (request.conversationId as ConversationId | undefined) ?? null,
        requestId: request.requestId,
        surface: 'app',
        text: questionText(request.text),
        page: request.page ? wellFormedPage(request.page) : null,
      });
      ctx.status = 202;
      ctx.body = await readQuestion(deps, accepted(reply, deps));
    },
  };
}

function wellFormedPage({ url, title, selection }: PageContext): PageContext {
  const words = selection === undefined || isBlank(selection) ? {} : { selection: wellFormed(selection) };
  return { url: wellFormed(url), title: wellFormed(title), ...words };
}

/** The text as it is stored. Throws TEXT_EMPTY or TEXT_TOO_LONG. */
function questionText(sent: string): string {
  const text = wellFormed(sent);
  if (isBlank(text)) throw new RuntimeFault('TEXT_EMPTY', 'The question has no words. Write something and send it again.');
  if (codePoints(text) <= LIMITS.questionMaxChars) return text;
  const limit = LIMITS.questionMaxChars.toLocaleString('en');
  const extra = { maxChars: LIMITS.questionMaxChars };
  throw new RuntimeFault('TEXT_TOO_LONG', `A question may have at most ${limit} characters. Shorten it and send it again.`, { extra });
}

function accepted(reply: SubmitReply, { session }: WebDeps): Extract<SubmitReply, { kind: 'accepted' }> {
  switch (reply.kind) {
    case 'accepted':
      return reply;
    case 'full': {
      const limit = session.maxFollowUps;
      const text = `This conversation has ${limit} questions that wait, which is the limit. Wait for an answer or stop a waiting question.`;
      throw new RuntimeFault('FOLLOW_UPS_FULL', text, { retry: 'later', extra: { maxFollowUps: limit } });
    }
    case 'request-id-reused':
      throw new RuntimeFault('REQUEST_ID_REUSED', 'This requestId was used for another text. Send the question with a new requestId.');
    case 'no-conversation':
    case 'disconnected': // never of a question from the app
      throw noConversation();
    case 'person-erased':
      throw personErased();
  }
}

/** What the write did not say is read: all of a repeat's rows, and why a turn waits. */
async function readQuestion({ db, stages }: WebDeps, reply: ReturnType<typeof accepted>): Promise<QuestionResponse> {
  const [entry, turn] = await Promise.all([
    reply.written?.entry ?? readEntries(db, [reply.entryId]).then(([one]) => one),
    reply.written?.turn ?? readTurns(db, [reply.turnId]).then(([one]) => one),
  ]);
  if (entry && turn) return { entry, turn: withStage(turn, stages) };
  throw new RuntimeFault('INTERNAL', 'The question was stored and cannot be shown now. Load the page again.', { retry: 'same' });
}
