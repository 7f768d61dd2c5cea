/**
 * Owns: that a broken observer cannot break an actor. Does not own: metrics.
 */
import type { Log } from '../../src/kernel/log.ts';
import type { KernelObserver } from './types.ts';

/** The same observer, whose exceptions are logged and go no further. Without an observer: one that does nothing. */
export function guardObserver(observer: KernelObserver | undefined, log: Log): KernelObserver {
  const guarded = (report: (to: KernelObserver) => void): void => {
    if (observer === undefined) return;
    try {
      report(observer);
    } catch (error) {
      log.error('actor.observer_failed', {}, error);
    }
  };
  return {
    commandHandled: (kind, type, timing) => guarded((to) => to.commandHandled(kind, type, timing)),
    activated: (kind, loadMs) => guarded((to) => to.activated(kind, loadMs)),
    passivated: (kind, reason) => guarded((to) => to.passivated(kind, reason)),
    crashed: (kind, errorKind) => guarded((to) => to.crashed(kind, errorKind)),
    refused: (kind, reason) => guarded((to) => to.refused(kind, reason)),
    overran: (kind, type) => guarded((to) => to.overran(kind, type)),
  };
}
