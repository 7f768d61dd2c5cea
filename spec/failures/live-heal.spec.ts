/**
 * What an open page is told when what carries the words between servers is cut, dead without a word, or restarted: it is right again soon after
 * the heal, and nobody has to reload. case: G13. (A Redis that dies or hangs: `rules/live-redis`.)
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect } from 'chai';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../db/embedded/index.ts';
import { reconcileSlots } from '../../db/ledger/slots.ts';
import { Listener } from '../../db/live/listener.ts';
import { migrate } from '../../db/migrate.ts';
import { type Database, sql } from '../../db/pool.ts';
import type { Snapshot } from '../../src/contract/events.ts';
import type { Turn } from '../../src/contract/web.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import { silentLog } from '../../src/kernel/log.ts';
import { CatchUp } from '../../src/live/catch-up.ts';
import { ChangeFeed } from '../../src/live/change-feed.ts';
import { LiveHub } from '../../src/live/hub.ts';
import { PartialBus } from '../../src/live/partial-bus.ts';
import { VersionBook } from '../../src/live/version-book.ts';
import { until } from '../support/actors.ts';
import { openTestDatabase, useDatabase } from '../support/database.ts';
import { type Answer, type HttpRig, useRigs } from '../support/http-rig.ts';
import { ask, emptyLedger, makeMain, makePerson, run } from '../support/ledger.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { bindModel } from '../support/models.ts';
import { NotedLog } from '../support/noted-log.ts';
import type { SseClient } from '../support/sse-client.ts';
import { away, SteeredDatabase } from '../support/steered-database.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';

/** Within it a page is right again after the heal. */
const HEAL_MS = 2_000;

const hasTurn = ({ conversations }: Snapshot, turnId: string) => conversations.some(({ turns }) => turns.some(({ id }) => id === turnId));

/** Resolves when the reader was told of the turn, by an event of its own or by a snapshot. */
function toldOf(stream: SseClient, turnId: string): Promise<Turn | Snapshot> {
  return Promise.race([stream.next('turn', ({ id }) => id === turnId), stream.next('snapshot', (snapshot) => hasTurn(snapshot, turnId))]);
}

describe('a server that cannot read what changed', () => {
  const database = useDatabase();
  let steered: SteeredDatabase;
  const openRig = useRigs({
    get db() {
      return steered;
    },
    get url() {
      return database.url;
    },
  });
  beforeEach(async () => {
    await emptyLedger(database.db);
    await reconcileSlots(database.db, 4);
    steered = new SteeredDatabase(database.db);
  });

  it('tries again before two seconds are over, however long the database was away, and then tells it', async () => {
    const clock = new ManualClock();
    const rig = await openRig({ clock });
    const stream = await rig.events();
    await stream.next('snapshot');
    let tries = 0;
    let isAway = true;
    steered.before = ({ name }) => {
      if (!isAway || !/^web_(read_turns|read_entries|open_conversations)$/.test(name)) return;
      tries += 1;
      throw away();
    };
    await makeMain(database.db, rig.person);
    rig.live.hub.resnapshot(rig.person);
    await until('the first try', () => tries === 1);
    for (let n = 0; n < 10; n++) {
      const before = tries;
      await until('it waits', () => clock.timers > 0);
      await clock.advanceAsync(HEAL_MS);
      await until('another try', () => tries > before);
    }
    isAway = false;
    await clock.advanceAsync(HEAL_MS);
    await stream.next('snapshot', ({ conversations }) => conversations.length === 1);
  });
});

