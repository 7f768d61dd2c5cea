/**
 * The operations listener: probes, metrics and the supervision tree.
 */
import { expect } from 'chai';
import { reconcileSlots } from '../../db/ledger/slots.ts';
import { migrationNames } from '../../db/migrate.ts';
import { isEnvironmentModel } from '../../db/models/environment.ts';
import { createOpsListener, type HttpListener, type ReadinessPart, requireLocalAdmin } from '../../src/http/index.ts';
import { silentLog } from '../../src/kernel/log.ts';
import {
  capacityPart,
  createMetrics,
  databasePart,
  drainingPart,
  environmentModelPart,
  listeningPart,
  type Metrics,
  migrationsPart,
  notePart,
} from '../../src/ops/index.ts';
import { openTestDatabase, useDatabase } from '../support/database.ts';
import { type Answer, answerOf, useRigs } from '../support/http-rig.ts';
import { bindModel, SPEC_MODEL } from '../support/models.ts';

describe('the operations listener', () => {
  const database = useDatabase();
  const openRig = useRigs(database);
  let listener: HttpListener | undefined;
  let metrics: Metrics;
  let started: boolean;
  let port: number;

  async function open(parts: readonly ReadinessPart[] = []): Promise<void> {
    metrics = createMetrics();
    started = false;
    const actors = () => [];
    listener = createOpsListener({
      parts,
      started: () => started,
      metrics,
      actors,
      adminGuard: requireLocalAdmin,
      connectionsMax: 50,
      log: silentLog,
      observe: metrics.observeRequest,
    });
    port = await listener.start('127.0.0.1', 0);
  }
  const get = async (path: string, init?: RequestInit): Promise<Answer> => answerOf(await fetch(`http://127.0.0.1:${port}${path}`, init));
  afterEach(() => listener?.stop(1_000));

  it('is alive whatever the parts say', async () => {
    await open([{ name: 'never', required: true, check: () => ({ ok: false, why: 'no' }) }]);
    const { status, body } = await get('/livez');
    expect([status, body]).to.deep.equal([200, { live: true }]);
  });

  it('is ready with every required part, and says of each part whether and why', async () => {
    await reconcileSlots(database.db, 4);
    const { db } = database;
    let draining = false;
    await open([
      databasePart(db),
      migrationsPart(db, migrationNames()),
      listeningPart(() => false),
      drainingPart(() => draining),
      capacityPart(db, 6),
      notePart('sandboxes', () => ({ warning: 'Sandboxes are not isolated.', why: 'isolated' })),
    ]);
    const ready = await get('/readyz');
    expect(ready.status).to.equal(200);
    expect(ready.body.ready).to.equal(true);
    expect(ready.body.parts.database).to.deep.equal({ ok: true, why: 'ready', required: true });
    expect(ready.body.parts.listener).to.include({ ok: false, required: false });
    expect(ready.body.parts.capacity.why).to.match(/4 slots.*configured for 6.*HEPH_AGENT_CAPACITY_TURNS/);
    expect(ready.body.parts.sandboxes).to.include({ ok: false, why: 'Sandboxes are not isolated.' });
    draining = true;
    const leaving = await get('/readyz');
    expect([leaving.status, leaving.body.ready, leaving.body.parts.draining.ok]).to.deep.equal([503, false, false]);
  });

  it('says that a server with other settings was started later, and only then', async () => {
    const own = { ...SPEC_MODEL, baseUrl: 'https://one.example.com/' };
    await bindModel(database.db, own);
    await open([environmentModelPart(() => isEnvironmentModel(database.db, own))]);
    expect((await get('/readyz')).body.parts['environment-model']).to.deep.equal({ ok: true, why: 'ready', required: false });
    await bindModel(database.db, { ...own, baseUrl: 'https://two.example.com/' });
    const { body } = await get('/readyz');
    expect([body.ready, body.parts['environment-model'].ok]).to.deep.equal([true, false]);
    expect(body.parts['environment-model'].why).to.match(/other HEPH_LLM_ variables.*restart/);
  });

  it('is not ready with a database that is gone, or that lacks a migration', async () => {
    const gone = await openTestDatabase(database.url, 1);
    await gone.close();
    await open([databasePart(gone), migrationsPart(database.db, [...migrationNames(), '9999_future'])]);
    const { status, body } = await get('/readyz');
    expect(status).to.equal(503);
    expect(body.parts.database).to.include({ ok: false });
    expect(body.parts.migrations.why).to.include('9999_future');
  });

  it('does not hang on a part that never answers, and not fail on one that throws', async () => {
    await open([
      { name: 'hangs', required: true, check: () => new Promise(() => {}) },
      { name: 'throws', required: false, check: () => Promise.reject(new Error('secret')) },
    ]);
    const { status, body, text } = await get('/readyz');
    expect([status, body.parts.hangs.ok, body.parts.throws.ok]).to.deep.equal([503, false, false]);
    expect(text).not.to.include('secret');
  });

  it('says when everything has started', async () => {
    await open();
    expect((await get('/startupz')).status).to.equal(503);
    started = true;
    expect((await get('/startupz')).status).to.equal(200);
  });

  it('exports metrics under one prefix, with what was counted', async () => {
    const rig = await openRig();
    await open();
    metrics.kernelObserver.commandHandled('conversation', 'SubmitQuestion', { waitMs: 1, workMs: 2, outcome: 'ok' });
    metrics.kernelObserver.crashed('conversation', 'DatabaseError 57014');
    metrics.turnEnded({ surface: 'app', outcome: 'DONE', queueWaitMs: 10, firstOutputMs: null, durationMs: 1_500 });
    metrics.attemptTakenBack('lease');
    metrics.watch({
      actors: () => [],
      runners: () => [{ sandboxId: null, state: 'warm', pid: 1, startedAt: 0 }],
      database: () => database.db.usage(),
      slots: () => Promise.reject(new Error('no database')),
      installation: () => Promise.reject(new Error('no database')),
      streams: () => rig.live.hub.streams,
      listening: () => true,
      partials: () => rig.live.partials.size,
      modelCalls: () => ({ inFlight: 2, closingsWaiting: 0, connectionsPaused: 1, ended: { ok: 5 } }),
    });
    await get('/livez');
    const { status, text, headers } = await get('/metrics');
    expect(status).to.equal(200);
    expect(headers.get('content-type')).to.match(/^text\/plain/);
    const names = [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name);
    expect(names.every((name) => name?.startsWith('heph_'))).to.equal(true);
    for (const line of [
      'heph_actor_crashes_total{kind="conversation",error="DatabaseError 57014"} 1',
      'heph_turns_total{surface="app",outcome="DONE"} 1',
      'heph_lease_expirations_total 1',
      'heph_recoveries_total{cause="lease"} 1',
      'heph_sandboxes{state="warm"} 1',
      'heph_streams 0',
      'heph_model_calls_in_flight 2',
      'heph_model_connections_paused 1',
      'heph_model_calls_total{outcome="ok"} 5',
      'heph_http_request_duration_seconds_count{route="/livez",method="GET",code="200"} 1',
    ]) {
      expect(text.split('\n'), line).to.include(line);
    }
    expect(text, 'a number that nobody knows').to.match(/^heph_slots_limit Nan$/m);
  });

  it('lists the actors of this server, to this machine only', async () => {
    const rig = await openRig();
    await rig.ask('Why?');
    metrics = createMetrics();
    const actors = () => rig.actors.views();
    listener = createOpsListener({
      parts: [],
      started: () => true,
      metrics,
      actors,
      adminGuard: requireLocalAdmin,
      connectionsMax: 50,
      log: silentLog,
    });
    port = await listener.start('127.0.0.1', 0);
    const { status, body } = await get('/admin/api/actors');
    expect(status).to.equal(200);
    expect(body.actors.map(({ kind }: { kind: string }) => kind)).to.include.members(['conversation', 'sandboxes']);
    expect(JSON.stringify(body)).not.to.include('Why?');
  });
});
