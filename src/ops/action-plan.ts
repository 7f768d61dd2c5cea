/**
 * Owns: what an action of an operator would do to what is there, as pure functions: the preview, and whether it is refused.
 * Does not own: doing it (operator-actions.ts). The statements fence it again by run and epoch.
 */
import type { TurnFacts } from '../../db/ops/turn-facts.ts';
import { LIMITS } from '../contract/limits.ts';
import type { TurnAction } from '../contract/operators.ts';
import { phaseOf } from './stuck.ts';

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
    case 'release':
      return planRelease(phase, facts);
  }
}

/** The same as what the reaper does to a lease that ran out, so it costs the same (rule R9); also where a requeue is refused. */
function planRelease(phase: ReturnType<typeof phaseOf>, { attempt, deadline_ms }: TurnFacts): Plan {
  const yes = (effect: string): Plan => ({ allowed: true, effect });
  const taken = 'Its lease is taken back and its sandbox ends; its slot is free at once.';
  if (phase === 'queued') return { allowed: false, effect: 'No attempt of the turn is leased, so there is no lease to take back.' };
  if (phase === 'stopping') return yes(`${taken} It stays STOPPED, without the words that its loop has not handed in yet.`);
  if ((deadline_ms ?? 0) <= 0) return yes(`${taken} Its time is over: the turn FAILS, and its person is told so.`);
  if (attempt >= LIMITS.attemptsMax)
    return yes(`${taken} This was its last attempt (${attempt} of ${LIMITS.attemptsMax}): the turn FAILS, and its person is told so.`);
  return yes(`${taken} It costs one attempt: the turn waits again for its second and last one.`);
}

const SURFACE = 'surface:';
const SURFACES = { app: 'the web chat', slack: 'Slack' } as const;

/** The target of a pause of one surface, as the log has it. No slug has a colon. */
export const surfaceTarget = (surface: 'app' | 'slack'): string => SURFACE + surface;

/** null: it is no surface's. */
export function surfaceOf(target: string): 'app' | 'slack' | null {
  const name = target.startsWith(SURFACE) ? target.slice(SURFACE.length) : null;
  return name === 'app' || name === 'slack' ? name : null;
}

function placeName(where: string): string {
  const surface = surfaceOf(where);
  if (surface !== null) return SURFACES[surface];
  return where === 'installation' ? 'the installation' : `the workspace ${where}`;
}

export interface PauseScope {
  readonly queued: number;
  readonly running: number;
  readonly paused: boolean;
}

/** `where`: a workspace's slug, `surface:…`, or `installation`. */
export function planPause(action: 'pause-claims' | 'resume-claims', where: string, scope: PauseScope): Plan {
  const place = placeName(where);
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

/** `state`: of the action in the outbox. The trigger `outbox_action_step` has the same steps. */
export function planOutbox(decision: 'sent' | 'again', state: string, channel: string): Plan {
  if (decision === 'sent') {
    if (state !== 'UNCERTAIN')
      return { allowed: false, effect: `The action is ${state}; only one that is UNCERTAIN can be marked as sent.` };
    return { allowed: true, effect: `The action counts as SENT: you have seen it in ${channel}. What waits behind it there goes on.` };
  }
  if (!['UNCERTAIN', 'PARKED', 'DEAD'].includes(state))
    return { allowed: false, effect: `The action is ${state}; only one that is UNCERTAIN, PARKED or DEAD can be sent again.` };
  const twice = state === 'UNCERTAIN' ? ' If it is there already, people read it twice: look first.' : '';
  return { allowed: true, effect: `The action is sent to ${channel} again.${twice}` };
}

export function planReveal(place: { readonly kind: string; readonly bytes: number; readonly erased: boolean }): Plan {
  if (place.erased) return { allowed: false, effect: 'The entry is erased, or its person asked for that. Nobody can read it any more.' };
  return {
    allowed: true,
    effect: `You read the words of a person or of a model (${place.kind}, ${place.bytes} bytes). The log says that you did, and why.`,
  };
}

/** `role` null: it is taken back. */
export function planRole(was: string | null, role: string | null): Plan {
  if (was === role) return { allowed: false, effect: `It is ${role ?? 'no operator'} already.` };
  if (role === null)
    return { allowed: true, effect: `The role ${was} is taken back, from the next request on. A membership with the role operator stays.` };
  return { allowed: true, effect: `It is ${role} of the whole installation, from the next request on.` };
}
