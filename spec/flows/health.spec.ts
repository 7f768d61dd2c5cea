/**
 * The probes of a real server: alive whatever happens, started once and for ever, and ready as far as each part of it is, with why not. Each part
 * is made to fail by what makes it fail in life. (The part `recovery` has spec/rules/recovery-report.spec.ts.)
 */
import { expect } from 'chai';
import { z } from 'zod';
import { reconcileSlots } from '../../db/ledger/slots.ts';
import { migrationNames } from '../../db/migrate.ts';
import { writeEnvironmentModel } from '../../db/models/environment.ts';
import { sql } from '../../db/pool.ts';
import { until } from '../support/actors.ts';
import { DatabaseDoor } from '../support/database-door.ts';
import { Flow } from '../support/flow.ts';
import { freePort } from '../support/free-port.ts';
import { hold } from '../support/model-server.ts';
import type { ServerProcess } from '../support/server-process.ts';

interface Ready {
  readonly ready: boolean;
  readonly parts: Readonly<Record<string, { readonly ok: boolean; readonly why: string; readonly required: boolean }>>;
}

const WAIT_MS = 60_000;
const nameRow = z.object({ name: z.string() });

describe('the probes of a server', function () {
  this.timeout(180_000);
  let flow: Flow;
  let door: DatabaseDoor;
  let server: ServerProcess;
  let opsPort: number;

  before(async () => {
    opsPort = await freePort();
    const redis = `redis://127.0.0.1:${await freePort()}`; // nobody is there
    flow = await Flow.open({
      env: { HEPH_OPS_PORT: String(opsPort), HEPH_REDIS_URL: redis, HEPH_SANDBOX_ISOLATION: 'off', HEPH_SANDBOX_WARM: '1' },
    });
    door = await DatabaseDoor.of(flow.databaseUrl);
  });
  after(async () => {
    await door.close();
    await flow.close();
  });

  async function probe(path: string): Promise<{ status: number; body: Ready } | null> {
    const response = await fetch(`http://127.0.0.1:${opsPort}${path}`).catch(() => null);
    return response && { status: response.status, body: (await response.json()) as Ready };
  }
  const statuses = async () => Promise.all(['/livez', '/startupz', '/readyz'].map(async (path) => (await probe(path))?.status));

  /** Until the part says so. Alive and started in any case; ready unless the part is required. */
  async function partIs(name: string, ok: boolean, why: RegExp): Promise<void> {
    let last: Ready | undefined;
    const said = async () => {
      last = (await probe('/readyz'))?.body;
      return last?.parts[name]?.ok === ok;
    };
    await until(`${name} is ${ok ? 'ok' : 'not ok'}`, said, WAIT_MS);
    const part = last?.parts[name];
    expect(part?.why, name).to.match(why);
    if (part?.required && !ok) expect(last?.ready).to.equal(false);
    expect((await statuses()).slice(0, 2), 'alive and started').to.deep.equal([200, 200]);
  }

  it('answer from the first moment, before the database does, and say what the server waits for', async () => {
    const held = Promise.withResolvers<void>();
    const locked = Promise.withResolvers<void>();
    // Another server applies migrations, and takes long.
    const other = flow.db.transaction(async (tx) => {
      await tx.any(sql.type(nameRow)`lock table heph_migration in access exclusive mode`);
      locked.resolve();
      await held.promise;
    });
    await locked.promise;
    server = flow.launch();
    await until('it answers', async () => (await probe('/livez')) !== null, WAIT_MS);
    expect(await statuses()).to.deep.equal([200, 503, 503]);
    expect((await probe('/readyz'))?.body.parts['starting']?.why).to.match(/waits for its database/);
    expect((await fetch(`http://127.0.0.1:${opsPort}/metrics`)).status, 'anything else has to wait').to.equal(503);
    held.resolve();
    await other;
    await server.ready();
    expect(await statuses()).to.deep.equal([200, 200, 200]);
    expect((await probe('/readyz'))?.body.parts).to.not.have.property('starting');
  });

  it('tell what is not as it should be and does not matter to traffic', async () => {
    const { body } = (await probe('/readyz')) as { body: Ready };
    expect(body.parts['redis']).to.include({ ok: false, required: false });
    expect(body.parts['redis']?.why).to.match(/Redis is away/);
    expect(body.parts['sandboxes']?.why).to.match(/none.*HEPH_SANDBOX_ISOLATION is off/);
    await reconcileSlots(flow.db, 5); // as a server with another setting does when it starts
    await partIs('capacity', false, /5 slots and this server is configured for 4/);
    await reconcileSlots(flow.db, 4);
    await partIs('capacity', true, /4 turns at once/);
    const other = { name: 'environment', api: 'openai-completions', baseUrl: 'http://127.0.0.1:9/', providerModel: 'other' } as const;
    const price = { kind: 'NO_CHARGE', note: 'x' } as const;
    await writeEnvironmentModel(flow.db, { ...other, contextTokens: 128_000, outputTokens: 8_192, price, timeoutMs: 300_000 });
    await partIs('environment-model', false, /other HEPH_LLM_ variables/);
    const own = { ...other, baseUrl: `${flow.model.url}/`, providerModel: 'model-of-the-spec' };
    await writeEnvironmentModel(flow.db, { ...own, contextTokens: 128_000, outputTokens: 8_192, price, timeoutMs: 300_000 });
    await partIs('environment-model', true, /ready/);
    expect((await probe('/readyz'))?.status, 'none of it takes the server out of traffic').to.equal(200);
  });

  it('tell that a migration is missing, and take the server out of traffic', async () => {
    const newest = migrationNames().at(-1) as string;
    const [taken] = await flow.db.any(sql.type(nameRow)`delete from heph_migration where name = ${newest} returning name`);
    expect(taken?.name).to.equal(newest);
    await partIs('migrations', false, new RegExp(`Not applied: ${newest}`));
    await flow.db.any(sql.type(nameRow)`insert into heph_migration (name, run_on) values (${newest}, now()) returning name`);
    await partIs('migrations', true, /ready/);
  });

  it('tell when LISTEN, the session lock or the whole database is gone, and when it is back', async () => {
    await door.shut('heph-listen');
    await partIs('listener', false, /LISTEN is not connected/);
    expect((await probe('/readyz'))?.status).to.equal(200);
    await door.shut('heph-host-lock');
    await partIs('host-lock', false, /session lock was lost/);
    await door.shut('heph-server', 'heph-operators', 'heph-notify');
    await partIs('database', false, /does not answer/);
    expect(await statuses()).to.deep.equal([200, 200, 503]);
    await door.open();
    for (const [name, why] of [
      ['database', /ready/],
      ['listener', /ready/],
      ['host-lock', /held/],
    ] as const)
      await partIs(name, true, why);
    await until('it is ready', async () => (await probe('/readyz'))?.status === 200, WAIT_MS);
  });

  it('take the server out of traffic while it drains, and end with it', async () => {
    const pause = hold();
    flow.model.use(() => ({ steps: [{ text: 'half' }, { hold: pause }] }));
    const person = flow.person(server);
    await person.ask('Will you go?');
    await pause.arrived;
    // A request that is under way keeps the listeners open for a moment.
    const stopped = server.stop();
    let drained: Ready | undefined;
    await until(
      'it drains',
      async () => {
        const ready = await probe('/readyz');
        if (ready?.status === 503) drained = ready.body;
        return ready === null || drained !== undefined;
      },
      WAIT_MS,
    );
    expect(drained?.parts['draining']).to.deep.include({ ok: false, required: true });
    pause.release();
    expect(await stopped).to.equal(0);
    expect(await probe('/livez')).to.equal(null);
  });
});
