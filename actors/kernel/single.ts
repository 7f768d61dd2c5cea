/**
 * Owns: an actor without an id, built from a kind that has exactly one.
 */
import type { ActorKind, AnyCommand, AskOptions, KindStats, SingleActor } from './types.ts';

export function singleActor<Command extends AnyCommand, Reply, Kind extends string>(
  kind: ActorKind<Command, Reply, Kind>,
): SingleActor<Command, Reply, Kind> {
  const self = kind.address(kind.name);
  return {
    name: kind.name,
    get stats(): KindStats {
      return kind.stats;
    },
    ask: (command: Command, options?: AskOptions) => kind.ask(self, command, options),
    tell: (command: Command) => kind.tell(self, command),
  };
}
