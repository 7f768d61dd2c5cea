/**
 * Partial answers between servers by a real Redis: they cross, and a Redis that dies or hangs costs nothing but the words of that moment.
 */
import { expect } from 'chai';
import { reconcileSlots } from '../../db/ledger/slots.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { silentLog } from '../../src/kernel/log.ts';
import { RedisPost } from '../../src/live/redis-post.ts';
import { until } from '../support/actors.ts';
import { useDatabase } from '../support/database.ts';
import { type HttpRig, useRigs } from '../support/http-rig.ts';
import { emptyLedger } from '../support/ledger.ts';
import { hasRedis, RedisProcess } from '../support/redis.ts';
import { skipLoudly } from '../support/skip.ts';

describe('two servers with a Redis', () => {
  const database = useDatabase();
  const openRig = useRigs(database);
  let redis: RedisProcess;
  let here: HttpRig;
  let there: HttpRig;

  before(async function () {
    if (!hasRedis()) skipLoudly(this, 'there is no redis-server on PATH');
    redis = await RedisProcess.start();
  });
  after(() => redis?.kill());
  beforeEach(async () => {
    await emptyLedger(database.db);
    await reconcileSlots(database.db, 4);
    here = await openRig({ redisUrl: redis.url });
    there = await openRig({ redisUrl: redis.url, person: here.person });
  });

  const connected = (...rigs: readonly HttpRig[]) =>
    until('the servers hear each other', () => rigs.every(({ live }) => live.redisConnected() === true));

  /** A running turn whose words come to the first server, and a reader at the second. */
  async function writing() {
    await connected(here, there);
    const { body } = await here.ask('Why?');
    const sandbox = await here.sandbox(body.turn.conversationId);
    const { run } = (await sandbox.next(5_000)).body;
    const stream = await there.events();
    await stream.next('snapshot');
    let written = 0;
    return {
      stream,
      async write(text: string) {
        await sandbox.partial(run, written, text);
        written += text.length;
      },
      answer: (text: string) => sandbox.answer(run, text),
    };
  }

  it('show words that are written at the other one, and drop them when the turn has ended', async () => {
    const it = await writing();
    await it.write('Because');
    expect(await it.stream.next('partial')).to.include({ offset: 0, text: 'Because' });
    await it.write(' of 北京 🟢.');
    expect(await it.stream.next('partial')).to.include({ offset: 7, text: ' of 北京 🟢.' });
    await it.answer('Because of 北京 🟢.');
    expect((await it.stream.next('entry', ({ kind }) => kind === 'answer')).text).to.equal('Because of 北京 🟢.');
    await until('the words are gone', () => there.live.partials.size.turns === 0);
  });

  it('show the end of an answer while Redis is dead, and words again when it is back, from their beginning', async () => {
    const it = await writing();
    await it.write('one ');
    await it.stream.next('partial');
    await redis.kill();
    await until('the loss is seen', () => here.live.redisConnected() === false && there.live.redisConnected() === false);
    await it.write('two ');
    const { body } = await here.ask('Another question, which Redis has no part in?');
    await it.stream.next('entry', ({ id }) => id === body.entry.id);
    await redis.startAgain();
    await connected(here, there);
    let seen = 'one ';
    while (seen !== 'one two ') {
      const partial = await it.stream.next('partial');
      seen = seen.slice(0, partial.offset) + partial.text;
    }
    await it.answer('one two three');
    expect((await it.stream.next('entry', ({ kind }) => kind === 'answer')).text).to.equal('one two three');
  });
});

describe('a Redis that hangs without a word', () => {
  let redis: RedisProcess;
  let post: RedisPost | undefined;

  before(async function () {
    if (!hasRedis()) skipLoudly(this, 'there is no redis-server on PATH');
    redis = await RedisProcess.start();
  });
  after(async () => {
    await post?.close();
    await redis?.kill();
  });

  it('is noticed by the word that a server says to itself, refuses words meanwhile, and is used again when it goes on', async function () {
    this.timeout(60_000);
    const heard: string[] = [];
    let gaps = 0;
    post = new RedisPost({
      ...{ url: redis.url, serverId: 'a', clock: systemClock, log: silentLog, heartbeatMs: 100 },
      receive: (payload) => void heard.push(payload),
      onGap: () => {
        gaps += 1;
      },
    });
    await post.start();
    await until('it listens', () => post?.connected === true);
    redis.signal('SIGSTOP');
    await until('it is taken for lost', () => post?.connected === false, 30_000);
    const refused = await post.send([{ channel: '', payload: 'nobody hears this' }]).then(
      () => false,
      () => true,
    );
    expect(refused).to.equal(true);
    redis.signal('SIGCONT');
    await until('it listens again', () => post?.connected === true && gaps >= 2, 30_000);
    await until('words cross again', async () => {
      await post?.send([{ channel: '', payload: 'hello' }]).catch(() => {});
      return heard.includes('hello');
    });
  });
});
