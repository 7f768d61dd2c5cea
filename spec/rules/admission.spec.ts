/**
 * Admission: what makes a turn start or fail before it starts, by which model, under which deadline. rule: R6, R8
 * Each refusal of the seed ("How a turn fails") is one test, named by it. Billing is in billing.spec.ts.
 */
import { expect } from 'chai';
import { failureTexts } from '../../actors/index.ts';
import { readTurnFacts } from '../../db/context/read-facts.ts';
import { refuseOldest, refuseTurns } from '../../db/ledger/refuse.ts';
import { sandboxDemand } from '../../db/ledger/sandboxes.ts';
import { type Database, sql } from '../../db/pool.ts';
import { useDatabase } from '../support/database.ts';
import { ask, claimFor, claimOne, emptyLedger, makeMain, makePerson, type Person, run, TIMES } from '../support/ledger.ts';
import { admission, bindAdminModel, bindModel, setBudget, spend } from '../support/models.ts';
import { claimed, scene, turnRow } from '../support/scene.ts';

const TEXTS = failureTexts('Heph').refusals;
const PRICED = { kind: 'PRICED', input: '2.5', output: '10' } as const;

/** What an operator or a person does, and the refusal that follows. */
const CAUSES: readonly [sentence: string, code: keyof typeof TEXTS, cause: (db: Database, person: Person) => Promise<unknown>][] = [
  ['no model is bound', 'NO_MODEL', (db) => run(db, sql.unsafe`delete from llm_binding returning 1`)],
  [
    'the connection of its model is disabled',
    'NO_MODEL',
    (db) => run(db, sql.unsafe`update llm_connection set disabled_at = clock_timestamp() returning 1`),
  ],
  [
    'the member has not chosen AI',
    'AI_CHOICE',
    (db, { accountId }) => run(db, sql.unsafe`update workspace_member set ai_allowed = false where account_id = ${accountId} returning 1`),
  ],
  [
    "the workspace's budget is spent",
    'BUDGET',
    async (db, { workspaceId }) => {
      await bindModel(db, { price: PRICED });
      await setBudget(db, workspaceId, '5');
      await spend(db, workspaceId, '5');
    },
  ],
  [
    "the installation's budget is spent, by whichever workspace",
    'BUDGET',
    async (db) => {
      const other = await makePerson(db);
      await bindModel(db, { price: PRICED });
      await setBudget(db, null, '5');
      await spend(db, other.workspaceId, '7.01');
    },
  ],
  [
    'its usage is unpriced and a budget applies',
    'UNPRICED',
    async (db, { workspaceId }) => {
      await bindAdminModel(db, workspaceId);
      await setBudget(db, null, '1000');
    },
  ],
  ['its model has less context than 32,768 tokens', 'MODEL_TOO_SMALL', (db) => bindModel(db, { contextTokens: 32_767 })],
  ['its model has less output than 4,096 tokens', 'MODEL_TOO_SMALL', (db) => bindModel(db, { outputTokens: 4_095 })],
  [
    'the breaker of its connection is open',
    'MODEL_PAUSED',
    (db) => run(db, sql.unsafe`update llm_connection set paused_until = clock_timestamp() + interval '30 s' returning 1`),
  ],
  [
    'the erasure of the personal data was requested',
    'PERSON_ERASED',
    (db, { accountId }) =>
      run(db, sql.unsafe`update account set erasure_requested_at = clock_timestamp() where id = ${accountId} returning 1`),
  ],
];

