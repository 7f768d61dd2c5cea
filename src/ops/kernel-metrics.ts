/**
 * Owns: the actor kernel's observer: each command is timed, each activation, passivation, crash, refusal and overrun is counted.
 */
import { Counter, Histogram, type Registry } from 'prom-client';
import type { KernelObserver } from '../../actors/index.ts';
import { SHORT_SECONDS } from './buckets.ts';

export function createKernelObserver(registry: Registry): KernelObserver {
  const registers = [registry];
  const histogram = <L extends string>(name: string, help: string, labelNames: L[]) =>
    new Histogram({ name, help, labelNames, registers, buckets: SHORT_SECONDS });
  const counter = <L extends string>(name: string, help: string, labelNames: L[]) => new Counter({ name, help, labelNames, registers });
  const wait = histogram('heph_actor_command_wait_seconds', 'Time of a command in its mailbox.', ['kind']);
  const work = histogram('heph_actor_command_work_seconds', 'Time of a command at work, its load included.', [
    'kind',
    'command',
    'outcome',
  ]);
  const activation = histogram('heph_activation_seconds', 'Time to rebuild an actor from its rows.', ['kind']);
  const passivations = counter('heph_actor_passivations_total', 'States that left memory.', ['kind', 'reason']);
  const crashes = counter('heph_actor_crashes_total', 'Loads, handlers and callbacks that threw.', ['kind', 'error']);
  const refusals = counter('heph_actor_refusals_total', 'Commands that were refused.', ['kind', 'reason']);
  const overruns = counter('heph_actor_overruns_total', 'Commands that ran longer than their bound.', ['kind', 'command']);
  return {
    commandHandled(kind, command, { waitMs, workMs, outcome }) {
      wait.observe({ kind }, waitMs / 1_000);
      work.observe({ kind, command, outcome }, workMs / 1_000);
    },
    activated: (kind, loadMs) => activation.observe({ kind }, loadMs / 1_000),
    passivated: (kind, reason) => passivations.inc({ kind, reason }),
    crashed: (kind, error) => crashes.inc({ kind, error }),
    refused: (kind, reason) => refusals.inc({ kind, reason }),
    overran: (kind, command) => overruns.inc({ kind, command }),
  };
}
