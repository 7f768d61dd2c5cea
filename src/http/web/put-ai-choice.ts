/** `PUT …/mentor/ai-choice` {allowed}: whether an AI model may work for this person in this workspace, from the next turn that starts. */
import { chooseAi } from '../../../db/models/members.ts';
import { LIMITS } from '../../contract/limits.ts';
import { type AiChoice, aiChoiceSchema } from '../../contract/web.ts';
import { requireMember, workspaceNotFound } from '../auth/authenticator.ts';
import { readJsonBody } from '../body.ts';
import { parseInput } from '../input.ts';
import type { Route } from '../route.ts';
import { personErased, type WebDeps } from './deps.ts';

export function putAiChoice({ db, authenticator }: WebDeps): Route {
  return {
    method: 'PUT',
    path: '/workspaces/:slug/mentor/ai-choice',
    async handle(ctx) {
      const member = await requireMember(ctx, authenticator, db);
      const { allowed } = parseInput(aiChoiceSchema, await readJsonBody(ctx, { maxBytes: LIMITS.webBodyMaxBytes }));
      const chosen = await chooseAi(db, member, allowed);
      if (chosen === 'erased') throw personErased();
      if (chosen === 'no-member') throw workspaceNotFound();
      ctx.body = { allowed } satisfies AiChoice;
    },
  };
}
