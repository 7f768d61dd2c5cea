/**
 * Owns: one conversation of the stand-in server: its rows, the answers that it writes little by little, what it tells the streams.
 */
import { failureTexts } from '../../actors/failure-texts.ts';
import type { Conversation, Entry, Turn, WebSearchResponse } from '../../src/contract/web.ts';
import { systemClock, type Timer } from '../../src/kernel/clock.ts';
import { showcase } from './fake-web-answers.ts';
import { type LedgerEvent, type ThreadParent, WebLedger } from './page-ledger.ts';

/** What is in a question -> what happens to it. Anything else is answered with a piece of everything. */
const scripts = ['#fail', '#hold', '#retry', '#gap', '#short'] as const;

export class FakeConversation {
  /** When it is, for what is written now; milliseconds since the epoch. */
  nowMs = Date.now();
  readonly ledger: WebLedger;
  readonly #say: (event: string, data: object) => void;
  #told = 0;
  #loop: Timer | null = null;

  constructor(say: (event: string, data: object) => void, parent: ThreadParent | null = null) {
    this.#say = say;
    this.ledger = new WebLedger(() => new Date(this.nowMs).toISOString(), parent);
  }

  turn(id: string | undefined): Turn | undefined {
    return this.ledger.turns.find((turn) => turn.id === id);
  }

  entry(id: string | undefined): Entry | undefined {
    return this.ledger.entries.find((entry) => entry.id === id);
  }

  describe(): Conversation {
    return this.ledger.conversation();
  }

  close(): void {
    this.#loop?.cancel();
  }

  /** What was written until now is no news. */
  keepQuiet(): void {
    this.#told = this.ledger.log.length;
  }

  /** Tells every stream what the ledger has logged since the last time. */
  tell(): void {
    for (; this.#told < this.ledger.log.length; this.#told++) {
      const event = this.ledger.log[this.#told];
      if (event !== undefined) this.#say(event.type, dataOf(event));
    }
  }

  /** Runs the next question, if none runs, and writes its answer little by little. */
  work(): void {
    this.nowMs = Date.now();
    this.ledger.claim();
    this.tell();
    const turn = this.ledger.running;
    if (turn === undefined || this.#loop !== null) return;
    const question = this.entry(turn.questionEntryId)?.text ?? '';
    const script = scripts.find((word) => question.includes(word));
    const words = (script === '#short' ? showcase.short : showcase.everything).match(/\S+\s*|\n/g) ?? [];
    let tick = 0;
    const done = (change: () => void) => {
      this.#loop?.cancel();
      this.#loop = null;
      this.nowMs = Date.now();
      change();
      this.tell();
      systemClock.after(1_000, () => this.work());
    };
    this.#loop = systemClock.every(90, () => {
      tick += 1;
      const stage = tick >= 8 && tick < 14 ? 'Reading the repository…' : 'Thinking…';
      if (turn.status !== 'RUNNING') return done(() => this.ledger.endStopped(words.slice(0, (tick - 14) * 4).join('') || null));
      this.ledger.write(tick < 14 ? '' : words.slice((tick - 14) * 4, (tick - 13) * 4).join(''), stage);
      // One report that never reaches the viewers.
      if (script === '#gap' && tick === 25) this.keepQuiet();
      this.tell();
      if (script === '#fail' && tick === 24) return done(() => this.ledger.end('FAILED', [], failureOf(question)));
      if (script === '#retry' && tick === 30 && turn.attempt === 1) return done(() => this.ledger.requeue('lost'));
      const finished = (tick - 14) * 4 > words.length && script !== '#hold';
      if (finished) done(() => this.ledger.end('DONE', [words.join('')]));
    });
  }
}

/** Messages that say this, the newest first; a search of a stand-in, which knows no words and no ranks. */
export function findWords(conversations: readonly FakeConversation[], words: string, hitsMax: number): WebSearchResponse {
  const wanted = words.toLowerCase();
  const entries = conversations.flatMap(({ ledger }) => ledger.entries).filter(({ text }) => text.toLowerCase().includes(wanted));
  entries.sort((a, b) => (a.createdAt < b.createdAt ? 1 : -1));
  const hits = entries.slice(0, hitsMax).map(({ id, conversationId, kind, createdAt, text }) => {
    const from = Math.max(0, text.toLowerCase().indexOf(wanted) - 60);
    const excerpt = text.slice(from, from + 240);
    const start = excerpt.toLowerCase().indexOf(wanted);
    return { entryId: id, conversationId, kind, createdAt, excerpt, matches: [{ start, end: start + wanted.length }] };
  });
  return { hits, truncated: entries.length > hitsMax };
}

/** `#fail BUDGET` fails as a spent budget does; without a code it is a fault of the reply. */
function failureOf(question: string): { code: string; text: string } {
  const { refusals, ...failures } = failureTexts('Hephaestus');
  const all = [...Object.values(failures), ...Object.entries(refusals).map(([code, text]) => ({ code, text }))];
  return all.find(({ code }) => question.includes(`#fail ${code}`)) ?? failures.error;
}

function dataOf(event: LedgerEvent): object {
  switch (event.type) {
    case 'turn':
      return event.turn;
    case 'entry':
      return event.entry;
    case 'partial':
      return event.partial;
    case 'read':
      return { conversationId: event.conversationId, lastReadAt: event.lastReadAt };
  }
}
