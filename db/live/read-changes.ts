/**
 * Owns: what an open stream is told after a change, in one statement: the shown entries, the turns, and of those who look who may still see them.
 * One snapshot for all of it: no row is given to somebody who was no member (or signed in) when it was read. rule: R16
 * Does not own: whose a row is to be sent to (the pump compares the owner), snapshots (db/web/read-conversations.ts).
 */
import { z } from 'zod';
import { type Executor, sql } from '../pool.ts';
import { type MemberKey, toMember } from '../web/membership.ts';
import { entryRow, type OwnedEntry, shownEntry, toEntry } from '../web/read-entries.ts';
import { mayWait, type OwnedTurn, toOwnedTurns, turnRow } from '../web/read-turns.ts';

export interface ChangesAsked {
  readonly entryIds: readonly string[];
  readonly turnIds: readonly string[];
  /** Who looks, and by which sessions. */
  readonly members: readonly MemberKey[];
  readonly sessionIds: readonly string[];
}

export interface ChangesRead {
  /** In order of `seq` within a conversation. */
  readonly entries: readonly OwnedEntry[];
  /** In order of their questions within a conversation. */
  readonly turns: readonly OwnedTurn[];
  /** Those of `members` that are active and visible. */
  readonly members: readonly MemberKey[];
  /** Those of `sessionIds` that live. */
  readonly sessionIds: ReadonlySet<string>;
}

const owner = { workspace_id: z.string(), account_id: z.string() };
const changeRow = z.discriminatedUnion('what', [
  entryRow.extend({ what: z.literal('entry'), ...owner }),
  turnRow.extend({ what: z.literal('turn') }),
  z.object({ what: z.literal('member'), ...owner }),
  z.object({ what: z.literal('session'), session_id: z.string() }),
]);
type ChangeRow = z.infer<typeof changeRow>;

/** Ids that do not exist, or are not shown, are left out. A second statement only when a queued turn waits for a slot: its rank. */
export async function readChanges(db: Executor, asked: ChangesAsked): Promise<ChangesRead> {
  const workspaces = asked.members.map(({ workspaceId }) => workspaceId);
  const accounts = asked.members.map(({ accountId }) => accountId);
  const rows = await db.any(sql.prepared('live_read_changes', changeRow)`
    select 'entry' as what, c.workspace_id, c.account_id, e.conversation_id, e.seq as place, e.id, e.seq, e.turn_id, e.kind, e.surface, e.text,
      e.created_at, e.erased_at, e.vote, null::uuid as question_entry_id, null::text as request_id, null::text as status, null::smallint as attempt,
      null::text as error_code, null::text as error_text, null::timestamptz as started_at, null::timestamptz as ended_at,
      null::boolean as may_wait, null::text as session_id
    from mentor_entry e join mentor_conversation c on c.id = e.conversation_id
    where e.id = any(${sql.array(asked.entryIds, 'uuid')}) and ${shownEntry}
    union all
    select 'turn', t.workspace_id, t.account_id, t.conversation_id, t.question_seq, t.id, null, null, null, null, null,
      t.created_at, null, null, t.question_entry_id, t.request_id, t.status, t.attempt, t.error_code, t.error_text, t.started_at, t.ended_at,
      ${mayWait}, null
    from mentor_turn t where t.id = any(${sql.array(asked.turnIds, 'uuid')})
    union all
    select 'member', m.workspace_id, m.account_id, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null,
      null, null, null, null
    from unnest(${sql.array(workspaces, 'uuid')}, ${sql.array(accounts, 'uuid')}) as asked(workspace_id, account_id)
    join workspace_member m using (workspace_id, account_id) where m.active and m.visible
    union all
    select 'session', null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null,
      null, null, null, asked.id
    from unnest(${sql.array(asked.sessionIds, 'text')}) as asked(id) join web_session w on w.id_hash = decode(asked.id, 'hex')
    where w.ends_at > (select clock_timestamp())
    order by conversation_id, place`);
  const of = <What extends ChangeRow['what']>(what: What) =>
    rows.filter((row): row is Extract<ChangeRow, { what: What }> => row.what === what);
  return {
    entries: of('entry').map((row) => ({ ...toMember(row), entry: toEntry(row) })),
    turns: await toOwnedTurns(db, of('turn')),
    members: of('member').map(toMember),
    sessionIds: new Set(of('session').map((row) => row.session_id)),
  };
}
