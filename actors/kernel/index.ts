/**
 * The door of the actor kernel. `actors/<actor>` and `actors/index.ts` import from here and from nowhere else in this folder.
 */
export { ActorSystem, type ActorSystemOptions } from './system.ts';
export type {
  ActorKind,
  ActorState,
  ActorView,
  Address,
  AnyCommand,
  AskOptions,
  Behaviour,
  CommandContext,
  CommandTiming,
  DropReason,
  KernelObserver,
  KindOptions,
  KindStats,
  RefusalReason,
  SingleActor,
  SingleOptions,
} from './types.ts';
