/**
 * An older piece of a conversation around one message, apart from its end: what it shows, how it grows and closes, and that a reconnection
 * reads it again. rule: R16 (what is read again is what the account may see now)
 */
import { expect } from 'chai';
import type { Entry, EntryPage } from '../../src/contract/web.ts';
import { rereadPages, rereadPlan } from '../../src/web/chat/sync.ts';
import type { ChatApi } from '../../src/web/net/api.ts';
import { gapBefore } from '../../src/web/store/islands.ts';
import { Client } from '../support/page-client.ts';
import { WebLedger } from '../support/page-ledger.ts';

/** A page at the end of a conversation of 100 entries, of which it has the newest ten. */
function scene() {
  const ledger = new WebLedger();
  for (let n = 1; n <= 50; n++) {
    ledger.ask(`q${n}`, `question ${n}`);
    ledger.claim();
    ledger.end('DONE', [`answer ${n}`]);
  }
  const { conversationId } = ledger;
  const client = new Client().act({ type: 'snapshot', snapshot: ledger.snapshot() });
  client.synced({ [conversationId]: ledger.page(undefined, 10) });
  const seqs = () =>
    Object.values(client.state.entries)
      .map(({ seq }) => seq)
      .sort((a, b) => a - b);
  const range = () => client.state.ranges[conversationId];
  const around = (seq: number, generation = client.state.generation) =>
    client.act({
      ...{ type: 'around-read', conversationId, generation },
      pages: { older: ledger.pageOf({ before: seq + 1, limit: 4 }), newer: ledger.pageOf({ after: seq, limit: 4 }) },
    });
  const newer = (limit: number) => {
    client.act({ type: 'newer-asked', conversationId });
    const page = ledger.pageOf({ after: range()?.island?.to ?? 0, limit });
    client.act({ type: 'newer-read', conversationId, generation: client.state.generation, page });
  };
  const older = (limit: number) => {
    client.act({ type: 'older-asked', conversationId });
    const page = ledger.page(range()?.island?.from ?? range()?.nextBefore ?? undefined, limit);
    client.act({ type: 'older-read', conversationId, generation: client.state.generation, page });
  };
  return { ledger, client, conversationId, seqs, range, around, newer, older };
}

const upTo = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => from + n);
const END = upTo(91, 100);

