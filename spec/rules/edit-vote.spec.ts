/**
 * Owns: proof of edits (new words for a question that stays, its copies gone) and of votes.
 * Does not own: erasure (erase.spec.ts), races with the end of a turn (erase-races.spec.ts), the wire (entries-wire.spec.ts).
 */
import { expect } from 'chai';
import { editQuestion } from '../../db/ledger/edit.ts';
import { eraseEntries } from '../../db/ledger/erase.ts';
import { voteEntry } from '../../db/ledger/vote.ts';
import { sql } from '../../db/pool.ts';
import { type ConversationId, type EntryId, uuidv7 } from '../../src/kernel/ids.ts';
import { useDatabase } from '../support/database.ts';
import { ask, emptyLedger, makeMain, makePerson, type Person, run } from '../support/ledger.ts';
import { turnRow } from '../support/scene.ts';
import { CALL, entryRow, RESULT, type StoredEntry, SUMMARY, storeEntry } from '../support/threads.ts';

describe('a message of one’s own', () => {
  const database = useDatabase();
  let person: Person;
  let mainId: ConversationId;
  beforeEach(async () => {
    await emptyLedger(database.db);
    person = await makePerson(database.db);
    mainId = await makeMain(database.db, person);
  });

  const store = (entry: StoredEntry) => storeEntry(database.db, { person, conversationId: mainId }, entry);
  const erase = (ids: readonly EntryId[]) => database.db.transaction((tx) => eraseEntries(tx, { ids, reach: person, graceMs: 30_000 }));
  const isErased = async (id: EntryId) => (await entryRow(database.db, id)).erased;
  const versions = async () => {
    const rows = await run(database.db, sql.unsafe`select id, version, erasures from mentor_conversation order by id`);
    return new Map(rows.map((row) => [row['id'] as ConversationId, { version: row['version'], erasures: row['erasures'] }]));
  };

  describe('being edited', () => {
    const edit = (id: EntryId, text: string, owner: Person = person) =>
      database.db.transaction((tx) => editQuestion(tx, { id, text, owner }));

    it('replaces the words, takes the copies of the old ones, and leaves the turn alone', async () => {
      const asked = await ask(database.db, person, mainId, { text: 'old words' });
      const summary = await store({ kind: 'SUMMARY', payload: SUMMARY });
      const result = await store({ kind: 'TOOL_RESULT', payload: RESULT, sourceIds: [asked.entryId] });
      const before = await versions();
      const edited = await edit(asked.entryId, 'new words');
      expect(edited.kind === 'edited' && edited.changed.map((one) => one.entryIds)).to.deep.equal([[asked.entryId]]);
      expect(await entryRow(database.db, asked.entryId)).to.include({ text: 'new words', search_text: 'new words', erased: false });
      expect([await isErased(summary), await isErased(result)]).to.deep.equal([true, true]);
      expect(await turnRow(database.db, asked.turnId)).to.include({ status: 'QUEUED', state: 'WAITING' });
      const after = (await versions()).get(mainId);
      expect([Number(after?.version) - Number(before.get(mainId)?.version), after?.erasures]).to.deep.equal([1, 1]);
    });

    it('to the same words changes nothing', async () => {
      const asked = await ask(database.db, person, mainId, { text: 'words' });
      const before = await versions();
      expect(await edit(asked.entryId, 'words')).to.deep.equal({ kind: 'edited', changed: [] });
      expect(await versions()).to.deep.equal(before);
    });

    it('is refused for what is erased, is no question, or is somebody else’s', async () => {
      const asked = await ask(database.db, person, mainId);
      const other = await store({ kind: 'ANSWER', text: 'a', payload: CALL });
      const stranger = await makePerson(database.db, person.workspaceId);
      expect(await edit(asked.entryId, 'x', stranger)).to.deep.equal({ kind: 'no-entry' });
      expect(await edit(other, 'x')).to.deep.equal({ kind: 'no-entry' });
      await erase([asked.entryId]);
      expect(await edit(asked.entryId, 'x')).to.deep.equal({ kind: 'no-entry' });
      expect((await entryRow(database.db, asked.entryId)).text).to.equal(null);
    });

    it('is refused after the erasure of the person was requested', async () => {
      // rule: R12
      const asked = await ask(database.db, person, mainId, { text: 'old' });
      await run(database.db, sql.unsafe`update account set erasure_requested_at = now() where id = ${person.accountId} returning 1`);
      expect(await edit(asked.entryId, 'new')).to.deep.equal({ kind: 'person-erased' });
      expect((await entryRow(database.db, asked.entryId)).text).to.equal('old');
    });
  });

  describe('being voted on', () => {
    const vote = (id: EntryId, value: 'up' | 'down' | null, owner: Person = person) => voteEntry(database.db, { id, vote: value, owner });

    it('keeps the last vote, and a repeat changes nothing', async () => {
      const id = await store({ kind: 'ANSWER', text: 'a', payload: CALL });
      const first = await vote(id, 'up');
      expect(first).to.include({ kind: 'voted' });
      expect(await vote(id, 'up')).to.deep.equal({ kind: 'voted', conversationId: mainId, version: null });
      expect((await entryRow(database.db, id)).vote).to.equal(1);
      await vote(id, 'down');
      expect((await entryRow(database.db, id)).vote).to.equal(-1);
      await vote(id, null);
      expect((await entryRow(database.db, id)).vote).to.equal(null);
    });

    it('is possible on answers and digests of one’s own that are there', async () => {
      const digest = await store({ kind: 'DIGEST', text: 'd' });
      expect(await vote(digest, 'up')).to.include({ kind: 'voted' });
      const stranger = await makePerson(database.db, person.workspaceId);
      expect(await vote(digest, 'up', stranger)).to.deep.equal({ kind: 'no-entry' });
      const question = await store({ kind: 'QUESTION', text: 'q' });
      const hidden = await store({ kind: 'ANSWER', payload: CALL });
      for (const id of [question, hidden, uuidv7<'entry'>()]) expect(await vote(id, 'up')).to.deep.equal({ kind: 'no-entry' });
      await erase([digest]);
      expect(await vote(digest, 'down')).to.deep.equal({ kind: 'no-entry' });
    });

    it('is refused after the erasure of the person was requested', async () => {
      // rule: R12
      const id = await store({ kind: 'ANSWER', text: 'a', payload: CALL });
      await run(database.db, sql.unsafe`update account set erasure_requested_at = now() where id = ${person.accountId} returning 1`);
      expect(await vote(id, 'up')).to.deep.equal({ kind: 'person-erased' });
      expect((await entryRow(database.db, id)).vote).to.equal(null);
    });
  });
});
