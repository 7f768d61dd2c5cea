/**
 * Owns: proof of what is new to a person, where the mark stands, and that the marker only moves forward.
 */
import { expect } from 'chai';
import { timeline } from '../../src/web/store/timeline.ts';
import { markedItem, nextVisit, unreadIn, type Visit } from '../../src/web/store/unread.ts';
import { connected } from '../support/page-client.ts';
import { WebLedger } from '../support/page-ledger.ts';

/** Questions that were answered, a minute each; the answer of the n-th one came at minute n. */
function talk(answers: number): { ledger: WebLedger; at(minute: number): string; answerNext(): void } {
  let minute = 0;
  const at = (n: number) => `2026-10-08T07:${String(n).padStart(2, '0')}:00.000Z`;
  const ledger = new WebLedger(() => at(minute));
  const answerNext = () => {
    ledger.ask(`q${minute}`, `question ${minute + 1}`);
    ledger.claim();
    minute += 1;
    ledger.end('DONE', [`answer ${minute}`]);
  };
  for (let n = 0; n < answers; n++) answerNext();
  return { ledger, at, answerNext };
}

describe('what is new to a person', () => {
  const itemsOf = (ledger: WebLedger) => {
    const { state } = connected(ledger);
    return timeline(state, state.mainId);
  };
  const wordsOf = (ledger: WebLedger, id: string | null) => {
    const item = itemsOf(ledger).find((candidate) => candidate.id === id);
    return item?.kind === 'answer' ? item.text : null;
  };

  it('are the answers after the read marker: none at its time, one a moment before it', () => {
    const { ledger, at } = talk(3);
    const items = itemsOf(ledger);
    expect(unreadIn(items, at(3))).to.include({ count: 0, newestAt: at(3) });
    expect(unreadIn(items, '2026-10-08T07:02:59.999Z').count).to.equal(1);
    expect(unreadIn(items, null).count, 'nothing was ever read').to.equal(3);
    expect(unreadIn([], null)).to.deep.equal({ count: 0, newestAt: null, askedAt: null });
  });

  it('is not an answer that is being written, or one that was deleted', () => {
    const { ledger, at } = talk(2);
    ledger.ask('next', 'and now?');
    ledger.claim();
    ledger.write('Half a');
    const second = ledger.entries.find((entry) => entry.text === 'answer 2');
    if (second !== undefined) ledger.erase(second);
    expect(unreadIn(itemsOf(ledger), at(1)).count).to.equal(0);
  });

  it('is marked where they left off, also after they have read it, and until they ask on', () => {
    const { ledger, at, answerNext } = talk(3);
    const look = (visit: Visit | null, reading: boolean, lastReadAt: string | null) => {
      return nextVisit(visit, unreadIn(itemsOf(ledger), lastReadAt), { reading, lastReadAt });
    };
    let visit = look(null, false, at(1));
    expect(wordsOf(ledger, markedItem(itemsOf(ledger), visit))).to.equal('answer 2');
    visit = look(visit, true, at(3));
    expect(wordsOf(ledger, markedItem(itemsOf(ledger), visit)), 'while they read').to.equal('answer 2');
    visit = look(visit, false, at(3));
    expect(wordsOf(ledger, markedItem(itemsOf(ledger), visit)), 'when they scroll up again').to.equal('answer 2');
    answerNext();
    answerNext();
    expect(look(visit, true, at(5)), 'after their next question').to.equal(null);
  });

  it('moves on when more comes while they are away, and has no mark when another device has read it', () => {
    const { ledger, at, answerNext } = talk(2);
    const away = (visit: Visit | null, lastReadAt: string) =>
      nextVisit(visit, unreadIn(itemsOf(ledger), lastReadAt), { reading: false, lastReadAt });
    let visit = away(null, at(2));
    expect(markedItem(itemsOf(ledger), visit)).to.equal(null);
    answerNext();
    visit = away(visit, at(2));
    answerNext();
    visit = away(visit, at(2));
    expect(wordsOf(ledger, markedItem(itemsOf(ledger), visit))).to.equal('answer 3');
    answerNext();
    visit = away(visit, at(4));
    expect(wordsOf(ledger, markedItem(itemsOf(ledger), visit))).to.equal('answer 5');
  });

  it('gets no mark when it comes before their eyes', () => {
    const { ledger, at, answerNext } = talk(1);
    answerNext();
    expect(nextVisit(null, unreadIn(itemsOf(ledger), at(1)), { reading: true, lastReadAt: at(1) })).to.equal(null);
  });
});

describe('the read marker', () => {
  it('is moved by the other devices, and never back by an event that comes late', () => {
    const { ledger, at } = talk(3);
    const client = connected(ledger);
    const marker = () => client.state.conversations[ledger.conversationId]?.lastReadAt;
    const read = (lastReadAt: string | null) => client.act({ type: 'read', conversationId: ledger.conversationId, lastReadAt });
    read(at(3));
    read(at(2));
    read(null);
    expect(marker()).to.equal(at(3));
  });
});
