/** `PATCH …/mentor/turns/{turnId}/status` {status: "STOPPED"}: stops a turn. Stopping a stopped turn says so again. */
import { readTurnOf } from '../../../db/web/read-turns.ts';
import { LIMITS } from '../../contract/limits.ts';
import { patchTurnStatusRequestSchema, type Turn } from '../../contract/web.ts';
import { RuntimeFault } from '../../kernel/faults.ts';
import { requireMember } from '../auth/authenticator.ts';
import { readJsonBody } from '../body.ts';
import { parseInput, pathId } from '../input.ts';
import { param, type Route } from '../route.ts';
import { NO_TURN, type WebDeps, withStage } from './deps.ts';

export function patchTurnStatus({ runtime, db, authenticator, stages }: WebDeps): Route {
  return {
    method: 'PATCH',
    path: '/workspaces/:slug/mentor/turns/:turnId/status',
    async handle(ctx) {
      const member = await requireMember(ctx, authenticator, db);
      const turnId = pathId<'turn'>(param(ctx, 'turnId'), 'TURN_NOT_FOUND', NO_TURN);
      parseInput(patchTurnStatusRequestSchema, await readJsonBody(ctx, { maxBytes: LIMITS.webBodyMaxBytes }));
      const reply = await runtime.stopTurn(member, turnId);
      const turn = reply.kind === 'no-turn' ? null : await readTurnOf(db, member, turnId);
      if (!turn) throw new RuntimeFault('TURN_NOT_FOUND', NO_TURN);
      if (reply.kind === 'already-ended' && turn.status !== 'STOPPED') throw alreadyEnded(turn);
      ctx.body = withStage(turn, stages);
    },
  };
}

function alreadyEnded({ status }: Turn): RuntimeFault {
  const text = `The turn ended before it could be stopped; its status is ${status}. There is nothing left to stop.`;
  return new RuntimeFault('TURN_ALREADY_ENDED', text, { extra: { turnStatus: status } });
}
