/**
 * Owns: what an admin may read and set of members and of what was spent, and the sentences that refuse it.
 */
import { findWorkspace } from '../../db/models/catalogue.ts';
import { allowAi } from '../../db/models/members.ts';
import { readCalls, readUsage } from '../../db/models/usage.ts';
import type { Executor } from '../../db/pool.ts';
import type { CallView, MemberChange, UsageView } from '../contract/admin.ts';
import { RuntimeFault } from '../kernel/faults.ts';
import { isUuid } from '../kernel/ids.ts';

const unknown = (what: string, name: string, look: string) =>
  new RuntimeFault('NOT_FOUND', `There is no ${what} "${name}". Look at ${look} for it.`);

export class MemberAdmin {
  readonly #db: Executor;

  constructor(db: Executor) {
    this.#db = db;
  }

  /** `account` is an account's id. */
  async changeMember(account: string, { workspace, aiAllowed }: MemberChange): Promise<void> {
    const workspaceId = await this.#workspaceId(workspace);
    const changed = isUuid(account) ? await allowAi(this.#db, { accountId: account, workspaceId }, aiAllowed) : 0;
    if (changed === 0) throw unknown('member', account, 'heph member list');
  }

  /** `month` is `YYYY-MM`; null: the present one. */
  async usage(month: string | null, workspace: string | null): Promise<readonly UsageView[]> {
    return readUsage(this.#db, month, await this.#workspaceId(workspace));
  }

  async calls(turnId: string): Promise<readonly CallView[]> {
    if (!isUuid(turnId))
      throw new RuntimeFault('BAD_REQUEST', 'A turn is named by its id, as the answer to its question has it (turn.id).');
    return readCalls(this.#db, turnId);
  }

  async #workspaceId(slug: string | null): Promise<string | null> {
    if (slug === null) return null;
    const id = await findWorkspace(this.#db, slug);
    if (id === null) throw unknown('workspace', slug, 'heph member list');
    return id;
  }
}
