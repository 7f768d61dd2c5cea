/**
 * Owns: proof that after a disconnect, in whatever way it comes, nothing that was written in Slack is left, and nothing comes after it.
 */
import { expect } from 'chai';
import { loadConversation } from '../../db/ledger/conversation.ts';
import { submitQuestion } from '../../db/ledger/submit.ts';
import { sql } from '../../db/pool.ts';
import { beginDisconnect } from '../../db/slack/disconnect.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import { silentLog } from '../../src/kernel/log.ts';
import { Disconnector } from '../../src/slack/disconnect.ts';
import { until } from '../support/actors.ts';
import { useDatabase } from '../support/database.ts';
import { makePerson, run, TIMES } from '../support/ledger.ts';
import { useSlack } from '../support/slack-rig.ts';
import { actions, connect, origin } from '../support/slack-scene.ts';
import { message } from '../support/slack-sender.ts';
import { SteeredDatabase } from '../support/steered-database.ts';

describe('a disconnect of Slack', () => {
  const database = useDatabase();
  const scene = useSlack(database);
  beforeEach(() => scene.link());

  const send = async (event: Record<string, unknown>) => expect(await scene.send(event)).to.equal(200);
  const connection = async () =>
    (await run(database.db, sql.unsafe`select state, why, bot_token_sealed from slack_connection order by created_at desc`))[0];
  const live = async () => {
    const rows = await run(
      database.db,
      sql.unsafe`select e.text, e.surface from mentor_entry e where e.erased_at is null order by e.created_at`,
    );
    return rows.map(({ surface, text }) => `${surface}: ${text}`);
  };
  const UNINSTALLED = { type: 'app_uninstalled' };
  const REVOKED = { type: 'tokens_revoked', tokens: { oauth: [], bot: ['U0BOT'] } };

  for (const [what, order] of [
    ['an uninstall', [UNINSTALLED]],
    ['a revoked token', [REVOKED]],
    ['both, repeated, one way round', [UNINSTALLED, REVOKED, UNINSTALLED]],
    ['both, repeated, the other way round', [REVOKED, UNINSTALLED, REVOKED]],
  ] as const) {
    it(`erases what was written in Slack, stops its turns and keeps the rest: ${what}`, async () => {
      await scene.rig.ask('in the app');
      await send(message('answered in Slack'));
      const sandbox = await scene.sandbox();
      for (const answer of ['app words', 'Slack words']) await sandbox.answer((await sandbox.next(5_000)).body.run, answer);
      await send(message('runs in Slack'));
      const { body: running } = await sandbox.next(5_000);
      await send(message('waits in Slack'));
      for (const event of order) await send(event);
      expect(await live()).to.deep.equal(['app: in the app', 'app: app words']);
      expect(await connection()).to.deep.include({ state: 'ENDED', bot_token_sealed: null });
      const late = await sandbox.answer(running.run, 'too late');
      expect([late.status < 300, await live()]).to.deep.equal([true, ['app: in the app', 'app: app words']]);
      const turns = await run(database.db, sql.unsafe`select status from mentor_turn order by created_at`);
      expect(turns.map(({ status }) => status)).to.deep.equal(['DONE', 'DONE', 'STOPPED', 'STOPPED']);
      const open = (await actions(database.db)).filter(({ state }) => ['PENDING', 'RETRY', 'SENDING'].includes(state));
      expect(open.every(({ turn_id }) => turn_id !== null)).to.equal(true);
      const kept = await run(database.db, sql.unsafe`select 1 from slack_event where payload is not null`);
      expect(kept).to.deep.equal([]);
      await send(message('after it'));
      expect(await live()).to.deep.equal(['app: in the app', 'app: app words']);
    });
  }

  it('parks what was to be said, and tries it again after the team is connected again', async () => {
    await run(
      database.db,
      sql.unsafe`insert into outbox_action (id, kind, workspace_id, team_id, channel_id, thread_ts, notice, user_id, event_id, due_at)
        values (${uuidv7()}, 'SLACK_NOTICE', ${scene.person.workspaceId}, 'T0TEAM', 'D0ADA', '1.2', 'FULL', 'U0ADA', 'e', now() + interval '1 hour') returning 1`,
    );
    await send(UNINSTALLED);
    expect((await actions(database.db))[0]).to.include({ state: 'PARKED', reason: 'disconnected' });
    await connect(database.db, scene.person);
    expect((await actions(database.db))[0]).to.include({ state: 'RETRY', reason: 'connected' });
  });

  it('is taken up by the next server when the one that began it is gone', async () => {
    await send(message('to be erased'));
    await beginDisconnect(database.db, 'T0TEAM', 'operator');
    expect([(await connection())?.['state'], (await live()).length]).to.deep.equal(['ENDING', 1]);
    const other = await makePerson(database.db);
    const again = await connect(database.db, other).then(
      () => 'connected',
      () => 'refused',
    );
    expect(again).to.equal('refused');
    await new Disconnector({ db: database.db, log: silentLog, actors: scene.rig.actors }).run();
    expect([(await connection())?.['state'], await live()]).to.deep.equal(['ENDED', []]);
    await connect(database.db, other);
  });

  it('has erased everything when it says so, also when another team is being disconnected at that moment', async () => {
    const other = await makePerson(database.db);
    await connect(database.db, other, 'T0OTHER');
    const steered = new SteeredDatabase(database.db);
    const [looked, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let looks = 0;
    steered.after = async ({ name }) => {
      if (name !== 'slack_ending') return;
      looks += 1;
      if (looks > 1) return;
      looked.resolve();
      await goOn.promise;
    };
    const disconnector = new Disconnector({ db: steered, log: silentLog, actors: scene.rig.actors });
    const first = disconnector.end('T0OTHER', 'operator');
    await looked.promise;
    await send(message('to be erased'));
    const second = disconnector.end('T0TEAM', 'operator');
    await until(
      'it has begun',
      async () => (await run(database.db, sql.unsafe`select 1 from slack_connection where state = 'ENDING'`)).length === 2,
    );
    goOn.resolve();
    await second;
    expect(await live()).to.deep.equal([]);
    expect(await first).to.equal(true);
    expect(await run(database.db, sql.unsafe`select distinct state from slack_connection`)).to.deep.equal([{ state: 'ENDED' }]);
  });

  it('erases, or keeps out, each question that arrives during it', async () => {
    const people = await Promise.all(Array.from({ length: 8 }, () => makePerson(database.db, scene.person.workspaceId)));
    const mains = await Promise.all(
      people.map(async (one) => {
        const id = uuidv7<'conversation'>();
        await run(
          database.db,
          sql.unsafe`insert into mentor_conversation (id, workspace_id, account_id) values (${id}, ${one.workspaceId}, ${one.accountId}) returning 1`,
        );
        return { one, id };
      }),
    );
    const outcomes = new Map<string, number>();
    const submit = async ({ one, id }: (typeof mains)[number]) => {
      const rows = await loadConversation(database.db, id);
      const ids = { turnId: uuidv7<'turn'>(), entryId: uuidv7<'entry'>(), runId: uuidv7<'run'>() };
      const slackOrigin = origin();
      const result = await submitQuestion(database.db, {
        ...{
          ...one,
          ...ids,
          conversationId: id,
          version: rows?.version ?? 0,
          requestId: slackOrigin.messageTs,
          surface: 'slack',
          text: 'words',
        },
        ...{ page: null, slack: slackOrigin, maxFollowUps: 500, sandboxId: null, times: TIMES },
      });
      outcomes.set(result.kind, (outcomes.get(result.kind) ?? 0) + 1);
      return result.kind;
    };
    for (let round = 0; round < 6; round++) {
      const flood = mains.map(async (main) => {
        while ((await submit(main)) !== 'disconnected');
      });
      const stored = outcomes.get('written') ?? 0;
      await until('questions are stored', () => (outcomes.get('written') ?? 0) > stored + 10);
      await new Disconnector({ db: database.db, log: silentLog, actors: scene.rig.actors }).end('T0TEAM', 'operator');
      await Promise.all(flood);
      expect(await live()).to.deep.equal([]);
      const [open] = await run(database.db, sql.unsafe`select count(*)::int as n from mentor_turn where status in ('QUEUED', 'RUNNING')`);
      expect(open?.['n']).to.equal(0);
      await connect(database.db, scene.person);
    }
    expect(outcomes.get('disconnected')).to.equal(48);
  });
});
