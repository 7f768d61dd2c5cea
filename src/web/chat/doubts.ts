/**
 * Owns: asking the ledger about turns that the stream leaves in doubt (store/turns.ts says which), one at a time.
 */
import { type Clock, pause } from '../../kernel/clock.ts';
import type { ChatApi } from '../net/api.ts';
import { backoffMs } from '../net/event-stream.ts';
import type { ChatAction, ChatState } from '../store/state.ts';

/** Reads of one turn under one snapshot before it is left alone until the next. */
const triesMax = 3;

export interface DoubtPorts {
  api: Pick<ChatApi, 'turn'>;
  clock: Clock;
  random(): number;
  state(): ChatState;
  dispatch(action: ChatAction): void;
}

export class DoubtResolver {
  readonly #ports: DoubtPorts;
  readonly #tries = new Map<string, number>();
  #generation = 0;
  #busy = false;

  constructor(ports: DoubtPorts) {
    this.#ports = ports;
  }

  /** Asks until no doubt is left that can be resolved now. Returns at once while that is under way. */
  async resolve(): Promise<void> {
    if (this.#busy) return;
    this.#busy = true;
    for (let turnId = this.#next(); turnId !== null; turnId = this.#next()) await this.#ask(turnId);
    this.#busy = false;
  }

  #next(): string | null {
    const { doubts, generation, sync } = this.#ports.state();
    if (generation !== this.#generation) this.#tries.clear();
    this.#generation = generation;
    // The pages that are being read settle most doubts by themselves.
    if (sync !== null) return null;
    return doubts.find((turnId) => (this.#tries.get(turnId) ?? 0) < triesMax) ?? null;
  }

  async #ask(turnId: string): Promise<void> {
    const { api, clock, random, dispatch } = this.#ports;
    const tries = (this.#tries.get(turnId) ?? 0) + 1;
    this.#tries.set(turnId, tries);
    const generation = this.#generation;
    const result = await api.turn(turnId);
    if (result.ok) return dispatch({ type: 'turn-read', turnId, turn: result.value, generation });
    const gone = result.failure.kind === 'problem' && result.failure.problem.status === 404;
    if (gone) return dispatch({ type: 'turn-read', turnId, turn: null, generation });
    await pause(clock, backoffMs(tries, random()));
  }
}
