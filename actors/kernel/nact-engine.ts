/**
 * Owns: the only contact with nact 7.6.2, reduced to four verbs that were found to be sound.
 * Rules: (1) actors live directly under the system, because a parent's message costs a copy of all its children and stopping a parent
 * leaves zombies; (2) names are generated, unique per activation; (3) never shutdownAfter, query, onCrash, reset or escalate: each loses
 * messages or runs two handlers at once; (4) a turn given to `spawn` never rejects; (5) `stop` only when nothing is pending.
 */
import type { ActorSystemRef } from 'nact';
import nact from 'nact';

declare const carries: unique symbol;
/** nact's own `Ref<T>` has no members, so that any value is assignable to it; this one carries its message type. */
export interface EngineRef<Message> {
  readonly [carries]: (message: Message) => void;
}

export class NactEngine {
  readonly #system: ActorSystemRef = nact.start();
  #spawned = 0;

  /** An actor that runs `turn` for one message at a time, in the order of dispatch. `owner` is handed to each turn. */
  spawn<Owner, Message>(owner: Owner, turn: (owner: Owner, message: Message) => Promise<Owner>): EngineRef<Message> {
    this.#spawned += 1;
    const ref = nact.spawn(this.#system, turn, `a${this.#spawned}`, { initialState: owner });
    return ref as unknown as EngineRef<Message>;
  }

  /** A message to a stopped actor is lost without a trace: call it only in the synchronous block that found the actor alive. */
  dispatch<Message>(ref: EngineRef<Message>, message: Message): void {
    nact.dispatch(ref, message);
  }

  stop(ref: EngineRef<never>): void {
    nact.stop(ref);
  }

  /** Forgets the system. nact does not stop its children: stop each of them before. */
  close(): void {
    nact.stop(this.#system);
  }
}
