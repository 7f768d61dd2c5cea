/**
 * Owns: what an admin may do with workspaces and members, and the sentences that refuse it.
 */
import {
  addMember,
  addWorkspace,
  changeMember,
  findAccountByEmail,
  findWorkspaceId,
  listMembers,
  listWorkspaces,
} from '../../db/people/members.ts';
import type { Database } from '../../db/pool.ts';
import type { MemberChange, MemberInput, MemberView, WorkspaceInput, WorkspaceView } from '../contract/people.ts';
import { RuntimeFault } from '../kernel/faults.ts';
import { type AccountId, isUuid, type WorkspaceId } from '../kernel/ids.ts';
import { normaliseEmail } from './email.ts';

export interface PeopleAdminDeps {
  readonly db: Database;
  /** IANA name, for new accounts. */
  readonly timeZone: string;
}

/** Rows of one answer. */
const MEMBERS_SHOWN_MAX = 10_000;

export class PeopleAdmin {
  readonly #deps: PeopleAdminDeps;

  constructor(deps: PeopleAdminDeps) {
    this.#deps = deps;
  }

  workspaces = (): Promise<readonly WorkspaceView[]> => listWorkspaces(this.#deps.db);

  /** null: of all workspaces. */
  async members(slug: string | null): Promise<readonly MemberView[]> {
    return listMembers(this.#deps.db, slug === null ? null : await this.#workspace(slug), MEMBERS_SHOWN_MAX);
  }

  async addWorkspace(input: WorkspaceInput): Promise<void> {
    if (await addWorkspace(this.#deps.db, input)) return;
    throw new RuntimeFault('NAME_TAKEN', `There is a workspace "${input.slug}" already. Choose another slug.`);
  }

  async addMember({ workspace, email, role, name }: MemberInput): Promise<void> {
    const { db, timeZone } = this.#deps;
    const workspaceId = await this.#workspace(workspace);
    await addMember(db, { workspaceId, email: requireEmail(email), role, name: name ?? null, timeZone });
  }

  async changeMember({ workspace, member, role }: MemberChange): Promise<void> {
    const { db } = this.#deps;
    const workspaceId = await this.#workspace(workspace);
    const accountId = isUuid(member) ? (member as AccountId) : await findAccountByEmail(db, requireEmail(member));
    if (accountId && (await changeMember(db, { workspaceId, accountId, role }))) return;
    const text = `"${member}" is no member of the workspace "${workspace}". Look at the list: heph member list --workspace ${workspace}.`;
    throw new RuntimeFault('NOT_FOUND', text);
  }

  async #workspace(slug: string): Promise<WorkspaceId> {
    const id = await findWorkspaceId(this.#deps.db, slug);
    if (id) return id;
    throw new RuntimeFault('NOT_FOUND', `There is no workspace "${slug}". Look at the list for its slug, or add it.`);
  }
}

function requireEmail(text: string): string {
  const email = normaliseEmail(text);
  if (email) return email;
  throw new RuntimeFault('BAD_REQUEST', `"${text}" is no email address. Write it like ada@example.com.`);
}