describe('an older piece of a conversation', () => {
  it('stands apart from its end, with a gap above the newest piece', () => {
    const { ledger, client, conversationId, seqs, range, around } = scene();
    around(40);
    expect(seqs()).to.deep.equal([...upTo(37, 44), ...END]);
    expect(range()).to.deep.equal({ nextBefore: 91, older: 'idle', island: { from: 37, to: 44, newer: 'idle' } });
    expect(gapBefore(client.state, conversationId)).to.equal(ledger.entries[90]?.id);
  });

  it('is a part of the newest piece at once when nothing lies between them', () => {
    const { client, conversationId, seqs, range, around } = scene();
    around(88);
    expect(seqs()).to.deep.equal(upTo(85, 100));
    expect(range()).to.deep.equal({ nextBefore: 85, older: 'idle' });
    expect(gapBefore(client.state, conversationId)).to.equal(null);
  });

  it('grows upwards and downwards, until the gap is closed', () => {
    const { seqs, range, around, newer } = scene();
    around(3);
    expect(range()?.island?.from, 'the beginning').to.equal(null);
    newer(60);
    expect(range()?.island).to.deep.equal({ from: null, to: 67, newer: 'idle' });
    newer(60);
    expect(seqs()).to.deep.equal(upTo(1, 100));
    expect(range()).to.deep.equal({ nextBefore: null, older: 'idle' });
    const other = scene();
    other.around(40);
    other.older(10);
    expect(other.range()).to.deep.equal({ nextBefore: 91, older: 'idle', island: { from: 27, to: 44, newer: 'idle' } });
  });

  it('makes way for one around another message, and goes when the person is back at the end', () => {
    const { client, conversationId, seqs, range, around } = scene();
    around(40);
    around(60);
    expect(seqs()).to.deep.equal([...upTo(57, 64), ...END]);
    client.act({ type: 'island-left', conversationId });
    expect(seqs()).to.deep.equal(END);
    expect(range()).to.deep.equal({ nextBefore: 91, older: 'idle' });
  });

  it('takes what the stream says about its messages, and no message from the gap', () => {
    const { ledger, client, seqs, around } = scene();
    around(40);
    for (const seq of [40, 70]) {
      const entry = ledger.entries[seq - 1] as Entry;
      ledger.vote(entry, 'up');
      client.act({ type: 'entry', entry: structuredClone(entry) });
    }
    expect(seqs()).to.deep.equal([...upTo(37, 44), ...END]);
    expect(client.state.entries[(ledger.entries[39] as Entry).id]?.vote).to.equal('up');
  });

  it('that is being read takes what the stream says meanwhile for newer than its pages, and keeps nothing else of it', () => {
    const { ledger, client, conversationId, seqs, range } = scene();
    const { generation } = client.state;
    client.act({ type: 'around-asked', conversationId });
    const pages = { older: ledger.pageOf({ before: 41, limit: 4 }), newer: ledger.pageOf({ after: 40, limit: 4 }) };
    for (const seq of [40, 43, 70]) {
      ledger.erase(ledger.entries[seq - 1] as Entry);
      client.act({ type: 'entry', entry: structuredClone(ledger.entries[seq - 1] as Entry) });
    }
    client.act({ type: 'around-read', conversationId, generation, pages });
    expect(seqs()).to.deep.equal([...upTo(37, 44), ...END]);
    const words = (seq: number) => client.state.entries[(ledger.entries[seq - 1] as Entry).id]?.text;
    expect([words(39), words(40), words(43)]).to.deep.equal(['question 20', '', '']);
    expect(range()).to.not.have.property('around');
    client.act({ type: 'around-asked', conversationId });
    client.act({ type: 'entry', entry: structuredClone(ledger.entries[69] as Entry) });
    client.act({ type: 'around-read', conversationId, generation, pages: null });
    expect(seqs(), 'nothing could be read').to.deep.equal([...upTo(37, 44), ...END]);
  });

  it('that was asked for before a reconnection is not believed, nor is a page behind it', () => {
    const { ledger, client, conversationId, seqs, range, around } = scene();
    const generation = client.state.generation;
    client.act({ type: 'snapshot', snapshot: ledger.snapshot() }).synced({ [conversationId]: ledger.page(undefined, 10) });
    around(40, generation);
    expect(seqs()).to.deep.equal(END);
    around(40);
    client.act({ type: 'newer-asked', conversationId });
    client.act({ type: 'newer-read', conversationId, generation, page: ledger.pageOf({ after: 44, limit: 4 }) });
    expect(range()?.island?.newer).to.equal('loading');
    client.act({ type: 'newer-read', conversationId, generation: client.state.generation, page: null });
    expect(range()?.island?.newer).to.equal('failed');
  });

  it('is read again after a snapshot, as it is then', async () => {
    const { ledger, client, seqs, range, around } = scene();
    around(40);
    ledger.erase(ledger.entries[39] as Entry);
    client.act({ type: 'snapshot', snapshot: ledger.snapshot() });
    const asked: unknown[] = [];
    const entries = async (_id: string, query: Parameters<ChatApi['entries']>[1]): Promise<{ ok: true; value: EntryPage }> => {
      asked.push(query);
      return { ok: true, value: ledger.pageOf({ ...query, limit: 6 }) };
    };
    const pages = await rereadPages({ entries } as unknown as ChatApi, rereadPlan(client.state));
    client.synced(pages ?? {});
    expect(seqs()).to.deep.equal([...upTo(37, 44), ...END]);
    expect(range()).to.deep.equal({ nextBefore: 91, older: 'idle', island: { from: 37, to: 44, newer: 'idle' } });
    expect(client.state.entries[(ledger.entries[39] as Entry).id]?.erasedAt).to.not.equal(null);
    expect(asked).to.have.length(4);
  });
});
