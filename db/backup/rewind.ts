/**
 * Owns: what a restore must not repeat. It goes back in time; what the old installation said to the world since the backup stays said.
 * rule: R14 (what may have been posted since is of unknown outcome: it is read back, or an operator decides)
 * Everything else puts itself right when a server starts: hosts of the old installation are dead, so attempts are taken back, and calls that
 * were open are closed as unknown.
 */
import type pg from 'pg';

/** As `outbox_action.reason` says it, and `heph outbox list`. */
const WHY = 'restored';

export interface Rewound {
  /** Posts that were waiting: a server reads Slack before it sends one. */
  readonly postsInDoubt: number;
  /** Turns of Slack that were open: their answers may have been posted under names that this database never knew; an operator decides. */
  readonly answersInDoubt: number;
}

/** Runs inside of the restore's transaction. A backup from before Slack has none. */
export async function rewind(client: pg.Client): Promise<Rewound> {
  const slack = await client.query('select 1 from pg_class where oid = to_regclass($1)', ['outbox_action']);
  if (slack.rowCount === 0) return { postsInDoubt: 0, answersInDoubt: 0 };
  const parameters = [WHY];
  await client.query(
    `update outbox_action set state = 'RETRY', moved_by = 'server', reason = $1, due_at = clock_timestamp() where state = 'PARKED'`,
    parameters,
  );
  // By the steps that the trigger outbox_action_step allows, so that outbox_step tells the whole story.
  await client.query(
    `update outbox_action set state = 'SENDING', moved_by = 'server', reason = $1, lease_id = coalesce(lease_id, gen_random_uuid()),
       lease_until = clock_timestamp(), started_at = coalesce(started_at, created_at), due_at = null
     where state in ('PENDING', 'RETRY')`,
    parameters,
  );
  const posts = await client.query(
    `update outbox_action set state = 'UNCERTAIN', moved_by = 'server', reason = $1, reads = 0, lease_until = null, due_at = clock_timestamp()
     where state = 'SENDING'`,
    parameters,
  );
  const answers = await client.query(
    `insert into outbox_action (id, kind, workspace_id, team_id, channel_id, thread_ts, turn_id, state, reason, lease_id, started_at)
     select gen_random_uuid(), 'SLACK_POST', s.workspace_id, s.team_id, s.channel_id, s.thread_ts, s.turn_id, 'UNCERTAIN', $1, gen_random_uuid(),
       t.created_at
     from slack_turn s join mentor_turn t on t.id = s.turn_id join agent_run r on r.turn_id = t.id
     where r.state <> 'ENDED' order by s.turn_id on conflict (turn_id) do nothing`,
    parameters,
  );
  return { postsInDoubt: posts.rowCount ?? 0, answersInDoubt: answers.rowCount ?? 0 };
}
