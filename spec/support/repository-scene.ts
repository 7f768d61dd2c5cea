/**
 * A workspace, a remote repository and servers' git loaders for specs; everything real but the sandbox.
 */
import type { MentorContextRequest } from '../../db/context/read-request.ts';
import { type Database, sql } from '../../db/pool.ts';
import { type GitLoaderSettings, type GitRepositories, openGitRepositories } from '../../src/context/loaders/git/index.ts';
import type { LoadResult } from '../../src/context/spi.ts';
import type { LoadManifest } from '../../src/contract/agent.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import { silentLog } from '../../src/kernel/log.ts';
import { type FileSpec, GitFolder, prepared, type TestRepository } from './git-repositories.ts';
import { emptyLedger, makePerson, run } from './ledger.ts';

export const MIB = 1024 * 1024;
const BOUNDS = { snapshotMaxBytes: 64 * MIB, mirrorMaxBytes: 256 * MIB, archivesMaxBytes: 256 * MIB };

/** What came of a load whose archive is not read. */
export function whatCame(result: LoadResult): string {
  if (result.kind !== 'prepared') return `${result.kind}: ${result.text}`;
  result.body.destroy();
  return 'prepared';
}

/** The manifest of a load whose archive is not read. */
export function manifest(result: LoadResult): LoadManifest {
  const load = prepared(result);
  load.body.destroy();
  return load.manifest;
}

export const oneFile = (content: string): FileSpec[] => [{ path: 'README.md', content }];

type Opened = GitRepositories & { readonly dataDir: string };

/** Registers hooks: an empty remote and a workspace of its own for each test. */
export function useRepositories(database: { readonly db: Database }) {
  let folder: GitFolder;
  let remote: TestRepository;
  let request: MentorContextRequest;
  before(async () => {
    folder = await GitFolder.open();
  });
  after(() => folder.close());
  beforeEach(async () => {
    await emptyLedger(database.db);
    await run(database.db, sql.unsafe`truncate repository cascade`);
    const { workspaceId, accountId } = await makePerson(database.db);
    const [workspace] = await run(database.db, sql.unsafe`select slug from workspace where id = ${workspaceId}`);
    request = {
      workspace: { id: workspaceId, name: 'W', slug: String(workspace?.['slug']) },
      account: { id: accountId, displayName: 'Ada', timeZone: 'Europe/Berlin' },
      ...{ conversationId: uuidv7<'conversation'>(), turnId: uuidv7<'turn'>(), questionEntryId: uuidv7<'entry'>() },
      now: '2026-10-12T12:41:00.000Z',
    };
    remote = await folder.repository();
  });
  return {
    get folder() {
      return folder;
    },
    get remote() {
      return remote;
    },
    get request() {
      return request;
    },
    /** A server's git loader, with a data folder of its own unless it is the successor of another. It always asks the remote. */
    async open(more: Partial<GitLoaderSettings> = {}, dataDir?: string): Promise<Opened> {
      const settings = { program: 'git', searchPath: process.env['PATH'] ?? '', allowFile: true, freshMs: 0, ...BOUNDS };
      const dir = dataDir ?? (await folder.folder());
      const resolveHost = async () => ['192.0.2.1'];
      const opened = await openGitRepositories({ ...settings, dataDir: dir, ...more }, { db: database.db, log: silentLog, resolveHost });
      if (!opened) throw new Error('no git');
      return { ...opened, dataDir: dir };
    },
    add: (git: GitRepositories, name = 'project', branch: string | null = null) =>
      git.admin.add({ cloneUrl: remote.url, name, workspace: request.workspace.slug, branch }),
    load: (git: GitRepositories, name = 'project'): Promise<LoadResult> =>
      git.loader.load(request, `repos/${name}`, new AbortController().signal),
  };
}
