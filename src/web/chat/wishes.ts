/**
 * Owns: the requests for what a person wants done to one message: begin a thread at it, vote on it, delete it.
 * Does not own: what is shown meanwhile (store/wishes.ts).
 */
import type { Entry } from '../../contract/web.ts';
import { uuidv7 } from '../../kernel/ids.ts';
import type { ApiFailure, ChatApi } from '../net/api.ts';
import type { ChatAction, ChatState, Vote } from '../store/state.ts';

export interface WishPorts {
  api: Pick<ChatApi, 'beginThread' | 'vote' | 'erase'>;
  state(): ChatState;
  dispatch(action: ChatAction): void;
  /** A failure that the person must know; null: the last one is old news. */
  tell(failure: ApiFailure | null): void;
}

export class Wishes {
  readonly #ports: WishPorts;
  /** Parent -> requestId of a beginning that got no answer: the same request again begins no second thread. */
  readonly #beginnings = new Map<string, string>();
  /** Entry -> its votes, one after the other, so that the last one wins in the ledger, too. */
  readonly #votes = new Map<string, Promise<void>>();

  constructor(ports: WishPorts) {
    this.#ports = ports;
  }

  /** The id of the thread at this message; null when it could not be begun. */
  async beginThread(parentEntryId: string): Promise<string | null> {
    const { api, dispatch, tell } = this.#ports;
    const requestId = this.#beginnings.get(parentEntryId) ?? uuidv7();
    this.#beginnings.set(parentEntryId, requestId);
    tell(null);
    const result = await api.beginThread({ requestId, parentEntryId });
    if (!result.ok) {
      tell(result.failure);
      return null;
    }
    this.#beginnings.delete(parentEntryId);
    dispatch({ type: 'thread-begun', thread: result.value });
    return result.value.id;
  }

  /** @param vote null takes it back */
  vote(entryId: string, vote: Vote): Promise<void> {
    this.#ports.tell(null);
    this.#ports.dispatch({ type: 'vote-asked', entryId, vote });
    const voted = (this.#votes.get(entryId) ?? Promise.resolve()).then(() => this.#sendVote(entryId, vote));
    this.#votes.set(entryId, voted);
    return voted.then(() => {
      if (this.#votes.get(entryId) === voted) this.#votes.delete(entryId);
    });
  }

  async #sendVote(entryId: string, vote: Vote): Promise<void> {
    const result = await this.#ports.api.vote(entryId, vote);
    this.#ports.dispatch({ type: 'vote-answered', entryId, vote, entry: result.ok ? result.value : null });
    if (!result.ok) this.#ports.tell(result.failure);
  }

  /** Deletes a message for good. Whether it happened. */
  async erase(entryId: string): Promise<boolean> {
    const { api, state, dispatch, tell } = this.#ports;
    if (state().erasing.includes(entryId)) return false;
    tell(null);
    dispatch({ type: 'erase-asked', entryId });
    const result = await api.erase(entryId);
    const entry: Entry | null = result.ok ? result.value : null;
    dispatch({ type: 'erase-answered', entryId, entry });
    if (!result.ok) tell(result.failure);
    return result.ok;
  }
}
