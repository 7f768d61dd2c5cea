/**
 * Owns: the repositories of a workspace, as its turns, its admins and the loader read and write them.
 */
import { z } from 'zod';
import type { RepositoryView } from '../../src/contract/repositories.ts';
import type { WorkspaceId } from '../../src/kernel/ids.ts';
import { type Executor, sql } from '../pool.ts';

const idRow = z.object({ id: z.string() });
const repositoryRow = z.object({
  id: z.string(),
  clone_url: z.string(),
  chosen_branch: z.string().nullable(),
  remote_branch: z.string().nullable(),
});

export interface Repository {
  readonly id: string;
  readonly cloneUrl: string;
  readonly chosenBranch: string | null;
  readonly remoteBranch: string | null;
}

/** A repository is found in its own workspace only. */
export async function findRepository(db: Executor, workspaceId: WorkspaceId, name: string): Promise<Repository | null> {
  const row = await db.maybeOne(sql.prepared('repositories_find', repositoryRow)`
    select id, clone_url, chosen_branch, remote_branch from repository where workspace_id = ${workspaceId} and name = ${name}`);
  return row && { id: row.id, cloneUrl: row.clone_url, chosenBranch: row.chosen_branch, remoteBranch: row.remote_branch };
}

const listedRow = z.object({
  name: z.string(),
  branch: z.string().nullable(),
  seen: z.boolean(),
  requests: z.array(z.number()),
  total: z.number(),
});

export interface ListedRepository {
  readonly name: string;
  /** The default branch; null: not known, or none. */
  readonly branch: string | null;
  /** The remote has answered once. */
  readonly seen: boolean;
  /** Numbers of requests, newest first. */
  readonly requests: readonly number[];
}

/** The first repositories of a workspace by name, and how many there are. */
export async function listForTurn(
  db: Executor,
  workspaceId: WorkspaceId,
  { repositoriesMax, requestsMax }: { readonly repositoriesMax: number; readonly requestsMax: number },
): Promise<{ readonly repositories: readonly ListedRepository[]; readonly total: number }> {
  const rows = await db.any(sql.prepared('repositories_for_turn', listedRow)`
    select r.name, coalesce(r.chosen_branch, r.remote_branch) as branch, r.seen_at is not null as seen,
      (select count(*) from repository c where c.workspace_id = r.workspace_id) as total,
      array(select q.number from repository_request q where q.repository_id = r.id order by q.number desc limit ${requestsMax}) as requests
    from repository r where r.workspace_id = ${workspaceId} order by r.name limit ${repositoriesMax}`);
  const repositories = rows.map(({ name, branch, seen, requests }) => ({ name, branch, seen, requests }));
  return { repositories, total: rows[0]?.total ?? 0 };
}

export interface SeenRemote {
  readonly headBranch: string | null;
  readonly requests: readonly { readonly number: number; readonly ref: string }[];
}

/** Writes what the remote has now, in one statement. Nothing when the repository was removed meanwhile. */
export async function noteRemote(db: Executor, repositoryId: string, { headBranch, requests }: SeenRemote): Promise<void> {
  const [numbers, refs] = [requests.map(({ number }) => number), requests.map(({ ref }) => ref)];
  await db.any(sql.prepared('repositories_note_remote', idRow)`
    with seen as (
      update repository set remote_branch = ${headBranch}, seen_at = clock_timestamp() where id = ${repositoryId} returning id
    ), wanted as (
      select seen.id, w.number, w.ref from seen, unnest(${sql.array(numbers, 'int4')}, ${sql.array(refs, 'text')}) as w(number, ref)
    ), gone as (
      delete from repository_request q using seen where q.repository_id = seen.id and q.number <> all (${sql.array(numbers, 'int4')})
    ), written as (
      insert into repository_request (repository_id, number, ref) select id, number, ref from wanted
      on conflict (repository_id, number) do update set ref = excluded.ref
    )
    select id from seen`);
}

/** Every repository of every workspace, for the sweep of mirrors. */
export async function repositoryIds(db: Executor): Promise<ReadonlySet<string>> {
  const rows = await db.any(sql.prepared('repositories_ids', idRow)`select id from repository`);
  return new Set(rows.map(({ id }) => id));
}

/** False: the workspace has one with this name. */
export async function addRepository(
  db: Executor,
  repository: Pick<Repository, 'id' | 'cloneUrl' | 'chosenBranch'> & { readonly workspaceId: WorkspaceId; readonly name: string },
): Promise<boolean> {
  const { id, workspaceId, name, cloneUrl, chosenBranch } = repository;
  const row = await db.maybeOne(sql.prepared('repositories_add', idRow)`
    insert into repository (id, workspace_id, name, clone_url, chosen_branch) values (${id}, ${workspaceId}, ${name}, ${cloneUrl}, ${chosenBranch})
    on conflict (workspace_id, name) do nothing returning id`);
  return row !== null;
}

/** The id of the removed one; null when there is none with this name. */
export async function removeRepository(db: Executor, workspaceId: WorkspaceId, name: string): Promise<string | null> {
  const row = await db.maybeOne(sql.prepared('repositories_remove', idRow)`
    delete from repository where workspace_id = ${workspaceId} and name = ${name} returning id`);
  return row?.id ?? null;
}

const viewRow = z.object({
  workspace: z.string(),
  name: z.string(),
  clone_url: z.string(),
  branch: z.string().nullable(),
  requests: z.number(),
  seen_at: z.string().nullable(),
});

export async function listRepositories(db: Executor): Promise<readonly RepositoryView[]> {
  const rows = await db.any(sql.prepared('repositories_list', viewRow)`
    select w.slug as workspace, r.name, r.clone_url, coalesce(r.chosen_branch, r.remote_branch) as branch, r.seen_at,
      (select count(*) from repository_request q where q.repository_id = r.id) as requests
    from repository r join workspace w on w.id = r.workspace_id order by w.slug, r.name`);
  return rows.map(({ workspace, name, clone_url: cloneUrl, branch, requests, seen_at: seenAt }) => ({
    ...{ workspace, name, cloneUrl, branch, requests, seenAt },
  }));
}

const slugRow = z.object({ id: z.string() });

/** The workspace with a slug, or the only one when `slug` is null; null when there is none, or more than one. */
export async function findWorkspaceFor(db: Executor, slug: string | null): Promise<WorkspaceId | null> {
  const rows = await db.any(sql.prepared('repositories_workspace', slugRow)`
    select id from workspace where ${slug}::text is null or slug = ${slug} limit 2`);
  return rows.length === 1 ? (rows[0]?.id as WorkspaceId) : null;
}
