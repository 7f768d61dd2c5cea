/**
 * An account that waited for its person gives everything to the account that the person has already (seed, "Owner and tenancy").
 */
import { expect } from 'chai';
import { checkAttempt } from '../../db/ledger/fence.ts';
import { reconcileSlots } from '../../db/ledger/slots.ts';
import { giveRole } from '../../db/ops/operators.ts';
import { type Recognised, recogniseSubject } from '../../db/people/identities.ts';
import { addMember } from '../../db/people/members.ts';
import { sql } from '../../db/pool.ts';
import { type ConversationId, type RunId, uuidv7 } from '../../src/kernel/ids.ts';
import { useDatabase } from '../support/database.ts';
import { ask, claimOne, emptyLedger, makeHost, makeMain, makePerson, makeSandbox, type Person, run } from '../support/ledger.ts';

const SUBJECT = { issuer: 'https://issuer.example', subject: 'ada', displayName: 'Ada', timeZone: 'UTC' };
const EMAIL = 'ada@new.example';

describe('an account that waited for its person', () => {
  const database = useDatabase();
  /** The account of the person, and the one that was invited by another email. */
  let claiming: Person;
  let invited: Person;

  beforeEach(async () => {
    const { db } = database;
    await emptyLedger(db);
    await reconcileSlots(db, 4);
    const first = await recogniseSubject(db, { ...SUBJECT, email: 'ada@old.example' });
    const { workspaceId } = await makePerson(db);
    claiming = { workspaceId, accountId: first.accountId };
    await addMember(db, { email: 'ada@old.example', workspaceId, role: 'member', name: null, timeZone: 'UTC' });
    await addMember(db, { email: EMAIL, workspaceId, role: 'admin', name: null, timeZone: 'UTC' });
    const [row] = await run(db, sql.unsafe`select account_id from account_invitation where email = ${EMAIL}`);
    invited = { workspaceId, accountId: row?.['account_id'] as Person['accountId'] };
  });

  const signIn = (): Promise<Recognised> => recogniseSubject(database.db, { ...SUBJECT, email: EMAIL });
  const rows = (query: ReturnType<typeof sql.unsafe>) => run(database.db, query);
  const entriesOf = (id: ConversationId) =>
    rows(sql.unsafe`select id, seq, text, kind, erased_at from mentor_entry where conversation_id = ${id} order by seq`);
  const ownersOf = async (table: string) =>
    (await rows(sql.unsafe`select distinct account_id from ${sql.identifier([table])}`)).map((row) => row['account_id']);

  it('gives its memberships, the better role of each, and is invited no more', async () => {
    const { accountId, absorbed } = await signIn();
    expect([accountId, absorbed]).to.deep.equal([claiming.accountId, []]);
    expect(
      await rows(
        sql.unsafe`select account_id, role, active from workspace_member where account_id in (${claiming.accountId}, ${invited.accountId})`,
      ),
    ).to.deep.equal([{ account_id: claiming.accountId, role: 'admin', active: true }]);
    expect(await rows(sql.unsafe`select 1 from account_invitation`)).to.deep.equal([]);
    expect((await signIn()).accountId).to.equal(claiming.accountId);
  });

  it('gives its role as an operator, the better of both', async () => {
    const { db } = database;
    await giveRole(db, claiming.accountId, { role: 'viewer', by: 'local' });
    await giveRole(db, invited.accountId, { role: 'operator', by: 'local' });
    await signIn();
    expect(await rows(sql.unsafe`select account_id, role from operator_account`)).to.deep.equal([
      { account_id: claiming.accountId, role: 'operator' },
    ]);
  });

  it('gives its conversation where the person has none, with its threads and turns', async () => {
    const { db } = database;
    const main = await makeMain(db, invited);
    const asked = await ask(db, invited, main, { text: 'Mine?' });
    const thread = await makeThread(main, asked.entryId, invited);
    await ask(db, invited, thread, { text: 'In a thread?' });
    const [before] = await rows(sql.unsafe`select version from mentor_conversation where id = ${main}`);
    const { absorbed } = await signIn();
    expect(absorbed).to.have.length(1);
    expect(absorbed[0]).to.include({ conversationId: main, version: Number(before?.['version']) + 1 });
    for (const table of ['mentor_conversation', 'mentor_turn']) expect(await ownersOf(table), table).to.deep.equal([claiming.accountId]);
    expect(await makeMain(db, claiming)).to.equal(main);
  });

  it('puts its entries behind those of the person, in their own order and with their ids', async () => {
    const { db } = database;
    const [main, old] = [await makeMain(db, claiming), await makeMain(db, invited)];
    for (const text of ['one', 'two']) await ask(db, claiming, main, { text });
    const moved = [];
    for (const text of ['three', 'four']) moved.push(await ask(db, invited, old, { text }));
    const thread = await makeThread(old, moved[0]?.entryId as string, invited);
    await ask(db, invited, thread, { text: 'beside' });
    const { absorbed } = await signIn();
    const entries = await entriesOf(main);
    expect(entries.map(({ text }) => text)).to.deep.equal(['one', 'two', 'three', 'four']);
    expect(entries.map(({ seq }) => seq)).to.deep.equal([1, 2, 3, 4]);
    expect(entries.slice(2).map(({ id }) => id)).to.deep.equal(moved.map(({ entryId }) => entryId));
    expect(absorbed[0]?.entryIds).to.have.members(moved.map(({ entryId }) => entryId));
    const turns = await rows(
      sql.unsafe`select question_seq, account_id from mentor_turn where conversation_id = ${main} order by question_seq`,
    );
    expect(turns).to.deep.equal([1, 2, 3, 4].map((question_seq) => ({ question_seq, account_id: claiming.accountId })));
    expect(await rows(sql.unsafe`select 1 from mentor_conversation where id = ${old}`)).to.deep.equal([]);
    expect(await rows(sql.unsafe`select account_id, parent_conversation_id from mentor_conversation where id = ${thread}`)).to.deep.equal([
      { account_id: claiming.accountId, parent_conversation_id: main },
    ]);
    const next = await ask(db, claiming, main, { text: 'five' });
    expect(next.result.kind).to.equal('written');
    expect((await entriesOf(main)).at(-1)).to.include({ text: 'five', seq: 5 });
  });

  it('takes its running attempt back to the queue first; its sandbox can write no more', async () => {
    const { db } = database;
    const [main, old] = [await makeMain(db, claiming), await makeMain(db, invited)];
    const { turnId } = await ask(db, invited, old, { text: 'Running?' });
    const box = await makeSandbox(db, invited, old, await makeHost(db));
    const grant = await claimOne(db, old, box.id);
    expect(grant).to.include({ turnId });
    const { absorbed } = await signIn();
    expect(absorbed[0]?.runIds).to.deep.equal([grant?.runId]);
    const [turn] = await rows(
      sql.unsafe`select t.status, t.attempt, r.state, r.conversation_id from mentor_turn t join agent_run r on r.turn_id = t.id where t.id = ${turnId}`,
    );
    expect(turn).to.deep.equal({ status: 'QUEUED', attempt: 1, state: 'WAITING', conversation_id: main });
    expect(await rows(sql.unsafe`select 1 from turn_slot where run_id is not null`)).to.deep.equal([]);
    expect(await rows(sql.unsafe`select state from sandbox`)).to.deep.equal([{ state: 'ENDED' }]);
    expect(await checkAttempt(db, { runId: grant?.runId as RunId, epoch: 1, sandboxId: box.id })).to.equal(null);
    const again = await makeSandbox(db, claiming, main, await makeHost(db, 'other'));
    expect(await claimOne(db, main, again.id)).to.include({ turnId, epoch: 2 });
  });

  it('gives the last attempt back: no sandbox has failed', async () => {
    const { db } = database;
    await makeMain(db, claiming);
    const old = await makeMain(db, invited);
    const { turnId } = await ask(db, invited, old, { text: 'Twice?' });
    const box = await makeSandbox(db, invited, old, await makeHost(db));
    await claimOne(db, old, box.id);
    await rows(sql.unsafe`update mentor_turn set attempt = 2 where id = ${turnId} returning 1`);
    await signIn();
    expect(await rows(sql.unsafe`select status, attempt from mentor_turn where id = ${turnId}`)).to.deep.equal([
      { status: 'QUEUED', attempt: 1 },
    ]);
  });

  it('erases its summaries, so that the whole is summarized again', async () => {
    const { db } = database;
    const [main, old] = [await makeMain(db, claiming), await makeMain(db, invited)];
    await ask(db, claiming, main, { text: 'one' });
    await ask(db, invited, old, { text: 'two' });
    await rows(sql.unsafe`insert into mentor_entry (id, workspace_id, conversation_id, seq, kind, surface, text, payload, from_seq, to_seq)
      values (${uuidv7()}, ${invited.workspaceId}, ${old}, 2, 'SUMMARY', 'app', 'They asked two.', '{"summary":"two"}', 1, 1) returning 1`);
    await rows(sql.unsafe`update mentor_conversation set last_seq = 2 where id = ${old} returning 1`);
    await signIn();
    const summary = (await entriesOf(main)).at(-1);
    expect(summary).to.include({ kind: 'SUMMARY', text: null, seq: 3 });
    expect(summary?.['erased_at']).to.not.equal(null);
    expect(await rows(sql.unsafe`select 1 from mentor_entry where payload::text like '%two%' and kind = 'SUMMARY'`)).to.deep.equal([]);
  });

  it('gives its Slack identity only where the person has none', async () => {
    const { db } = database;
    const [main, old] = [await makeMain(db, claiming), await makeMain(db, invited)];
    await rows(sql.unsafe`update mentor_conversation set slack_team_id = 'T', slack_user_id = 'U' where id = ${old} returning 1`);
    await signIn();
    const slack = () => rows(sql.unsafe`select slack_team_id, slack_user_id from mentor_conversation where id = ${main}`);
    expect(await slack()).to.deep.equal([{ slack_team_id: 'T', slack_user_id: 'U' }]);
    await addMember(db, { email: 'ada@third.example', workspaceId: claiming.workspaceId, role: 'member', name: null, timeZone: 'UTC' });
    const [third] = await rows(sql.unsafe`select account_id from account_invitation`);
    const other = await makeMain(db, { ...claiming, accountId: third?.['account_id'] as Person['accountId'] });
    await rows(sql.unsafe`update mentor_conversation set slack_team_id = 'T2', slack_user_id = 'U2' where id = ${other} returning 1`);
    await recogniseSubject(db, { ...SUBJECT, email: 'ada@third.example' });
    expect(await slack()).to.deep.equal([{ slack_team_id: 'T', slack_user_id: 'U' }]);
  });

  it('that used the same requestId as the person keeps both questions', async () => {
    const { db } = database;
    const [main, old] = [await makeMain(db, claiming), await makeMain(db, invited)];
    await ask(db, claiming, main, { requestId: 'r1', text: 'one' });
    const { turnId } = await ask(db, invited, old, { requestId: 'r1', text: 'two' });
    await signIn();
    const requests = await rows(sql.unsafe`select request_id from mentor_turn order by question_seq`);
    expect(requests).to.deep.equal([{ request_id: 'r1' }, { request_id: turnId }]);
  });

  it('is left alone while it, or the person, is being erased', async () => {
    const { db } = database;
    await makeMain(db, invited);
    for (const erased of [invited, claiming]) {
      await rows(sql.unsafe`update account set erasure_requested_at = clock_timestamp() where id = ${erased.accountId} returning 1`);
      expect((await signIn()).absorbed).to.deep.equal([]);
      expect(await ownersOf('mentor_conversation')).to.deep.equal([invited.accountId]);
      await rows(sql.unsafe`update account set erasure_requested_at = null where id = ${erased.accountId} returning 1`);
      await rows(sql.unsafe`update account_identity set email = null returning 1`);
    }
  });

  it('is given once, however many sign-ins and questions come at the same time', async () => {
    const { db } = database;
    const [main, old] = [await makeMain(db, claiming), await makeMain(db, invited)];
    await ask(db, invited, old, { text: 'first' });
    const questions = Array.from({ length: 4 }, (_, n) =>
      ask(db, n % 2 ? claiming : invited, n % 2 ? main : old, { text: `q${n}` }).catch(() => null),
    );
    const [signed, asked] = await Promise.all([Promise.all([signIn(), signIn(), signIn()]), Promise.all(questions)]);
    expect(new Set(signed.map(({ accountId }) => accountId))).to.deep.equal(new Set([claiming.accountId]));
    expect(signed.flatMap(({ absorbed }) => absorbed)).to.have.length(1);
    const stored = asked.filter((one) => one?.result.kind === 'written').length;
    const entries = await entriesOf(main);
    expect(entries.map(({ seq }) => seq)).to.deep.equal(Array.from({ length: stored + 1 }, (_, n) => n + 1));
    expect(await ownersOf('mentor_turn')).to.deep.equal([claiming.accountId]);
  });

  async function makeThread(parent: ConversationId, entryId: string, { workspaceId, accountId }: Person): Promise<ConversationId> {
    const id = uuidv7<'conversation'>();
    await rows(sql.unsafe`insert into mentor_conversation (id, workspace_id, account_id, parent_conversation_id, parent_entry_id)
      values (${id}, ${workspaceId}, ${accountId}, ${parent}, ${entryId}) returning 1`);
    return id;
  }
});