describe('a server that listens for words of others', () => {
  const database = useDatabase();
  const wires: TcpProxy[] = [];
  const openRig = useRigs(database);
  const wired = async () => {
    const wire = await TcpProxy.open(database.url);
    wires.push(wire);
    return wire;
  };
  /** Its words go over `wire`, its statements do not. */
  let wire: TcpProxy;
  const openWired = useRigs({
    get db() {
      return database.db;
    },
    get url() {
      return wire.url(database.url);
    },
  });
  beforeEach(async () => {
    await emptyLedger(database.db);
    await reconcileSlots(database.db, 4);
    wire = await wired();
  });
  afterEach(() => Promise.all(wires.splice(0).map((one) => one.close())));

  it('asks for a lost connection at most a second apart, however long the database is away', async () => {
    const [clock, log] = [new ManualClock(), new NotedLog()];
    wire.mode = 'refuse';
    const listener = new Listener({
      ...{ url: wire.url(database.url), serverId: uuidv7(), channels: {}, clock, log },
      onGap: async () => {},
    });
    void listener.start();
    const pauses = () => log.of('live.listen_lost').map(({ retryInMs }) => Number(retryInMs));
    await until('it has tried ten times', async () => {
      await clock.advanceAsync(100);
      return pauses().length >= 10;
    });
    // It grows, and with its jitter stays below the time in which a page is to be right again.
    expect(pauses().slice(0, 4)).to.deep.equal([100, 200, 400, 800]);
    for (const pauseMs of pauses()) expect(pauseMs * 1.5).to.be.lessThan(HEAL_MS);
    await listener.close();
  });

  it('shows what others did while its connection is dead without a word, and is told it at once when it has a new one', async () => {
    const here = await openRig();
    const clock = new ManualClock();
    const there = await openWired({ clock, person: here.person });
    const stream = await there.events();
    await stream.next('snapshot');
    const { body: before } = await here.ask('before');
    await until('it is told', async () => {
      await clock.advanceAsync(50);
      return stream.received.some(({ event, data }) => event === 'turn' && data.id === before.turn.id);
    });
    wire.mode = 'silent';
    const { body: dead } = await here.ask('while nobody hears');
    expect(there.live.listening(), 'nobody has noticed yet').to.equal(true);
    await until('the sweep has found it', async () => {
      await clock.advanceAsync(250);
      return stream.received.some(({ event, data }) => event === 'snapshot' && hasTurn(data, dead.turn.id));
    });
    const again = new Promise<void>((resolve) => there.live.onGap(resolve));
    wire.mode = 'forward';
    wire.cut();
    let isAgain = false;
    void again.then(() => {
      isAgain = true;
    });
    await until('it listens again', async () => {
      await clock.advanceAsync(100);
      return isAgain;
    });
    const { body: after } = await here.ask('after');
    await until('it is told without a sweep', () =>
      stream.received.some(({ event, data }) => event === 'turn' && data.id === after.turn.id),
    );
    expect(stream.over).to.equal(false);
  });

  it('shows that a turn was stopped at another server while its connection is dead without a word (C4)', async () => {
    const here = await openRig();
    const { body } = await here.ask('Why?');
    const sandbox = await here.sandbox(body.turn.conversationId);
    const { run: attempt } = (await sandbox.next(5_000)).body;
    const clock = new ManualClock();
    const there = await openWired({ clock, person: here.person });
    const stream = await there.events();
    expect((await stream.next('snapshot')).conversations[0]?.turns[0]?.status).to.equal('RUNNING');
    wire.mode = 'silent';
    expect((await here.send('PATCH', `turns/${body.turn.id}/status`, { body: { status: 'STOPPED' } })).status).to.equal(200);
    await sandbox.call(attempt, 'turn/end', { outcome: 'STOPPED', entries: [], lastPartial: null });
    const shown = () =>
      stream.received.flatMap(({ event, data }) => (event === 'snapshot' ? [data.conversations[0]?.turns[0]?.status] : []));
    await until('the page shows it', async () => {
      await clock.advanceAsync(250);
      return shown().at(-1) === 'STOPPED';
    });
    wire.mode = 'forward';
    wire.cut();
  });

  it('shows a change whose server died before it said a word, before two seconds are over', async () => {
    const clock = new ManualClock();
    const rig = await openRig({ clock });
    const stream = await rig.events();
    await stream.next('snapshot');
    await clock.advanceAsync(100); // what the start had to say to others is said
    const { turnId } = await ask(database.db, rig.person, await makeMain(database.db, rig.person));
    const { timers } = clock;
    await clock.advanceAsync(HEAL_MS - 600);
    await until('a word that may be under way gets its moment', () => clock.timers > timers);
    await clock.advanceAsync(250);
    await stream.next('snapshot', (snapshot) => hasTurn(snapshot, turnId));
  });

  it('reads the rows anew once it listens again, also when a sweep that began before is still under way', async () => {
    const { db } = database;
    const conversationId = await makeMain(db, await makePerson(db));
    const steered = new SteeredDatabase(db);
    const [read, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let reads = 0;
    steered.after = async ({ name }) => {
      if (name !== 'live_read_versions') return;
      reads += 1;
      if (reads > 1) return;
      read.resolve();
      await answer.promise;
    };
    const parts = { db: steered, book: new VersionBook(), clock: systemClock, log: silentLog, wake: () => {}, serverId: uuidv7() };
    const feed = new ChangeFeed(parts);
    const hub = new LiveHub({ ...parts, partials: new PartialBus(parts), streamsPerAccountMax: 10, pingMs: 15_000 });
    const catchUp = new CatchUp({ ...parts, hub, feed, activeConversationIds: () => [conversationId] });
    const found: number[] = [];
    feed.onRemoteChange(({ version }) => found.push(version));
    const early = catchUp.sweep();
    await read.promise;
    await run(db, sql.unsafe`update mentor_conversation set version = version + 1 where id = ${conversationId} returning id`);
    const afresh = catchUp.sweepAfresh();
    answer.resolve();
    await Promise.all([early, afresh]);
    expect(found).to.deep.equal([0, 1]);
  });
});

describe('pages of two servers', function () {
  this.timeout(90_000);
  let dataDir: string;
  let postgres: EmbeddedPostgres;
  let db: Database;
  const start = (port?: number) =>
    startEmbeddedPostgres({ dataDir, log: silentLog, extraSettings: { shared_buffers: '32MB' }, ...(port === undefined ? {} : { port }) });
  before(async () => {
    dataDir = mkdtempSync(path.join(tmpdir(), 'heph-heal-'));
    postgres = await start();
    await migrate(postgres.url);
    db = await openTestDatabase(postgres.url);
    await reconcileSlots(db, 4);
    await bindModel(db);
  });
  after(async () => {
    await db.close();
    await postgres.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });
  const openRig = useRigs({
    get db() {
      return db;
    },
    get url() {
      return postgres.url;
    },
  });

  /** Asked again, with the same requestId, until the database is there. */
  async function asked(rig: HttpRig, text: string): Promise<Answer['body']> {
    const requestId = uuidv7();
    let answer = await rig.ask(text, { requestId });
    await until('the question is taken', async () => {
      if (answer.status !== 202) answer = await rig.ask(text, { requestId });
      return answer.status === 202;
    });
    return answer.body;
  }

  it('keep their streams over a restart of PostgreSQL, and are told what happens after it: questions, words of an answer, its end', async () => {
    const here = await openRig();
    const there = await openRig({ person: here.person });
    const { body } = await here.ask('Why?');
    const sandbox = await here.sandbox(body.turn.conversationId);
    const { run: attempt } = (await sandbox.next(5_000)).body;
    const stream = await there.events();
    await stream.next('snapshot');
    await sandbox.partial(attempt, 0, 'Before');
    await stream.next('partial', ({ text }) => text === 'Before');
    const { port } = postgres;
    await postgres.stop();
    await until('the loss is noticed', () => !here.live.listening() && !there.live.listening());
    postgres = await start(port);
    const { turn } = await asked(here, 'And now?');
    await toldOf(stream, turn.id);
    await until('both hear each other', () => here.live.listening() && there.live.listening());
    await until('the words are taken', async () => (await sandbox.partial(attempt, 6, ', and after')).status === 200);
    await stream.until(() => wordsOf(stream, body.turn.id) === 'Before, and after');
    expect((await sandbox.answer(attempt, 'Before, and after.')).status).to.equal(204);
    await stream.next('entry', ({ kind, text }) => kind === 'answer' && text === 'Before, and after.');
    expect(stream.over).to.equal(false);
  });
});

/** The words of a running turn as a reader folds them; what overlaps is there once. */
function wordsOf(stream: SseClient, turnId: string): string {
  let text = '';
  for (const { event, data } of stream.received) {
    if (event === 'snapshot') text = data.partials.find((partial) => partial.turnId === turnId)?.text ?? '';
    if (event === 'partial' && data.turnId === turnId) text = text.slice(0, data.offset) + data.text;
  }
  return text;
}
