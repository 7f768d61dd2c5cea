/**
 * The auditor of the change log finds what breaks R14. Each violation is planted where no trigger looks (ledger-audit.spec.ts has the other rules).
 */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { z } from 'zod';
import { type Database, sql } from '../../db/pool.ts';
import { type LeasedAction, leaseNext, type Settlement, settleAction, takeReading } from '../../db/slack/outbox.ts';
import { decideAction } from '../../db/slack/outbox-admin.ts';
import { useDatabase } from '../support/database.ts';
import { ask, claimOne, emptyLedger, makePerson, run } from '../support/ledger.ts';
import { type LedgerAudit, useAudit } from '../support/ledger-audit.ts';
import { scene } from '../support/scene.ts';
import { actions, connect, fillOutbox, origin, QUICK, TEAM } from '../support/slack-scene.ts';

type Statement = ReturnType<typeof sql.unsafe>;
const TIMES = { ...QUICK, settleMs: 0 };
const UNKNOWN: Settlement = { state: 'UNCERTAIN', reason: 'timeout', readAgain: true };
const SENT: Settlement = { state: 'SENT', messageTs: '1700000000.000001' };

const lease = async (db: Database) =>
  (await leaseNext(db, { teamId: TEAM, channelId: 'D0', leaseId: randomUUID() }, TIMES)) as LeasedAction;
const settle = async (db: Database, { id, leaseId }: LeasedAction, to: Settlement) =>
  expect(await settleAction(db, { id, leaseId, to }, TIMES)).to.equal(true);

/** One action of a connected team, brought to a state. */
async function place(db: Database, state: 'PENDING' | 'SENDING' | 'UNCERTAIN' | 'SENT'): Promise<void> {
  const person = await makePerson(db);
  await connect(db, person);
  await fillOutbox(db, person, [1, 1]);
  if (state === 'PENDING') return;
  const action = await lease(db);
  if (state !== 'SENDING') await settle(db, action, state === 'SENT' ? SENT : UNKNOWN);
}

/** A step, and its record. */
const step = (
  [from, to]: readonly [from: string, to: string],
  set: ReturnType<typeof sql.fragment>,
  by = 'server',
): readonly Statement[] => [
  sql.unsafe`update outbox_action set state = ${to}, moved_by = ${by}, ${set} returning 1`,
  sql.unsafe`insert into outbox_step (action_id, from_state, to_state, moved_by) select id, ${from}, ${to}, ${by} from outbox_action returning 1`,
];
const attempt = sql.fragment`attempts = attempts + 1, lease_id = gen_random_uuid(), lease_until = now(), started_at = now()`;
const due = sql.fragment`due_at = now(), ended_at = null`;

const PLANTED: readonly (readonly [what: string, from: Parameters<typeof place>[1], plant: readonly Statement[], found: RegExp])[] = [
  ['a server that sends again what nobody knows', 'UNCERTAIN', step(['UNCERTAIN', 'SENDING'], attempt), /sent again that was UNCERTAIN/],
  [
    ...(['a retry without a reading', 'UNCERTAIN'] as const),
    step(['UNCERTAIN', 'RETRY'], sql.fragment`${due}, reason = 'not_in_history'`),
    /although nobody knows: not_in_history/,
  ],
  [
    ...(['a retry since the lease ran out', 'SENDING'] as const),
    step(['SENDING', 'RETRY'], sql.fragment`${due}, reason = 'lease_expired'`),
    /although nobody knows: lease_expired/,
  ],
  [
    ...(['an operator’s step that is not on record', 'UNCERTAIN'] as const),
    step(['UNCERTAIN', 'RETRY'], sql.fragment`${due}, reason = 'operator'`, 'operator').slice(0, 1),
    /UNCERTAIN became RETRY without a record/,
  ],
  ['an action that goes on after it was sent', 'SENT', step(['SENT', 'RETRY'], due), /went on after it was sent/],
  [
    'another message in the place of the first',
    'SENT',
    [sql.unsafe`update outbox_action set message_ts = '2.2' returning 1`],
    /was replaced/,
  ],
  [
    ...(['an attempt that is taken over', 'SENDING'] as const),
    [sql.unsafe`update outbox_action set lease_id = gen_random_uuid() returning 1`],
    /taken over while nobody knew/,
  ],
  [
    ...(['a request that is not counted', 'PENDING'] as const),
    step(['PENDING', 'SENDING'], sql.fragment`lease_id = gen_random_uuid(), lease_until = now(), started_at = now()`),
    /no attempt of its own/,
  ],
  [
    ...(['an action that is sent without a message', 'SENDING'] as const),
    step(['SENDING', 'SENT'], sql.fragment`ended_at = now()`),
    /sent without a message/,
  ],
  ['an action that is forgotten', 'PENDING', [sql.unsafe`delete from outbox_action returning 1`], /was deleted/],
  [
    ...(['two notices of one event', 'PENDING'] as const),
    [
      sql.unsafe`insert into outbox_action (id, kind, workspace_id, team_id, channel_id, notice, event_id, due_at)
        select gen_random_uuid(), kind, workspace_id, team_id, channel_id, notice, event_id, due_at from outbox_action returning 1`,
    ],
    /two actions of one team_id, event_id/,
  ],
];

