/**
 * Scenes of the ledger for specs: a conversation with a sandbox and slots, a claimed turn, its row.
 */
import { loadConversation } from '../../db/ledger/conversation.ts';
import { endTurn, type NewEntry } from '../../db/ledger/end-turn.ts';
import { reconcileSlots } from '../../db/ledger/slots.ts';
import { type Database, sql } from '../../db/pool.ts';
import { type TurnId, uuidv7 } from '../../src/kernel/ids.ts';
import { ask, claimOne, makeHost, makeMain, makePerson, makeSandbox, run } from './ledger.ts';

export async function scene(db: Database, capacity = 4) {
  await reconcileSlots(db, capacity);
  const person = await makePerson(db);
  const conversationId = await makeMain(db, person);
  const hostId = await makeHost(db);
  const sandbox = await makeSandbox(db, person, conversationId, hostId);
  return { db, person, conversationId, hostId, sandbox };
}

export async function turnRow(db: Database, turnId: TurnId) {
  const [row] = await run(
    db,
    sql.unsafe`
      select t.status, t.attempt, t.error_code, r.state, r.epoch, (select count(*)::int from turn_slot s where s.run_id = r.id) as slots
      from mentor_turn t join agent_run r on r.turn_id = t.id where t.id = ${turnId}`,
  );
  return row as { status: string; attempt: number; error_code: string | null; state: string; epoch: number; slots: number };
}

export async function claimed(db: Database, capacity = 4) {
  const it = await scene(db, capacity);
  const asked = await ask(db, it.person, it.conversationId);
  const grant = await claimOne(db, it.conversationId, it.sandbox.id);
  if (!grant) throw new Error('not granted');
  const key = { runId: grant.runId, epoch: grant.epoch, sandboxId: it.sandbox.id };
  return { ...it, asked, grant, key };
}

export function answer(text = 'Because.'): NewEntry {
  const payload = JSON.stringify({ type: 'message', message: { role: 'assistant', content: [{ type: 'text', text }] } });
  return { id: uuidv7<'entry'>(), kind: 'ANSWER', text, payload };
}

export async function endDone(it: Awaited<ReturnType<typeof claimed>>, entries: readonly NewEntry[] = [answer()]) {
  const rows = await loadConversation(it.db, it.conversationId);
  return endTurn(it.db, {
    ...it.key,
    conversationId: it.conversationId,
    version: rows?.version ?? -1,
    status: 'DONE',
    error: null,
    entries,
  });
}
