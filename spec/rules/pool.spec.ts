/**
 * The one door to PostgreSQL: what goes wrong behind it has a code that a caller can act on, and nobody who waits at it is forgotten.
 */
import { expect } from 'chai';
import { z } from 'zod';
import { violates } from '../../db/faults.ts';
import { type Database, type DatabaseOptions, openDatabase, sql } from '../../db/pool.ts';
import { RuntimeFault } from '../../src/kernel/faults.ts';
import { faultOf } from '../support/actor-rig.ts';
import { until } from '../support/actors.ts';
import { openTestDatabase, useDatabase } from '../support/database.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';

const one = z.object({ n: z.number() });

describe('the pool', () => {
  const database = useDatabase();
  const opened: { close(): Promise<void> }[] = [];
  afterEach(async () => {
    for (const part of opened.splice(0)) await part.close();
  });

  async function open(options: Partial<DatabaseOptions> = {}): Promise<Database> {
    const bounds = { poolMax: 2, waitersMax: 1, acquireTimeoutMs: 10_000, statementTimeoutMs: 10_000, applicationName: 'heph-pool-spec' };
    const pool = await openDatabase({ url: database.url, ...bounds, ...options });
    opened.push(pool);
    return pool;
  }

  async function wired() {
    const wire = await TcpProxy.open(database.url);
    opened.push(wire);
    return { wire, url: wire.url(database.url) };
  }

  /** Statements on `pool` that hang at a lock until `free` is called. */
  async function hold(pool: Database, count: number) {
    const keeper = await openTestDatabase(database.url, 1);
    opened.push(keeper);
    const release = Promise.withResolvers<void>();
    const locked = Promise.withResolvers<void>();
    const keeping = keeper.transaction(async (tx) => {
      await tx.any(sql.type(z.object({}))`select pg_advisory_xact_lock(77)::text as x`);
      locked.resolve();
      await release.promise;
    });
    await locked.promise;
    const held = Array.from({ length: count }, () => pool.any(sql.type(z.object({}))`select pg_advisory_xact_lock(77)::text as x`));
    await until('they hang', async () => {
      const rows = await database.db.any(
        sql.type(one)`select 1 as n from pg_locks where locktype = 'advisory' and objid = 77 and not granted`,
      );
      return rows.length === count;
    });
    const free = async () => {
      release.resolve();
      await keeping;
      await Promise.allSettled(held);
    };
    return { held, free };
  }

  describe('rows', () => {
    it('keeps one plan for each prepared statement, beside the options of its address', async () => {
      const address = new URL(database.url);
      address.searchParams.set('options', '-c work_mem=5MB');
      const db = await openTestDatabase(address.toString(), 2);
      const setting = z.object({ mode: z.string(), own: z.string() });
      const row = await db.one(sql.type(setting)`select current_setting('plan_cache_mode') as mode, current_setting('work_mem') as own`);
      await db.close();
      expect(row).to.deep.equal({ mode: 'force_generic_plan', own: '5MB' });
    });

    it('are what their schema says, or the caller gets a fault and the pool goes on', async () => {
      const pool = await open();
      expect((await faultOf(pool.one(sql.type(one)`select 'x' as n`))).code).to.equal('INTERNAL');
      expect(await pool.one(sql.type(one)`select 1 as n`)).to.deep.equal({ n: 1 });
    });

    it('hold int8 as a number, and times as ISO 8601 in UTC with milliseconds', async () => {
      const pool = await open();
      const row = z.object({ big: z.number(), bigs: z.array(z.number()), at: z.string(), never: z.string().nullable() });
      const value = await pool.one(sql.type(row)`
        select 9007199254740991::int8 as big, array[1::int8, 2] as bigs, '2026-11-30 09:24:30.123456+02'::timestamptz as at, null::timestamptz as never`);
      expect(value).to.deep.equal({ big: 9007199254740991, bigs: [1, 2], at: '2026-11-30T07:24:30.123Z', never: null });
    });

    it('hold a time the same, whatever the zone of the session and however many digits it has', async () => {
      const pool = await open();
      const times = ['2026-11-30 23:24:30.123456+00', '2026-11-30 23:24:30.5+00', '2026-11-30 23:24:30+00'];
      const row = z.object({ at: z.string() });
      const read = async (zone: string) => {
        return pool.transaction(async (tx) => {
          await tx.any(sql.type(row)`select set_config('timezone', ${zone}, true) as at`);
          return tx.any(
            sql.type(row)`select at::timestamptz as at from unnest(${sql.array(times, 'text')}) with ordinality as t(at, n) order by n`,
          );
        });
      };
      const wanted = ['2026-11-30T23:24:30.123Z', '2026-11-30T23:24:30.500Z', '2026-11-30T23:24:30.000Z'].map((at) => ({ at }));
      for (const zone of ['UTC', 'Asia/Kolkata', 'America/New_York']) expect(await read(zone), zone).to.deep.equal(wanted);
    });

    it('come one or none where one is asked for, and two are a fault', async () => {
      const pool = await open();
      expect(await pool.maybeOne(sql.type(one)`select 1 as n where false`)).to.equal(null);
      expect((await faultOf(pool.maybeOne(sql.type(one)`select generate_series(1, 2) as n`))).code).to.equal('INTERNAL');
    });
  });

  describe('bounds', () => {
    it('lets as many statements run as it has connections, lets some wait, and refuses the next with BUSY', async () => {
      const pool = await open();
      const { free } = await hold(pool, 2);
      const waiting = pool.one(sql.type(one)`select 3 as n`);
      expect(pool.usage()).to.deep.equal({ inUse: 2, waiting: 1 });
      const refused = await faultOf(pool.one(sql.type(one)`select 4 as n`));
      expect(refused).to.include({ code: 'BUSY', retry: 'later' });
      await free();
      expect(await waiting).to.deep.equal({ n: 3 });
      expect(pool.usage()).to.deep.equal({ inUse: 0, waiting: 0 });
    });

    it('refuses with BUSY one who has waited for too long', async () => {
      const pool = await open({ acquireTimeoutMs: 100 });
      const { free } = await hold(pool, 2);
      expect((await faultOf(pool.one(sql.type(one)`select 3 as n`))).code).to.equal('BUSY');
      expect(pool.usage()).to.deep.equal({ inUse: 2, waiting: 0 });
      await free();
    });

    it('serves those who wait in their order', async () => {
      const pool = await open({ poolMax: 1, waitersMax: 10 });
      const order: number[] = [];
      await Promise.all(
        Array.from({ length: 8 }, (_, n) => pool.one(sql.type(one)`select ${n}::int as n`).then((row) => order.push(row.n))),
      );
      expect(order).to.deep.equal([0, 1, 2, 3, 4, 5, 6, 7]);
    });
  });

  describe('a database that is away', () => {
    it('is said when the pool is opened', async () => {
      const { wire, url } = await wired();
      wire.mode = 'refuse';
      const fault = await faultOf(open({ url }));
      expect(fault).to.include({ code: 'DATABASE_UNAVAILABLE', retry: 'later' });
      expect((await faultOf(open({ url: 'postgres://nobody@127.0.0.1:1/none' }))).code).to.equal('DATABASE_UNAVAILABLE');
    });

    it('is said to each caller, and forgotten when it is back', async () => {
      const { wire, url } = await wired();
      const pool = await open({ url });
      await pool.one(sql.type(one)`select 1 as n`);
      wire.mode = 'refuse';
      wire.cut();
      for (let n = 0; n < 3; n++) expect((await faultOf(pool.one(sql.type(one)`select 1 as n`))).code).to.equal('DATABASE_UNAVAILABLE');
      wire.mode = 'forward';
      expect(await pool.one(sql.type(one)`select 1 as n`)).to.deep.equal({ n: 1 });
    });

    it('is said when it ends the connection under a statement', async () => {
      const pool = await open();
      const { held, free } = await hold(pool, 1);
      const cut = faultOf(held[0] ?? null);
      await database.db.any(sql.type(one)`
        select 1 as n from pg_stat_activity, pg_terminate_backend(pid) where application_name = 'heph-pool-spec' and wait_event = 'advisory'`);
      expect((await cut).code).to.equal('DATABASE_UNAVAILABLE');
      await free();
      expect(await pool.one(sql.type(one)`select 1 as n`)).to.deep.equal({ n: 1 });
    });

    it('is said when a statement takes longer than it may', async () => {
      const pool = await open({ statementTimeoutMs: 50 });
      expect((await faultOf(pool.any(sql.type(z.object({}))`select pg_sleep(60)::text as x`))).code).to.equal('DATABASE_UNAVAILABLE');
    });

    it('is said when no answer comes at all, and later callers get new connections', async () => {
      const { wire, url } = await wired();
      const pool = await open({ url, statementTimeoutMs: 100, acquireTimeoutMs: 100, waitersMax: 10 });
      await pool.one(sql.type(one)`select 1 as n`);
      wire.mode = 'silent';
      const faults = await Promise.all([1, 2].map(() => faultOf(pool.one(sql.type(one)`select 1 as n`))));
      expect(faults.map((fault) => fault.code)).to.deep.equal(['DATABASE_UNAVAILABLE', 'DATABASE_UNAVAILABLE']);
      wire.mode = 'forward'; // the old connections stay dead: what was sent on them is lost
      expect(await pool.one(sql.type(one)`select 1 as n`)).to.deep.equal({ n: 1 });
      expect(pool.usage()).to.deep.equal({ inUse: 0, waiting: 0 });
    });

    it('forgets no caller when connections are cut as soon as they are there', async () => {
      const pool = await open({ poolMax: 6, waitersMax: 100 });
      let answers = 0;
      let cuts = 0;
      const client = async () => {
        while (cuts < 150 || answers < 500) {
          const row = await pool.one(sql.prepared('pool_spec_probe', one)`select 1 as n`).catch((error: unknown) => error);
          if (!(row instanceof Error)) answers += 1;
          else if (!(row instanceof RuntimeFault) || row.code !== 'DATABASE_UNAVAILABLE') throw row;
        }
      };
      const clients = Array.from({ length: 6 }, client);
      while (cuts < 150) {
        await database.db.any(sql.type(one)`
          select 1 as n from pg_stat_activity, pg_terminate_backend(pid) where application_name = 'heph-pool-spec'`);
        cuts += 1;
      }
      await Promise.all(clients);
      expect(pool.usage()).to.deep.equal({ inUse: 0, waiting: 0 });
    });
  });

  describe('errors of a statement', () => {
    it('keep the name of the constraint, and the pool goes on', async () => {
      const pool = await open();
      const insert = () => pool.any(sql.type(one)`insert into turn_slot (slot_no) values (4711) returning slot_no as n`);
      await insert();
      const fault = await faultOf(insert());
      expect(violates(fault, 'turn_slot_pkey')).to.equal(true);
      expect(violates(fault, 'turn_slot_slot_no_check')).to.equal(false);
      expect(violates(new Error('no'), 'turn_slot_pkey')).to.equal(false);
      expect(await pool.one(sql.type(one)`select count(*)::int as n from turn_slot where slot_no = 4711`)).to.deep.equal({ n: 1 });
    });

    it('have a code of their own when the caller may try again', async () => {
      const pool = await open();
      await pool.any(sql.type(z.object({}))`
        create or replace function fails_with(code text) returns integer language plpgsql as $$
        begin raise exception using errcode = code, message = 'on purpose'; end $$`);
      const codeOf = async (state: string) => (await faultOf(pool.one(sql.type(one)`select fails_with(${state}) as n`))).code;
      expect(await codeOf('40P01'), 'a deadlock that the driver could not cure').to.equal('BUSY');
      expect(await codeOf('40001')).to.equal('BUSY');
      expect(await codeOf('55P03')).to.equal('BUSY');
      expect(await codeOf('53300')).to.equal('DATABASE_UNAVAILABLE');
      expect(await codeOf('57P03')).to.equal('DATABASE_UNAVAILABLE');
      expect(await codeOf('25006'), 'no longer the primary').to.equal('DATABASE_UNAVAILABLE');
      expect(await codeOf('57014')).to.equal('DATABASE_UNAVAILABLE');
      expect(await codeOf('HP006'), 'a rule was broken: a bug').to.equal('INTERNAL');
    });

    it('roll a transaction back', async () => {
      const pool = await open();
      const work = pool.transaction(async (tx) => {
        await tx.any(sql.type(one)`insert into turn_slot (slot_no) values (4712) returning slot_no as n`);
        throw new RuntimeFault('FORBIDDEN', 'changed my mind');
      });
      expect((await faultOf(work)).code).to.equal('FORBIDDEN');
      expect(await pool.one(sql.type(one)`select count(*)::int as n from turn_slot where slot_no = 4712`)).to.deep.equal({ n: 0 });
    });
  });
});
