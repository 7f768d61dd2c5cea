/**
 * Fair order when slots are scarce: a workspace that floods does not keep a quiet one waiting, and no slot stays free meanwhile.
 */
import { expect } from 'chai';
import { claimTurns, type Grant, type Offer } from '../../db/ledger/claim.ts';
import { loadConversation } from '../../db/ledger/conversation.ts';
import { endTurn } from '../../db/ledger/end-turn.ts';
import { countSlots, reconcileSlots } from '../../db/ledger/slots.ts';
import { useDatabase } from '../support/database.ts';
import { ask, emptyLedger, makeHost, makeMain, makePerson, makeSandbox, type Person, TIMES } from '../support/ledger.ts';
import { answer } from '../support/scene.ts';

const CAPACITY = 4;
const FLOOD_CONVERSATIONS = 200;
const TURNS_EACH = 5;
/** What the design promises a quiet workspace. */
const RELEASES_MAX = 2;

describe('a quiet workspace beside one that floods', function () {
  this.timeout(120_000);
  const database = useDatabase();
  beforeEach(() => emptyLedger(database.db));

  /** `conversations` conversations of one workspace with `each` questions in every one, all with a sandbox that waits. */
  async function flood(conversations: number, each: number): Promise<Offer[]> {
    const { db } = database;
    const hostId = await makeHost(db);
    const first = await makePerson(db);
    const offers: Offer[] = [];
    for (let n = 0; n < conversations; n++) {
      const person = n === 0 ? first : await makePerson(db, first.workspaceId);
      offers.push(await asks(person, each, hostId));
    }
    return offers;
  }

  async function asks(person: Person, count: number, hostId: Awaited<ReturnType<typeof makeHost>>): Promise<Offer> {
    const { db } = database;
    const conversationId = await makeMain(db, person);
    for (let n = 0; n < count; n++) await ask(db, person, conversationId, { maxFollowUps: count });
    return { conversationId, sandboxId: (await makeSandbox(db, person, conversationId, hostId)).id };
  }

  async function release(grant: Grant): Promise<void> {
    const { db } = database;
    const { runId, epoch, sandboxId, conversationId } = grant;
    const version = (await loadConversation(db, conversationId))?.version ?? -1;
    await endTurn(db, { runId, epoch, sandboxId, conversationId, version, status: 'DONE', error: null, entries: [answer()] });
  }

  /** Slot releases until the quiet workspace has its slot; checks that every free slot is taken at each step. */
  async function releasesUntilServed(offers: readonly Offer[], quiet: Offer, running: Grant[]): Promise<number> {
    const { db } = database;
    for (let releases = 0; ; releases++) {
      const { grants } = await claimTurns(db, offers, TIMES);
      running.push(...grants);
      expect((await countSlots(db)).held, 'no slot stays free while somebody waits').to.equal(CAPACITY);
      if (grants.some((grant) => grant.conversationId === quiet.conversationId)) return releases;
      const oldest = running.shift();
      if (!oldest) throw new Error('nothing runs');
      await release(oldest);
    }
  }

  it('waits at most 2 slot releases, whether 1,000 turns are spread over 200 conversations or few of them can run', async () => {
    for (const [conversations, each] of [
      [FLOOD_CONVERSATIONS, TURNS_EACH],
      [CAPACITY, 50],
    ] as const) {
      await emptyLedger(database.db);
      await reconcileSlots(database.db, CAPACITY);
      const flooding = await flood(conversations, each);
      const running = [...(await claimTurns(database.db, flooding, TIMES)).grants];
      expect(running).to.have.length(CAPACITY);
      const quiet = await asks(await makePerson(database.db), 1, await makeHost(database.db));
      expect(await releasesUntilServed([...flooding, quiet], quiet, running)).to.be.at.most(RELEASES_MAX);
    }
  });

  it('takes the oldest question first within one workspace', async () => {
    await reconcileSlots(database.db, 1);
    const offers = await flood(3, 1);
    const order: string[] = [];
    for (let n = 0; n < 3; n++) {
      const [grant] = (await claimTurns(database.db, offers, TIMES)).grants;
      if (!grant) throw new Error('nothing was granted');
      order.push(grant.conversationId);
      await release(grant);
    }
    expect(order).to.deep.equal(offers.map((offer) => offer.conversationId));
  });
});
