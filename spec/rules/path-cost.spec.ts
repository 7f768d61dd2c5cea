/**
 * What the context of a turn costs PostgreSQL in a long conversation: after a summary, as much as in a short one.
 */
import { expect } from 'chai';
import { explain } from '../../db/bench/explain.ts';
import { BenchRows } from '../../db/bench/rows.ts';
import { readConversationFacts } from '../../db/context/conversation-facts.ts';
import { readTurnFacts } from '../../db/context/read-facts.ts';
import { readPath } from '../../db/context/read-path.ts';
import { readContextRequest } from '../../db/context/read-request.ts';
import { reconcileSlots } from '../../db/ledger/slots.ts';
import { LIMITS } from '../../src/contract/limits.ts';
import type { ConversationId, RunId } from '../../src/kernel/ids.ts';
import { useDatabase } from '../support/database.ts';
import { emptyLedger, makeHost, makePerson } from '../support/ledger.ts';
import { begin, piAnswer, piSummary, type Talk, talkIn, tell, text, threadAt } from '../support/pi-turns.ts';

const LONG_ENTRIES = 10_000;
const SHORT_ENTRIES = 100;
/** Pages of 8 KiB. Measured: about 30; every page of the long conversation would be some hundreds more. */
const PAGES_MAX = 90;

describe('the cost of a path', function () {
  this.timeout(60_000);
  const database = useDatabase();
  let rows: BenchRows;
  async function conversation(entries: number): Promise<{ talk: Talk; firstEntryId: string }> {
    const person = await makePerson(database.db);
    const { conversationId, firstEntryId } = await rows.filled(person, entries);
    return { talk: await talkIn(database.db, { person, conversationId, hostId: await makeHost(database.db) }), firstEntryId };
  }

  /** A conversation whose newest turn wrote a summary that keeps only itself, and a question that runs. */
  async function summarized(entries: number): Promise<RunId> {
    const { talk } = await conversation(entries);
    await tell(talk, 'nearly', [piSummary(null, 'an older entry'), piAnswer([text('So it is.')])]);
    return (await begin(talk, 'And now?')).runId;
  }

  async function pagesOf(runId: RunId) {
    const [path] = await explain(database.db, (db) => readPath(db, runId, LIMITS.pathMaxBytes));
    const [facts] = await explain(database.db, (db) => readTurnFacts(db, runId));
    if (!path || !facts) throw new Error('nothing was explained');
    return { path, facts };
  }

  beforeEach(async () => {
    await emptyLedger(database.db);
    await reconcileSlots(database.db, 10);
    rows = await BenchRows.open(database.url);
  });
  afterEach(() => rows.close());

  it('after a summary does not depend on what is older: 10,000 entries cost what 100 cost', async () => {
    const [short, long] = [await summarized(SHORT_ENTRIES), await summarized(LONG_ENTRIES)];
    await rows.analyze();
    const [small, large] = [await pagesOf(short), await pagesOf(long)];
    expect(large.path.pages, 'path').to.be.at.most(Math.min(PAGES_MAX, small.path.pages * 2));
    expect(large.facts.pages, 'facts').to.be.at.most(Math.min(PAGES_MAX, small.facts.pages * 2));
    for (const { nodes } of [small.path, small.facts, large.path, large.facts]) {
      expect(nodes.filter((node) => /^Seq Scan mentor_(entry|turn)/.test(node))).to.deep.equal([]);
    }
  });

  it('of a thread near the beginning does not depend on how long the main conversation went on', async () => {
    const threadOf = async (entries: number): Promise<RunId> => {
      const { talk, firstEntryId } = await conversation(entries);
      const conversationId: ConversationId = await threadAt(talk, firstEntryId);
      const thread = await talkIn(database.db, { person: talk.person, conversationId, hostId: await makeHost(database.db) });
      return (await begin(thread, 'What was that?')).runId;
    };
    const [short, long] = [await threadOf(SHORT_ENTRIES), await threadOf(LONG_ENTRIES)];
    await rows.analyze();
    const [small, large] = [await pagesOf(short), await pagesOf(long)];
    expect(large.path.pages, 'path').to.be.at.most(Math.min(PAGES_MAX, small.path.pages * 2));
    expect(large.facts.pages, 'facts').to.be.at.most(Math.min(PAGES_MAX, small.facts.pages * 2));
  });

  it('and of the document that counts its messages, once the tables are vacuumed, hardly depends on how many there are', async () => {
    const listed = 20;
    const asked = async (entries: number) => {
      const { talk } = await conversation(entries);
      const request = await readContextRequest(database.db, (await begin(talk, 'And now?')).runId);
      if (!request) throw new Error('no request');
      return request;
    };
    const requests = [await asked(SHORT_ENTRIES), await asked(LONG_ENTRIES)];
    await rows.analyze();
    await rows.vacuum();
    const pages: number[] = [];
    for (const [nth, request] of requests.entries()) {
      const [facts] = await explain(database.db, (db) => readConversationFacts(db, request, listed));
      pages.push(facts?.pages ?? Number.POSITIVE_INFINITY);
      const told = await readConversationFacts(database.db, request, listed);
      const turns = [SHORT_ENTRIES, LONG_ENTRIES].map((entries) => entries / 2)[nth];
      expect(told.questions).to.deep.equal({ asked: turns, answered: turns, stopped: 0, failed: 0 });
      expect([told.messages.length, told.messageCount]).to.deep.equal([listed, 2 * (turns ?? 0)]);
    }
    const [few = 0, many = 0] = pages;
    expect(many, `${few} pages for the short one`).to.be.at.most(Math.min(2 * PAGES_MAX, few * 2));
  });
});
