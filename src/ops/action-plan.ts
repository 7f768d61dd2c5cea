/**
 * Owns: what an action of an operator would do to what is there, as pure functions: the preview, and whether it is refused.
 * Does not own: doing it (operator-actions.ts). The statements fence it again by run and epoch.
 */
import type { TurnFacts } from '../../db/ops/turn-facts.ts';
import { LIMITS } from '../contract/limits.ts';
import type { OperatorActionName } from '../contract/operators.ts';
import { phaseOf } from './stuck.ts';

export type TurnAction = Extract<OperatorActionName, 'stop' | 'requeue' | 'skip'>;
export type Note = Readonly<Record<string, string | number | boolean | null>>;

export interface Plan {
  readonly allowed: boolean;
  readonly effect: string;
}

/** What is written down of a turn before and after. */
export function noteOf(facts: TurnFacts): Note {
  return { status: facts.status, attempt: facts.attempt, epoch: facts.epoch, run: facts.run_state, error: facts.error_code };
}

const GRACE_S = LIMITS.stopGraceMs / 1_000;

export function planTurnAction(action: TurnAction, facts: TurnFacts): Plan {
  const phase = phaseOf(facts);
  const no = (effect: string): Plan => ({ allowed: false, effect });
  const yes = (effect: string): Plan => ({ allowed: true, effect });
  if (phase === 'ended') return no(`The turn has ended (${facts.status}). Nothing can be done to it.`);
  switch (action) {
    case 'stop':
      if (phase === 'stopping') return no('The turn is being stopped already.');
      if (phase === 'queued') return yes('The turn is STOPPED and never runs. Those behind it move up.');
      return yes(`The turn is STOPPED. What is written so far is kept, if its loop ends within ${GRACE_S} s.`);
    case 'skip':
      if (phase !== 'queued') return no('The turn does not wait. Stop it, or requeue it first.');
      return yes(
        `The turn fails without ${facts.attempt === 0 ? 'an' : 'another'} attempt, and its person is told so. Those behind it move up.`,
      );
    case 'requeue':
      if (phase !== 'running') return no('No attempt of the turn runs, so there is none to take back.');
      if (facts.attempt >= LIMITS.attemptsMax)
        return no(`This is its last attempt (${facts.attempt} of ${LIMITS.attemptsMax}): taken back, it would fail. Stop it instead.`);
      if ((facts.deadline_ms ?? 0) <= 0) return no('Its time is over: taken back, it would fail. It ends by itself.');
      return yes('Its sandbox ends, what the attempt wrote is dropped, and the turn waits again for its second and last attempt.');
  }
}

export interface PauseScope {
  readonly queued: number;
  readonly running: number;
  readonly paused: boolean;
}

/** `where`: a workspace's slug, or `installation`. */
export function planPause(action: 'pause-claims' | 'resume-claims', where: string, scope: PauseScope): Plan {
  const place = where === 'installation' ? 'the installation' : `the workspace ${where}`;
  if (action === 'pause-claims') {
    if (scope.paused) return { allowed: false, effect: `Claims of ${place} are paused already.` };
    return {
      allowed: true,
      effect: `No turn of ${place} starts until claims are resumed: ${scope.queued} wait, ${scope.running} that run go on.`,
    };
  }
  if (!scope.paused) return { allowed: false, effect: `Claims of ${place} are not paused.` };
  return { allowed: true, effect: `Turns of ${place} start again within a second: ${scope.queued} wait.` };
}

export function planDrain(draining: boolean): Plan {
  if (draining) return { allowed: false, effect: 'This server drains already.' };
  return { allowed: true, effect: 'This server takes nothing new, hands its running turns on to others, and ends.' };
}
