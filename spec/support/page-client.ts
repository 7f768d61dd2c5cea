/**
 * Owns: the page's state, fed by hand, and what it shows in the notation of `WebLedger.lines`.
 */
import { reduce } from '../../src/web/store/reducer.ts';
import { type ChatAction, type ChatState, EMPTY_STATE } from '../../src/web/store/state.ts';
import { type TimelineItem, timeline } from '../../src/web/store/timeline.ts';
import type { WebLedger } from './page-ledger.ts';

function lineOf(item: TimelineItem): string {
  if (item.kind === 'failure') return `x ${item.text}`;
  if (item.kind === 'answer') return item.phase === 'live' ? `~ ${item.text}` : `! ${item.text} [${item.phase}]`;
  const { status } = item;
  return `? ${item.text} [${status.kind === 'queued' ? `queued ${status.place}` : status.kind}]`;
}
/** What the page shows, one line for each message. */
export const linesOf = (state: ChatState, conversationId = state.mainId): string[] => timeline(state, conversationId).map(lineOf);

/** A page that is fed by hand. */
export class Client {
  state = EMPTY_STATE;

  act(...actions: ChatAction[]): this {
    for (const action of actions) this.state = reduce(this.state, action);
    return this;
  }

  /** Connects and reads at once. */
  connect(ledger: WebLedger): this {
    return this.act({ type: 'snapshot', snapshot: ledger.snapshot() }).read(ledger);
  }

  read(ledger: WebLedger): this {
    return this.synced(ledger.entries.length === 0 ? {} : { [ledger.conversationId]: ledger.page() });
  }

  synced(pages: Extract<ChatAction, { type: 'synced' }>['pages']): this {
    return this.act({ type: 'synced', generation: this.state.generation, pages });
  }

  /** The person presses Send. */
  send(requestId: string, text: string, threadId: string | null = null): this {
    return this.act({
      type: 'ask',
      question: { requestId, threadId, text, askedAt: '2026-10-08T07:12:03.120Z', phase: 'sending', reason: null },
    });
  }

  /** The ledger answers every question about a turn in doubt. */
  resolve(...ledgers: readonly WebLedger[]): this {
    for (const turnId of this.state.doubts) {
      const turn = structuredClone(ledgers.flatMap(({ turns }) => turns).find((candidate) => candidate.id === turnId) ?? null);
      this.act({ type: 'turn-read', turnId, turn, generation: this.state.generation });
    }
    return this;
  }
}

/** A page that is open and up to date. */
export const connected = (ledger: WebLedger): Client => new Client().connect(ledger);
