/**
 * Connections between two statements: few of them stay warm, none is kept for ever, and none that broke is used again.
 */
import { expect } from 'chai';
import { createPool, type DatabasePoolConnection, sql } from 'slonik';
import { z } from 'zod';
import { KeptConnections } from '../../db/kept-connections.ts';
import { until } from '../support/actors.ts';
import { useDatabase } from '../support/database.ts';

const pidRow = z.object({ pid: z.number() });
const MINUTE_MS = 60_000;

describe('connections that are kept', () => {
  const database = useDatabase();
  let kept: KeptConnections;
  let nowMs: number;
  beforeEach(async () => {
    nowMs = 0;
    const pool = await createPool(database.url, { maxPoolSize: 6, idleTimeout: 'DISABLE_TIMEOUT', resetConnection: async () => {} });
    kept = new KeptConnections(pool, () => nowMs);
  });
  afterEach(() => kept.end());

  const pidOf = async (connection: DatabasePoolConnection) => (await connection.one(sql.type(pidRow)`select pg_backend_pid() as pid`)).pid;
  const alone = () => kept.use(pidOf);
  /** So many at the same time; their processes. */
  const together = (count: number) => Promise.all(Array.from({ length: count }, alone));

  it('are as many as are used at the same time, and one after the other it is one', async () => {
    expect(new Set(await together(3)).size).to.equal(3);
    const pids = [];
    for (let n = 0; n < 10; n++) pids.push(await alone());
    expect(new Set(pids).size).to.equal(1);
    expect(kept.idle).to.equal(3);
  });

  it('end when nobody has needed them for three minutes; the one that is needed stays', async () => {
    await together(4);
    for (let minute = 0; minute < 4; minute++) {
      nowMs += MINUTE_MS;
      await alone();
    }
    expect(kept.idle).to.be.at.most(1);
    await until('their processes are gone', async () => {
      const { count } = await kept.use((connection) =>
        connection.one(sql.type(z.object({ count: z.number() }))`
          select count(*)::int as count from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
            and query like 'select pg_backend_pid()%'`),
      );
      return count <= 1;
    });
  });

  it('are replaced after half an hour, however busy', async () => {
    const first = await alone();
    nowMs += 20 * MINUTE_MS;
    expect(await alone()).to.equal(first);
    nowMs += 11 * MINUTE_MS;
    await alone();
    expect(await alone()).to.not.equal(first);
  });

  it('are not used again after their work failed, or after they broke', async () => {
    const first = await alone();
    const failed = kept.use(async (connection) => {
      await pidOf(connection);
      throw new Error('no');
    });
    expect(await failed.catch((error: Error) => error.message)).to.equal('no');
    const second = await alone();
    expect(second).to.not.equal(first);
    await database.db.any(sql.type(z.object({ ok: z.boolean() }))`select pg_terminate_backend(${second}) as ok`);
    await until('its end is noted', async () => kept.idle === 0);
    expect(await alone()).to.not.equal(second);
  });
});