describe('the auditor of the change log, asked about the outbox', function () {
  // rule: R14
  this.timeout(60_000);
  const startAudit = useAudit();
  const database = useDatabase();
  before(() => run(database.db, sql.unsafe`alter table outbox_action drop constraint ux_outbox_action_event`));
  beforeEach(() => emptyLedger(database.db));

  const plant = (statements: readonly Statement[]) =>
    database.db.transaction(async (tx) => {
      await tx.any(sql.type(z.unknown())`set local session_replication_role = replica`); // no trigger and no foreign key looks
      for (const statement of statements) expect(await tx.any(statement as never), 'it was planted').to.have.length(1);
    });
  async function finds(audit: LedgerAudit, found: RegExp, statements: readonly Statement[]): Promise<void> {
    expect(await audit.violations(), 'nothing is wrong before').to.deep.equal([]);
    await plant(statements);
    expect((await audit.violations()).filter((violation) => violation.startsWith('R14 ')).join('\n')).to.match(found);
  }

  for (const [what, from, statements, found] of PLANTED) {
    it(`finds ${what}`, async function () {
      const audit = await startAudit(this, database.url);
      await place(database.db, from);
      await finds(audit, found, statements);
    });
  }

  describe('of a turn of Slack', () => {
    const running = async () => {
      const it_ = await scene(database.db);
      await connect(database.db, it_.person);
      const asked = await ask(database.db, it_.person, it_.conversationId, { slack: origin() });
      const grant = await claimOne(database.db, it_.conversationId, it_.sandbox.id);
      return { ...it_, ...asked, runId: String(grant?.runId) };
    };

    it('finds an end without a post', async function () {
      const audit = await startAudit(this, database.url);
      const { turnId, runId } = await running();
      await finds(audit, /ended without a post/, [
        sql.unsafe`update mentor_turn set status = 'DONE', ended_at = clock_timestamp() where id = ${turnId} returning 1`,
        sql.unsafe`update agent_run set state = 'ENDED', lease_until = null, ended_at = clock_timestamp() where id = ${runId} returning 1`,
        sql.unsafe`update turn_slot set run_id = null where run_id = ${runId} returning 1`,
      ]);
    });

    it('finds a post that comes before the end', async function () {
      const audit = await startAudit(this, database.url);
      const { turnId, person } = await running();
      await finds(audit, /has not ended/, [
        sql.unsafe`insert into outbox_action (id, kind, workspace_id, team_id, channel_id, thread_ts, turn_id, due_at)
          values (gen_random_uuid(), 'SLACK_POST', ${person.workspaceId}, ${TEAM}, 'D0', '1.1', ${turnId}, now()) returning 1`,
      ]);
    });
  });

  it('says nothing of an action that was lost, read back, tried again by an operator and sent', async function () {
    const audit = await startAudit(this, database.url);
    const { db } = database;
    await place(db, 'UNCERTAIN');
    const reading = (await takeReading(db, TIMES)) as LeasedAction;
    await settle(db, reading, { state: 'RETRY', afterMs: 0, reason: 'not_in_history' });
    await settle(db, await lease(db), { state: 'RETRY', afterMs: 0, reason: 'rate_limited' });
    await settle(db, await lease(db), { state: 'UNCERTAIN', reason: 'history_missing_scope', readAgain: false });
    const [action] = await actions(db);
    expect(await decideAction(db, String(action?.id), 'again')).to.deep.equal({ before: 'UNCERTAIN', moved: true });
    await settle(db, await lease(db), SENT);
    expect((await actions(db)).map(({ state }) => state)).to.deep.equal(['SENT']);
    expect(await audit.violations()).to.deep.equal([]);
  });
});
