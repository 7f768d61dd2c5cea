/**
 * Owns: what an admin may do with models, and the sentences that refuse it. Each write takes effect with the next turn that is admitted; a
 * turn that runs keeps what it was admitted with, except that a disabled connection is called no more and a new key is used at once.
 */

import { listBudgets, writeBudget } from '../../db/models/budgets.ts';
import { addModel, bind, findModel, findWorkspace, listBindings, listModels, priceModel, unbind } from '../../db/models/catalogue.ts';
import { addConnection, disableConnection, findConnection, listConnections, setConnectionKey } from '../../db/models/connections.ts';
import type { Executor } from '../../db/pool.ts';
import type { BindingInput, BudgetInput, ConnectionChange, ConnectionInput, ModelInput, Price } from '../contract/admin.ts';
import { SMALLEST_MODEL } from '../contract/limits.ts';
import { RuntimeFault } from '../kernel/faults.ts';
import { uuidv7 } from '../kernel/ids.ts';
import { type SecretBox, SecretError } from '../kernel/secret-box.ts';

export interface ModelAdminDeps {
  readonly db: Executor;
  readonly secrets: SecretBox;
  /** Judges where an address may lead; `why` is a sentence for the admin. */
  readonly checkBaseUrl: (text: string) => { readonly kind: 'ok'; readonly url: URL } | { readonly kind: 'refused'; readonly why: string };
}

const unknown = (what: string, name: string) =>
  new RuntimeFault('NOT_FOUND', `There is no ${what} "${name}". Look at the list for its name.`);
const taken = (what: string, name: string) => new RuntimeFault('NAME_TAKEN', `There is a ${what} "${name}" already. Choose another name.`);
const refused = (why: string) => new RuntimeFault('BAD_REQUEST', why);

export class ModelAdmin {
  readonly #deps: ModelAdminDeps;

  constructor(deps: ModelAdminDeps) {
    this.#deps = deps;
  }

  connections = () => listConnections(this.#deps.db);
  models = () => listModels(this.#deps.db);
  bindings = () => listBindings(this.#deps.db);
  budgets = () => listBudgets(this.#deps.db);

  async addConnection({ name, api, baseUrl, apiKey }: ConnectionInput): Promise<void> {
    const checked = this.#deps.checkBaseUrl(baseUrl);
    if (checked.kind === 'refused') throw refused(checked.why);
    const id = uuidv7();
    const sealed = apiKey === undefined ? null : this.#seal(apiKey, id);
    if (!(await addConnection(this.#deps.db, { id, name, api, baseUrl: checked.url.toString(), sealed }))) throw taken('connection', name);
  }

  async changeConnection(name: string, { disabled, apiKey }: ConnectionChange): Promise<void> {
    const { db } = this.#deps;
    const found = await findConnection(db, name);
    if (!found) throw unknown('connection', name);
    if (apiKey !== undefined) {
      if (found.source === 'environment') throw refused('The key of this connection is HEPH_LLM_API_KEY. Change it there and restart.');
      await setConnectionKey(db, found.id, this.#seal(apiKey, found.id));
    }
    if (disabled !== undefined) await disableConnection(db, found.id, disabled);
  }

  async addModel(model: ModelInput): Promise<void> {
    const connection = await findConnection(this.#deps.db, model.connection);
    if (!connection) throw unknown('connection', model.connection);
    if (connection.source === 'environment')
      throw refused('This connection has the one model of HEPH_LLM_MODEL. Add a connection for others.');
    if (!(await addModel(this.#deps.db, connection.id, model))) throw taken('model', model.name);
  }

  async priceModel(name: string, price: Price): Promise<void> {
    if (!(await priceModel(this.#deps.db, name, price))) throw unknown('model', name);
  }

  async bind({ workspace, model, timeoutMs }: BindingInput): Promise<void> {
    const { db } = this.#deps;
    const workspaceId = await this.#workspaceId(workspace);
    if (model === null) return unbind(db, workspaceId);
    const found = await findModel(db, model);
    if (!found) throw unknown('model', model);
    const { contextTokens, outputTokens } = SMALLEST_MODEL;
    if (found.contextTokens < contextTokens || found.outputTokens < outputTokens) {
      throw refused(`A conversation needs a model with at least ${contextTokens} tokens of context and ${outputTokens} of output.`);
    }
    await bind(db, { workspaceId, modelId: found.id, timeoutMs });
  }

  async setBudget({ workspace, monthlyLimit }: BudgetInput): Promise<void> {
    await writeBudget(this.#deps.db, await this.#workspaceId(workspace), monthlyLimit);
  }

  async #workspaceId(slug: string | null): Promise<string | null> {
    if (slug === null) return null;
    const id = await findWorkspace(this.#deps.db, slug);
    if (id === null) throw unknown('workspace', slug);
    return id;
  }

  #seal(apiKey: string, owner: string): Buffer {
    try {
      return this.#deps.secrets.seal(apiKey, owner);
    } catch (error) {
      if (error instanceof SecretError) throw refused(error.message);
      throw error;
    }
  }
}
