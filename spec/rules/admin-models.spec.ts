/**
 * The admin side of models: the API of the operations listener and the command line that speaks it, down to what a turn is admitted with.
 */
import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { connectionKeys } from '../../db/models/connections.ts';
import { sql } from '../../db/pool.ts';
import { adminHelp, runAdminCommand } from '../../src/cli/run.ts';
import { checkBaseUrl } from '../../src/gateway/base-url.ts';
import { createOpsListener, type HttpListener, requireLocalAdmin } from '../../src/http/index.ts';
import { silentLog } from '../../src/kernel/log.ts';
import { SecretBox } from '../../src/kernel/secret-box.ts';
import { ModelAdmin } from '../../src/models/admin.ts';
import { createMetrics } from '../../src/ops/index.ts';
import { useDatabase } from '../support/database.ts';
import { type Answer, answerOf } from '../support/http-rig.ts';
import { emptyLedger, makePerson, type Person, run } from '../support/ledger.ts';
import { admission, bindModel, spend } from '../support/models.ts';

const KEY = 'sk-of-the-admin';

interface Sent {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

describe('models, as an admin sets them', () => {
  const database = useDatabase();
  const secrets = new SecretBox({ current: randomBytes(32), old: null });
  let listener: HttpListener;
  let opsUrl: string;
  let person: Person;
  let slug: string;

  beforeEach(async () => {
    await emptyLedger(database.db);
    await run(database.db, sql.unsafe`truncate llm_connection cascade`);
    await bindModel(database.db);
    person = await makePerson(database.db);
    const [workspace] = await run(database.db, sql.unsafe`select slug from workspace where id = ${person.workspaceId}`);
    slug = String(workspace?.['slug']);
    await listen(secrets);
  });
  afterEach(() => listener.stop(1_000));

  async function listen(box: SecretBox): Promise<void> {
    const models = new ModelAdmin({ db: database.db, secrets: box, checkBaseUrl: (text) => checkBaseUrl(text, { allowPrivate: false }) });
    const parts = { parts: [], started: () => true, metrics: createMetrics(), actors: () => [], connectionsMax: 50, log: silentLog };
    listener = createOpsListener({ ...parts, models, adminGuard: requireLocalAdmin });
    opsUrl = `http://127.0.0.1:${await listener.start('127.0.0.1', 0)}`;
  }

  /** Runs `heph …` and returns its exit code and what it said. */
  async function heph(line: string, input = ''): Promise<{ code: number; said: string }> {
    let said = '';
    const say = (text: string) => {
      said += text;
    };
    const args = line.match(/'[^']*'|\S+/g)?.map((word) => word.replace(/^'|'$/g, '')) ?? [];
    return { code: await runAdminCommand(args, { opsUrl, readInput: async () => input, out: say, err: say }), said };
  }

  async function done(line: string, input = ''): Promise<string> {
    const { code, said } = await heph(line, input);
    expect(code, said).to.equal(0);
    return said;
  }

  const send = async (method: string, path: string, { body, headers = {} }: Sent = {}): Promise<Answer> =>
    answerOf(
      await fetch(`${opsUrl}/admin/api/${path}`, {
        method,
        headers: { 'content-type': 'application/json', ...headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
    );

  const addAll = async () => {
    await done('connection add acme --api anthropic-messages --base-url https://llm.example.com/v1 --key-stdin', `${KEY}\n`);
    await done(
      'model add big --connection acme --provider-model big-9 --context 200000 --output 16000 --input-price 3 --output-price 15.5',
    );
  };

  it('go from the command line to the admission of the next turn', async () => {
    await addAll();
    expect(await admission(database.db, person)).to.include({ model: 'environment' });
    await done('model bind big --timeout 10m');
    expect(await admission(database.db, person)).to.include({
      ...{
        model: 'big',
        api: 'anthropic-messages',
        providerModel: 'big-9',
        contextTokens: 200_000,
        outputTokens: 16_000,
        deadlineMs: 600_000,
      },
      ...{ priceKind: 'PRICED', inputPrice: 3, outputPrice: 15.5 },
    });
    await done("model price big --no-charge 'a gift'");
    expect(await admission(database.db, person)).to.include({ priceKind: 'NO_CHARGE', inputPrice: null });
    await done('connection disable acme');
    expect(await admission(database.db, person)).to.deep.equal({ refusal: 'NO_MODEL' });
    await done('connection enable acme');
    await done('model unbind');
    expect(await admission(database.db, person)).to.include({ model: 'environment' });
  });

  it('can be bound and paid for by one workspace', async () => {
    await addAll();
    await done(`model bind big --workspace ${slug}`);
    await done(`model budget 12.50 --workspace ${slug}`);
    const other = await makePerson(database.db);
    expect(await admission(database.db, other)).to.include({ model: 'environment' });
    expect(await admission(database.db, person)).to.include({ model: 'big', deadlineMs: 300_000 });
    await spend(database.db, person.workspaceId, '12.5');
    expect(await admission(database.db, person)).to.deep.equal({ refusal: 'BUDGET' });
    expect(await done('model budgets')).to.match(new RegExp(`^${slug} +12.5 +12.5 +0$`, 'm'));
    await done(`model budget none --workspace ${slug}`);
    expect(await admission(database.db, person)).to.include({ model: 'big' });
  });

  it('are listed, and no list holds a key', async () => {
    await addAll();
    await done('model bind big');
    const lists = [await done('connection list'), await done('model list'), await done('model bindings'), await done('model budgets')];
    expect(lists[0]).to.match(/^acme +anthropic-messages +https:\/\/llm\.example\.com\/v1 +admin +true +- +false$/m);
    expect(lists[1]).to.match(/^big +acme +big-9 +200000 +16000 +PRICED 3 15\.5$/m);
    expect(lists[2]).to.match(/^- +big +admin +300000$/m);
    expect(lists[3]).to.equal('There are none.\n');
    expect(lists.join()).to.not.include(KEY);
    expect((await send('GET', 'connections')).text).to.not.include(KEY);
  });

  it('keep a key sealed, and replace it', async () => {
    await addAll();
    const stored = async (box: SecretBox) => {
      const [row] = await connectionKeys(database.db).all();
      if (!row) throw new Error('no key is stored');
      return { ...row, opened: box.open(row.sealed, row.id) };
    };
    const first = await stored(secrets);
    expect([first.opened, first.sealed.includes(KEY)]).to.deep.equal([KEY, false]);
    await done('connection key acme', 'another-key');
    expect((await stored(secrets)).opened).to.equal('another-key');
  });

  it('are refused with a sentence that says what to do', async () => {
    await addAll();
    await done('model add small --connection acme --provider-model s --context 8000 --output 4096 --unpriced');
    for (const [line, said] of [
      ['connection add acme --api openai-completions --base-url https://llm.example.com', /There is a connection "acme" already/],
      ['connection add meta --api openai-completions --base-url https://169.254.169.254', /leads to no place for a model/],
      ['connection add mine --api openai-completions --base-url http://localhost:1', /must begin with https/],
      ['connection add demo --api openai-completions --base-url https://llm.example.com', /name that Heph uses itself/],
      ['connection add x --api magic --base-url https://llm.example.com', /api/],
      ['connection disable nobody', /There is no connection "nobody"/],
      ['model add big --connection acme --provider-model b --context 40000 --output 5000 --unpriced', /There is a model "big" already/],
      ['model add more --connection environment --provider-model b --context 40000 --output 5000 --unpriced', /HEPH_LLM_MODEL/],
      ['model price big --input-price -1 --output-price 2', /./],
      ['model bind nobody', /There is no model "nobody"/],
      ['model bind small', /at least 32768 tokens of context and 4096 of output/],
      ['model bind big --timeout 16m', /timeoutMs/],
      ['model bind big --workspace nowhere', /There is no workspace "nowhere"/],
      ['model budget lots', /monthlyLimit/],
    ] as const) {
      const answer = await heph(line);
      expect(answer.code, line).to.be.oneOf([1, 2]);
      expect(answer.said, line).to.match(said);
    }
  });

  it('say how a command is written when it is written wrong', async () => {
    for (const [line, said] of [
      ['model', /There is no command "model"[\s\S]*heph connection add/],
      ['model bind', /takes 1 argument[\s\S]*heph model bind NAME/],
      ['model bind a --color red', /color/],
      ['model price big', /Say what it costs, in one way/],
      ['model price big --unpriced --no-charge x', /in one way/],
      ['model bind big --timeout soon', /such as 90s or 5m/],
      ['connection key acme', /no key on standard input/],
    ] as const) {
      const answer = await heph(line);
      expect([answer.code, said.test(answer.said)], `${line}: ${answer.said}`).to.deep.equal([2, true]);
    }
    expect(adminHelp()).to.include('heph model budget LIMIT|none');
  });

  it('say that no server answers', async () => {
    await listener.stop(1_000);
    expect(await heph('model list')).to.deep.include({ code: 1 });
    await listen(secrets);
  });

  it('take no key without HEPH_SECRET_KEY', async () => {
    await listener.stop(1_000);
    await listen(new SecretBox({ current: null, old: null }));
    const { code, said } = await heph('connection add acme --api openai-completions --base-url https://llm.example.com --key-stdin', KEY);
    expect([code, said.includes(KEY)]).to.deep.equal([1, false]);
    expect(said).to.include('HEPH_SECRET_KEY');
  });

  it('are written by nobody but this machine, and by no page of another site', async () => {
    const input = { workspace: null, monthlyLimit: '1' };
    const foreign = await send('PUT', 'budgets', { body: input, headers: { origin: 'https://evil.example' } });
    expect([foreign.status, foreign.body.code]).to.deep.equal([403, 'ORIGIN_REFUSED']);
    expect((await send('PUT', 'budgets', { body: input, headers: { 'content-type': 'text/plain' } })).status).to.equal(415);
    expect((await send('PUT', 'budgets', { body: { ...input, more: 1 } })).body.code).to.equal('BAD_REQUEST');
    expect(await run(database.db, sql.unsafe`select 1 from llm_budget`)).to.deep.equal([]);
  });
});
