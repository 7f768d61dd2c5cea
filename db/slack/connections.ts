/**
 * Owns: teams that are connected. A connection is ACTIVE until it is disconnected; then what was written through it is erased (disconnect.ts).
 */
import { z } from 'zod';
import type { SlackConnectionView } from '../../src/contract/slack.ts';
import type { WorkspaceId } from '../../src/kernel/ids.ts';
import type { SecretStore } from '../../src/kernel/rotate-secrets.ts';
import { type Executor, sql } from '../pool.ts';

export interface SlackConnection {
  readonly id: string;
  readonly workspaceId: WorkspaceId;
  readonly teamId: string;
  readonly botUserId: string;
  readonly tokenSealed: Buffer;
}

const bytes = z.custom<Buffer>((value) => Buffer.isBuffer(value));
const connectionRow = z.object({ id: z.string(), workspace_id: z.string(), team_id: z.string(), bot_user_id: z.string(), token: bytes });

/** The active connection of a team. */
export async function findTeam(db: Executor, teamId: string): Promise<SlackConnection | null> {
  const row = await db.maybeOne(sql.prepared('slack_find_team', connectionRow)`
    select id, workspace_id, team_id, bot_user_id, bot_token_sealed as token from slack_connection where team_id = ${teamId} and state = 'ACTIVE'`);
  return (
    row && {
      ...{ id: row.id, workspaceId: row.workspace_id as WorkspaceId, teamId: row.team_id },
      ...{ botUserId: row.bot_user_id, tokenSealed: row.token },
    }
  );
}

const idRow = z.object({ id: z.string() });

/**
 * Connects a team, or gives its active connection to this workspace a new token; what was parked for the team is tried again. False: the team
 * or the workspace has another connection, or one that is being ended.
 */
export async function connectTeam(tx: Executor, connection: SlackConnection): Promise<boolean> {
  const { id, workspaceId, teamId, botUserId, tokenSealed } = connection;
  const row = await tx.maybeOne(sql.type(idRow)`
    with renewed as (
      update slack_connection set bot_token_sealed = ${sql.binary(tokenSealed)}, bot_user_id = ${botUserId}
      where id = ${id} and team_id = ${teamId} and workspace_id = ${workspaceId} and state = 'ACTIVE' returning id
    ), added as (
      insert into slack_connection (id, workspace_id, team_id, bot_user_id, bot_token_sealed)
      select ${id}, ${workspaceId}, ${teamId}, ${botUserId}, ${sql.binary(tokenSealed)}
      where not exists (select from renewed) and not exists (select from slack_connection where id = ${id})
      on conflict do nothing returning id
    )
    select id from renewed union all select id from added`);
  if (!row) return false;
  await tx.any(sql.type(idRow)`
    update outbox_action set state = 'RETRY', moved_by = 'server', reason = 'connected', due_at = clock_timestamp()
    where state = 'PARKED' and team_id = ${teamId} and workspace_id = ${workspaceId} returning id`);
  return true;
}

const viewRow = z.object({
  workspace: z.string(),
  team_id: z.string(),
  state: z.string(),
  why: z.string().nullable(),
  created_at: z.string(),
});

/** Every connection that is not ended. */
export async function listTeams(db: Executor): Promise<readonly SlackConnectionView[]> {
  const rows = await db.any(sql.prepared('slack_list', viewRow)`
    select w.slug as workspace, k.team_id, k.state, k.why, k.created_at from slack_connection k join workspace w on w.id = k.workspace_id
    where k.state <> 'ENDED' order by k.created_at`);
  return rows.map((row) => ({
    ...{ team: row.team_id, workspace: row.workspace, state: row.state as SlackConnectionView['state'], why: row.why },
    connectedAt: row.created_at,
  }));
}

const sealedRow = z.object({ id: z.string(), sealed: bytes });

/** The token of each connection, for a rotation. */
export function slackTokens(db: Executor): SecretStore {
  return {
    all: () =>
      db.any(sql.type(sealedRow)`
        select id, bot_token_sealed as sealed from slack_connection where bot_token_sealed is not null order by id`),
    replace: async ({ id, from, to }) => {
      const row = await db.maybeOne(sql.type(idRow)`
        update slack_connection set bot_token_sealed = ${sql.binary(to)}
        where id = ${id} and bot_token_sealed = ${sql.binary(from)} returning id`);
      return row !== null;
    },
  };
}
