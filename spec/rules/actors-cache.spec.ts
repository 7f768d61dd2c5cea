/**
 * What a ConversationActor keeps in memory after its own writes is what a read of the rows would say, after any history on a real database.
 */
import { expect } from 'chai';
import fc from 'fast-check';
import { evolve, type Fact, mayStartAtOnce } from '../../actors/conversation/decide.ts';
import { type ConversationRows, loadConversation } from '../../db/ledger/conversation.ts';
import { endTurn } from '../../db/ledger/end-turn.ts';
import { handOnRun } from '../../db/ledger/hand-on.ts';
import { reconcileSlots } from '../../db/ledger/slots.ts';
import { stopTurn } from '../../db/ledger/stop.ts';
import type { SandboxId } from '../../src/kernel/ids.ts';
import { useDatabase } from '../support/database.ts';
import { ask, claimOne, emptyLedger, makeHost, makeMain, makePerson, makeSandbox, type Person } from '../support/ledger.ts';
import { answer } from '../support/scene.ts';

type Operation = 'submit' | 'submitAndClaim' | 'claim' | 'stopFirst' | 'stopLast' | 'end' | 'handOn';
const OPERATIONS: readonly Operation[] = ['submit', 'submitAndClaim', 'claim', 'stopFirst', 'stopLast', 'end', 'handOn'];

describe('the memory of a conversation', () => {
  const database = useDatabase();
  beforeEach(() => emptyLedger(database.db));

  /** Writes on the rows that the actor knows, and returns the fact that it learns; null when the rules do not allow it now. */
  async function perform(
    operation: Operation,
    rows: ConversationRows,
    [person, sandboxId]: readonly [Person, SandboxId],
  ): Promise<Fact | null> {
    const { db } = database;
    const at = { conversationId: rows.id, version: rows.version };
    switch (operation) {
      case 'submit':
      case 'submitAndClaim': {
        const offered = operation === 'submitAndClaim' && mayStartAtOnce(rows) ? sandboxId : null;
        const { result, turnId, runId, requestId } = await ask(db, person, rows.id, { sandboxId: offered });
        if (result.kind !== 'written') return null;
        return { type: 'submitted', version: result.version, turnId, runId, requestId, claimedBy: result.claimed ? sandboxId : null };
      }
      case 'claim': {
        const grant = await claimOne(db, rows.id, sandboxId);
        return grant ? { type: 'claimed', ...grant } : null;
      }
      case 'stopFirst':
      case 'stopLast': {
        const running = rows.leased?.status === 'RUNNING' ? [rows.leased.turnId] : [];
        const open = [...running, ...rows.queued.map((turn) => turn.turnId)];
        const turnId = operation === 'stopFirst' ? open[0] : open.at(-1);
        const done = turnId && (await stopTurn(db, { ...at, turnId, graceMs: 30_000 }));
        return turnId && done ? { type: 'stopped', turnId, ...done } : null;
      }
      case 'end': {
        const done = rows.leased && (await endTurn(db, { ...at, ...rows.leased, status: 'DONE', error: null, entries: [answer()] }));
        return done && { type: 'ended', version: done.version };
      }
      case 'handOn': {
        const done = rows.leased && (await handOnRun(db, { ...at, ...rows.leased }));
        return done && { type: 'handed-on', version: done.version, status: done.status };
      }
    }
  }

  it('is what the rows say, whatever it has written', async () => {
    const { db } = database;
    const learned = new Map<string, number>();
    await fc.assert(
      fc.asyncProperty(fc.array(fc.constantFrom(...OPERATIONS), { minLength: 5, maxLength: 25 }), async (history) => {
        await emptyLedger(db);
        await reconcileSlots(db, 1);
        const person = await makePerson(db);
        const conversationId = await makeMain(db, person);
        const { id } = await makeSandbox(db, person, conversationId, await makeHost(db));
        let rows = await loadConversation(db, conversationId);
        for (const operation of history) {
          if (!rows) throw new Error('the conversation is gone');
          const fact = await perform(operation, rows, [person, id]);
          const truth = await loadConversation(db, conversationId);
          if (fact) {
            const memory = evolve(rows, fact);
            if (memory !== null) expect(memory, `${operation} in ${history.join(' ')}`).to.deep.equal(truth);
            learned.set(fact.type, (learned.get(fact.type) ?? 0) + (memory === null ? 0 : 1));
          } else expect(truth?.version, 'nothing was written').to.equal(rows.version);
          rows = truth;
        }
      }),
      { numRuns: 15 },
    );
    expect([...learned.keys()]).to.include.members(['submitted', 'claimed', 'stopped', 'ended']);
  });
});