describe('admission', () => {
  const database = useDatabase();
  beforeEach(() => emptyLedger(database.db));
  afterEach(() => run(database.db, sql.unsafe`truncate llm_connection cascade`));

  async function errorOf(turnId: string) {
    const [row] = await run(database.db, sql.unsafe`select error_code, error_text from mentor_turn where id = ${turnId}`);
    return row;
  }

  for (const [sentence, code, cause] of CAUSES) {
    it(`ends a turn FAILED before the loop runs it when ${sentence}`, async () => {
      const { db, person, conversationId, sandbox } = await scene(database.db);
      const asked = await ask(db, person, conversationId);
      expect(await admission(db, person)).to.not.have.property('refusal');
      await cause(db, person);
      const { grants, refused } = await claimFor(db, [{ conversationId, sandboxId: sandbox.id }], TIMES);
      expect(grants).to.deep.equal([]);
      expect(refused).to.have.length(1);
      expect(refused[0]).to.include({ turnId: asked.turnId, runId: asked.runId, refusal: code, version: 2 });
      expect(await turnRow(db, asked.turnId)).to.include({ status: 'FAILED', attempt: 0, state: 'ENDED', slots: 0 });
      expect(await errorOf(asked.turnId)).to.deep.equal({ error_code: code, error_text: TEXTS[code] });
    });
  }

  it('says in the words of the seed that the model does not respond', () => {
    const said = failureTexts('Hephaestus').refusals.MODEL_PAUSED;
    expect(said).to.equal(
      "Hephaestus's AI model is not responding right now, so Hephaestus did not start this reply. Try again in a few minutes.",
    );
  });

  it('admits at each limit: one unit below a budget, the smallest model, a pause that is over', async () => {
    const { db } = database;
    const person = await makePerson(db);
    await bindModel(db, { contextTokens: 32_768, outputTokens: 4_096, price: PRICED });
    await setBudget(db, person.workspaceId, '5');
    await spend(db, person.workspaceId, '4.999999999');
    await run(db, sql.unsafe`update llm_connection set paused_until = clock_timestamp() returning 1`);
    expect(await admission(db, person)).to.include({ contextTokens: 32_768, outputTokens: 4_096, priceKind: 'PRICED', inputPrice: 2.5 });
  });

  it('lets last month, another workspace and a model without a charge spend no budget of this one', async () => {
    const { db } = database;
    const [person, other] = [await makePerson(db), await makePerson(db)];
    await bindModel(db, { price: PRICED });
    await setBudget(db, person.workspaceId, '5');
    await spend(db, other.workspaceId, '100');
    await run(
      db,
      sql.unsafe`insert into llm_spend (month, workspace_id, cost)
        values ((date_trunc('month', clock_timestamp() at time zone 'UTC') - interval '1 month')::date, ${person.workspaceId}, 100) returning 1`,
    );
    expect(await admission(db, person)).to.not.have.property('refusal');
    await spend(db, person.workspaceId, '5');
    expect(await admission(db, person)).to.deep.equal({ refusal: 'BUDGET' });
    await bindModel(db);
    expect(await admission(db, person), 'NO_CHARGE spends nothing').to.not.have.property('refusal');
  });

  it('admits an unpriced model where no budget applies', async () => {
    const { db } = database;
    const [person, other] = [await makePerson(db), await makePerson(db)];
    await bindAdminModel(db, person.workspaceId);
    await setBudget(db, other.workspaceId, '5');
    expect(await admission(db, person)).to.include({ priceKind: 'UNPRICED', inputPrice: null });
  });

  it('freezes the model, its price and its limits with the claim, and takes the deadline from its binding', async () => {
    const it = await claimed(database.db);
    expect(it.grant).to.include({ deadlineMs: 300_000, leaseTtlMs: 60_000 });
    await bindModel(it.db, { providerModel: 'another', contextTokens: 50_000, timeoutMs: 1_000 });
    const facts = await readTurnFacts(it.db, it.grant.runId);
    expect(facts?.admission).to.include({ providerModel: 'provider-model-9', contextTokens: 100_000, deadlineMs: 300_000 });
    const [row] = await run(
      it.db,
      sql.unsafe`select extract(epoch from deadline_at - clock_timestamp())::float as s from agent_run where id = ${it.grant.runId}`,
    );
    expect(row?.['s']).to.be.within(200, 300);
  });

  it('keeps a lease within the claim when the deadline is shorter than it', async () => {
    await bindModel(database.db, { timeoutMs: 5_000 });
    const it = await claimed(database.db);
    expect(it.grant).to.include({ deadlineMs: 5_000, leaseTtlMs: 35_000 });
    const folded = await scene(database.db);
    const asked = await ask(folded.db, folded.person, folded.conversationId, { sandboxId: folded.sandbox.id });
    expect(asked.result).to.deep.include({ claimed: { deadlineMs: 5_000, leaseTtlMs: 35_000 } });
  });

  it("puts a workspace's own binding before the default one, and an admin's before the environment's", async () => {
    const { db } = database;
    const person = await makePerson(db);
    const { modelId } = await bindAdminModel(db, person.workspaceId);
    expect(await admission(db, person)).to.include({ modelId, contextTokens: 64_000, deadlineMs: 120_000 });
    expect(await admission(db, await makePerson(db))).to.include({ model: 'environment' });
    await run(db, sql.unsafe`update llm_binding set workspace_id = null where source = 'admin' returning 1`);
    expect(await admission(db, await makePerson(db))).to.include({ modelId });
  });

  it('refuses no deadline of more than 15 minutes later than when it is bound', async () => {
    const failure = await bindModel(database.db, { timeoutMs: 900_001 }).catch((error: { cause?: { constraint?: string } }) => error);
    expect(failure?.cause?.constraint).to.equal('llm_binding_timeout_ms_check');
  });

  it('gives the slot of a refused turn to the next one', async () => {
    const it = await scene(database.db, 1);
    const asked = await ask(it.db, it.person, it.conversationId);
    const next = await scene(database.db, 1);
    await ask(next.db, next.person, next.conversationId);
    await run(it.db, sql.unsafe`update workspace_member set ai_allowed = false where account_id = ${it.person.accountId} returning 1`);
    const offers = [it, next].map(({ conversationId, sandbox }) => ({ conversationId, sandboxId: sandbox.id }));
    const { grants, refused } = await claimFor(it.db, offers, TIMES);
    expect(refused.map(({ turnId }) => turnId)).to.deep.equal([asked.turnId]);
    expect(grants.map(({ conversationId }) => conversationId)).to.deep.equal([next.conversationId]);
  });

  it('does not fold the claim of a turn that is not admitted into its submit', async () => {
    await bindModel(database.db, { contextTokens: 1_000 });
    const { db, person, conversationId, sandbox } = await scene(database.db);
    const asked = await ask(db, person, conversationId, { sandboxId: sandbox.id });
    expect(asked.result).to.include({ kind: 'written', claimed: null });
    expect(await turnRow(db, asked.turnId)).to.include({ status: 'QUEUED', attempt: 0, slots: 0 });
  });

  it('needs neither a sandbox nor a slot to refuse, and starts no sandbox for it', async () => {
    const { db } = database;
    const [person, other] = [await makePerson(db), await makePerson(db)];
    const conversationId = await makeMain(db, person);
    const [first, second] = [await ask(db, person, conversationId), await ask(db, person, conversationId)];
    const admitted = await ask(db, other, await makeMain(db, other));
    await run(db, sql.unsafe`update workspace_member set ai_allowed = false where account_id = ${person.accountId} returning 1`);
    expect((await sandboxDemand(db, 10)).map((one) => one.workspaceId)).to.deep.equal([other.workspaceId]);
    expect((await refuseTurns(db, [conversationId], TEXTS)).map((turn) => turn.turnId)).to.deep.equal([first.turnId]);
    expect((await refuseOldest(db, 10, TEXTS)).map((turn) => turn.turnId)).to.deep.equal([second.turnId]);
    expect(await refuseOldest(db, 10, TEXTS)).to.deep.equal([]);
    expect(await turnRow(db, admitted.turnId)).to.include({ status: 'QUEUED' });
  });

  it('leaves a turn alone that somebody claimed while it was judged', async () => {
    const { db, person, conversationId, sandbox } = await scene(database.db);
    const asked = await ask(db, person, conversationId);
    await run(db, sql.unsafe`update workspace_member set ai_allowed = false where account_id = ${person.accountId} returning 1`);
    const both = await Promise.all([
      refuseTurns(db, [conversationId], TEXTS),
      refuseTurns(db, [conversationId], TEXTS),
      claimOne(db, conversationId, sandbox.id),
    ]);
    expect(both[0].length + both[1].length, 'ended once at most; the claim may have been first').to.be.within(0, 1);
    expect(await turnRow(db, asked.turnId)).to.include({ status: 'FAILED', slots: 0 });
  });
});
