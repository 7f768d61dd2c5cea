/** `GET …/mentor/turns/{turnId}`: one turn. */
import { readTurnOf } from '../../../db/web/read-turns.ts';
import { RuntimeFault } from '../../kernel/faults.ts';
import { requireMember } from '../auth/authenticator.ts';
import { pathId } from '../input.ts';
import { param, type Route } from '../route.ts';
import { NO_TURN, type WebDeps, withStage } from './deps.ts';

export function getTurn({ db, authenticator, stages }: WebDeps): Route {
  return {
    method: 'GET',
    path: '/workspaces/:slug/mentor/turns/:turnId',
    async handle(ctx) {
      const member = await requireMember(ctx, authenticator, db);
      const turn = await readTurnOf(db, member, pathId<'turn'>(param(ctx, 'turnId'), 'TURN_NOT_FOUND', NO_TURN));
      if (!turn) throw new RuntimeFault('TURN_NOT_FOUND', NO_TURN);
      ctx.body = withStage(turn, stages);
    },
  };
}
