/**
 * The only door of the actors. main.ts builds the tree; HTTP routes use the types.
 */
export type { FailureTexts, TurnFailure } from './failure-texts.ts';
export { failureTexts } from './failure-texts.ts';
export type { ActorView, CommandTiming, DropReason, KernelObserver, RefusalReason } from './kernel/index.ts';
export { OUTBOX_TIMES, type OutboxOptions } from './outbox/index.ts';
export type * from './ports.ts';
export type * from './runtime.ts';
export { type Actors, type ActorsDeps, createActors } from './tree.ts';
