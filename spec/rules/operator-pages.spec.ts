/**
 * What an operator looks at beside turns: a conversation with every attempt that it had, the outbox, sandboxes, spending. From rows, without
 * words, also while the server's own connections are all taken.
 */
import { expect } from 'chai';
import { z } from 'zod';
import type { Actors } from '../../actors/index.ts';
import { closeCalls } from '../../db/gateway/close-calls.ts';
import { openCall } from '../../db/gateway/open-call.ts';
import { loadConversation } from '../../db/ledger/conversation.ts';
import { handOnRun } from '../../db/ledger/hand-on.ts';
import { takeBackLeases } from '../../db/ledger/reap.ts';
import { endSandbox } from '../../db/ledger/sandboxes.ts';
import { type Database, openDatabase, sql } from '../../db/pool.ts';
import { readConfig } from '../../src/config.ts';
import { createOpsListener } from '../../src/http/index.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import { silentLog } from '../../src/kernel/log.ts';
import { createMetrics } from '../../src/ops/index.ts';
import { withGaps } from '../../src/ops/operator-pages.ts';
import { openOperators } from '../../src/server-operators.ts';
import { until } from '../support/actors.ts';
import { openTestDatabase, useDatabase } from '../support/database.ts';
import { answerOf } from '../support/http-rig.ts';
import { ask, claimOne, emptyLedger, makeHost, makeMain, makePerson, makeSandbox, run } from '../support/ledger.ts';
import { useDesks } from '../support/operators.ts';
import { answer, claimed, endDone } from '../support/scene.ts';
import { connect, fillOutbox, TEAM } from '../support/slack-scene.ts';

const WORDS = 'the words of a person';
const REAP = { failed: { code: 'ERROR', text: 'x' }, deadline: { code: 'DEADLINE', text: 'x' } };

describe('an operator looks at', () => {
  const database = useDatabase();
  const open = useDesks(database);
  beforeEach(() => emptyLedger(database.db));
  const slugOf = async (id: string) =>
    String((await run(database.db, sql.unsafe`select slug from workspace where id = ${id}`))[0]?.['slug']);

  describe('a conversation', () => {
    it('and sees every attempt of its turns, with how each ended, also those that made no model call', async () => {
      const it = await claimed(database.db);
      const { db } = database;
      const version = async () => (await loadConversation(db, it.conversationId))?.version ?? -1;
      await handOnRun(db, { ...it.key, conversationId: it.conversationId, version: await version() });
      const second = await claimOne(db, it.conversationId, it.sandbox.id);
      expect(second?.epoch).to.equal(2);
      await endSandbox(db, it.sandbox.id);
      await takeBackLeases(db, 10, REAP);
      const box = await makeSandbox(db, it.person, it.conversationId, it.hostId);
      const third = await claimOne(db, it.conversationId, box.id);
      const key = { runId: third?.runId as never, epoch: 3, sandboxId: box.id };
      const desk = await open();
      const page = async () => (await desk.get(`conversations/${it.conversationId}`)).body;
      const told = async () => (await page()).attempts.map((one: { epoch: number; how: string }) => [one.epoch, one.how]);
      expect(await told()).to.deep.equal([
        [1, 'HANDED_ON'],
        [2, 'SANDBOX_ENDED'],
        [3, 'LEASED'],
      ]);
      expect((await page()).attempts[2]).to.include({ host: 'spec', sandbox: box.id, calls: 0, endedAt: null });
      expect((await page()).attempts[2].leaseMs).to.be.above(0);
      await endDone({ ...it, sandbox: box, grant: third as never, key });
      expect((await told())[2]).to.deep.equal([3, 'ENDED']);
      const timeline = (await desk.get(`turns/${it.asked.turnId}`)).body.timeline as { what: string; detail: string }[];
      expect(timeline.filter(({ what }) => what === 'attempt').map(({ detail }) => detail)).to.include.members([
        'epoch 1 is over: HANDED_ON',
        'epoch 2 is over: SANDBOX_ENDED',
      ]);
    });

    it('and a turn that goes through at once costs no row of history', async () => {
      const it = await claimed(database.db);
      await endDone(it);
      expect(await run(database.db, sql.unsafe`select 1 from run_attempt`)).to.deep.equal([]);
      const { attempts } = (await (await open()).get(`conversations/${it.conversationId}`)).body;
      expect(attempts).to.have.length(1);
      expect(attempts[0]).to.include({ epoch: 1, how: 'ENDED', host: 'spec' });
      expect(attempts[0].beganAt).to.be.a('string');
    });

    it('and says unknown for epochs of which only the number is left', async () => {
      const it = await claimed(database.db);
      await run(database.db, sql.unsafe`update agent_run set epoch = 3 where id = ${it.key.runId} returning 1`);
      const { attempts } = (await (await open()).get(`conversations/${it.conversationId}`)).body;
      expect(attempts.map((one: { epoch: number; how: string }) => [one.epoch, one.how])).to.deep.equal([
        [1, 'unknown'],
        [2, 'unknown'],
        [3, 'LEASED'],
      ]);
    });

    it('and sees its mailbox in order, its ledger by place and size, and no words', async () => {
      const it = await claimed(database.db);
      const { db } = database;
      const second = await ask(db, it.person, it.conversationId, { text: WORDS });
      const third = await ask(db, it.person, it.conversationId, { text: WORDS });
      await endDone(it, [answer('the words of a model')]);
      const desk = await open();
      const { body, text } = await desk.get(`conversations/${it.conversationId}?limit=2`);
      expect(body.mailbox.map(({ id }: { id: string }) => id)).to.deep.equal([second.turnId, third.turnId]);
      expect(body.ended.map(({ id }: { id: string }) => id)).to.deep.equal([it.asked.turnId]);
      expect(body.ledger.map((one: { seq: number; kind: string; bytes: number }) => [one.seq, one.kind, one.bytes > 0])).to.deep.equal([
        [4, 'ANSWER', true],
        [3, 'QUESTION', true],
      ]);
      const next = (await desk.get(`conversations/${it.conversationId}?limit=2&before=${body.nextBefore}`)).body;
      expect([next.ledger.map(({ seq }: { seq: number }) => seq), next.nextBefore]).to.deep.equal([[2, 1], null]);
      expect(text).to.not.include('words');
      expect([body.conversation.account, body.conversation.entries, body.actor]).to.deep.equal([it.person.accountId, 4, null]);
      expect(body.sandboxes.map(({ id }: { id: string }) => id)).to.deep.equal([it.sandbox.id]);
      expect((await desk.heph('conversation', 'show', it.conversationId)).said)
        .to.include('mailbox')
        .and.include(second.turnId)
        .and.not.include(WORDS);
      expect((await desk.get(`conversations/${uuidv7()}`)).body.code).to.equal('CONVERSATION_NOT_FOUND');
      expect((await desk.get('conversations/it')).body.code).to.equal('CONVERSATION_NOT_FOUND');
    });

    it('and sees which numbers no entry has', () => {
      const at = (seq: number) => ({ seq, id: `e${seq}`, kind: 'ANSWER', turn: null, bytes: 1, createdAt: '', erased: false });
      const seen = (...args: Parameters<typeof withGaps>) =>
        withGaps(...args).map((one) => ('missing' in one ? `${one.seq}: ${one.missing} missing` : one.seq));
      expect(seen([at(5), at(4), at(1)], { from: 8, whole: true })).to.deep.equal(['6: 2 missing', 5, 4, '2: 2 missing', 1]);
      expect(seen([at(3), at(2), at(1)], { from: 4, whole: true })).to.deep.equal([3, 2, 1]);
      expect(seen([at(3), at(2)], { from: 4, whole: false })).to.deep.equal([3, 2]);
      expect(seen([at(3)], { from: 4, whole: true })).to.deep.equal([3, '1: 2 missing']);
      expect(seen([], { from: 1, whole: true })).to.deep.equal([]);
    });
  });

  it('the outbox: per channel in numbers, and page by page by its filters', async () => {
    const person = await makePerson(database.db);
    await connect(database.db, person);
    await fillOutbox(database.db, person, [2, 3]);
    const desk = await open();
    const { body } = await desk.get('outbox?limit=4');
    const channels = body.channels.map((one: { channel: string; pending: number; uncertain: number }) => [
      one.channel,
      one.pending,
      one.uncertain,
    ]);
    expect(channels).to.have.deep.members([
      ['D0', 3, 0],
      ['D1', 3, 0],
    ]);
    expect(body.channels[0]).to.include({ team: TEAM, workspace: await slugOf(person.workspaceId) });
    expect(body.outbox).to.have.length(4);
    const last = (await desk.get(`outbox?limit=4&after=${body.nextAfter}`)).body;
    expect([last.outbox.length, last.nextAfter]).to.deep.equal([2, null]);
    expect((await desk.get('outbox?channel=D1')).body.outbox).to.have.length(3);
    expect((await desk.get('outbox?state=SENT')).body.outbox).to.deep.equal([]);
    for (const query of ['state=odd', 'limit=0', 'after=x', 'other=1'])
      expect((await desk.get(`outbox?${query}`)).status, query).to.equal(400);
  });

  it('sandboxes: live, ended and failed ones, by server and workspace, newest first in pages', async () => {
    const { db } = database;
    const hostId = await makeHost(db, 'anvil');
    const boxes: string[] = [];
    for (let n = 0; n < 3; n++) {
      const person = await makePerson(db);
      boxes.unshift((await makeSandbox(db, person, await makeMain(db, person), hostId)).id);
    }
    const it = await claimed(db);
    const person = await makePerson(db);
    const failed = await makeSandbox(db, person, await makeMain(db, person), hostId);
    await endSandbox(db, failed.id, true);
    const desk = await open();
    const ids = async (query: string) => (await desk.get(`sandboxes?${query}`)).body.sandboxes.map(({ id }: { id: string }) => id);
    expect(await ids('host=anvil')).to.deep.equal(boxes);
    const first = (await desk.get('sandboxes?host=anvil&limit=2')).body;
    expect(await ids(`host=anvil&limit=2&before=${first.nextBefore}`)).to.deep.equal([boxes[2]]);
    expect(await ids('state=failed')).to.deep.equal([failed.id]);
    expect(await ids('state=ended')).to.deep.equal([]);
    const [held] = (await desk.get(`sandboxes?workspace=${await slugOf(it.person.workspaceId)}`)).body.sandboxes;
    expect(held).to.deep.include({ id: it.sandbox.id, turn: it.asked.turnId, epoch: 1, state: 'STARTING', runner: null });
    expect((await desk.heph('sandboxes', '--state', 'failed')).said).to.include('START_FAILED');
    const ours = await open({ runners: () => [{ sandboxId: it.sandbox.id, state: 'busy', pid: 7, rssBytes: 110 * 1024 * 1024 }] });
    const [known] = (await ours.get(`sandboxes?conversation=${it.conversationId}`)).body.sandboxes;
    expect(known.runner).to.deep.equal({ state: 'busy', pid: 7, memoryBytes: 110 * 1024 * 1024 });
    expect((await ours.heph('sandboxes')).said).to.include('110M');
  });

  it('spending: by workspace and model in a month, with calls of unknown cost beside the sums', async () => {
    const it = await claimed(database.db);
    const ids = { workspaceId: it.person.workspaceId, conversationId: it.conversationId, hostId: it.hostId };
    const calls = [uuidv7<'call'>(), uuidv7<'call'>()];
    for (const callId of calls) await openCall(database.db, { ...it.key, ...ids, callId, api: 'openai-completions', callsMax: 40 });
    const closing = { outcome: 'ok', httpStatus: 200, inputTokens: 100, outputTokens: 10, cacheReadTokens: 5, cacheWriteTokens: 0 };
    await closeCalls(database.db, [{ callId: calls[0] as never, ...closing } as never]);
    const desk = await open();
    const [line] = (await desk.get('spending')).body.spending;
    expect(line).to.deep.include({ workspace: await slugOf(it.person.workspaceId), calls: 2, open: 1 });
    expect(line.tokens).to.deep.include({ input: 100, output: 10 });
    expect((await desk.get('spending?month=2001-01')).body.spending).to.deep.equal([]);
    expect((await desk.get('spending?month=2001-13')).status).to.equal(400);
    expect((await desk.heph('spending')).said).to.include(line.model);
  });

  describe('everything at three in the morning', function () {
    this.timeout(60_000);
    const opened: { close(): Promise<void> }[] = [];
    afterEach(async () => {
      for (const part of opened.splice(0).reverse()) await part.close();
    });
    const PATHS = ['overview', 'turns?state=stuck', 'turns', 'outbox', 'sandboxes', 'spending', 'actions', 'actors', 'me'];

    /** The operators of a server whose own pool is `db`, as the server puts them together. */
    async function operatorsOf(db: Database) {
      const hostId = await makeHost(database.db);
      const actors = { views: () => [], runtime: {}, reap: async () => 0 } as unknown as Actors;
      const operators = await openOperators({
        ...{ opened: { db, url: database.url, host: { id: hostId, predecessorOf: null } } as never, log: silentLog, actors },
        ...{ state: { draining: false, started: true, recovery: null }, config: readConfig({}, '/nowhere'), runners: () => [] },
        people: { bearer: null } as never,
      });
      opened.push(operators.db);
      const parts = { parts: [], started: () => true, metrics: createMetrics(), actors: () => [], connectionsMax: 50, log: silentLog };
      const listener = createOpsListener({ ...parts, operators: operators.port, adminGuard: operators.guard });
      opened.push({ close: () => listener.stop(1_000) });
      return `http://127.0.0.1:${await listener.start('127.0.0.1', 0)}/admin/api`;
    }

    it('is answered while every connection of the server is taken', async () => {
      const bounds = { poolMax: 2, waitersMax: 1, acquireTimeoutMs: 60_000, statementTimeoutMs: 60_000, applicationName: 'heph-busy' };
      const busy = await openDatabase({ url: database.url, ...bounds });
      opened.push(busy);
      const release = Promise.withResolvers<void>();
      const taken = [1, 2].map(() => {
        const has = Promise.withResolvers<void>();
        const work = busy.transaction(async (tx) => {
          await tx.any(sql.type(z.object({}))`select 1 as n`);
          has.resolve();
          await release.promise;
        });
        return { has: has.promise, work };
      });
      await Promise.all(taken.map(({ has }) => has));
      const url = await operatorsOf(busy);
      for (const path of PATHS) expect((await fetch(`${url}/${path}`)).status, path).to.equal(200);
      expect(busy.usage().inUse, 'they were taken all the time').to.equal(2);
      release.resolve();
      await Promise.all(taken.map(({ work }) => work));
    });

    it('or is refused within a bound, when PostgreSQL itself does not answer', async () => {
      const url = await operatorsOf(database.db);
      const keeper = await openTestDatabase(database.url, 1);
      opened.push(keeper);
      const release = Promise.withResolvers<void>();
      const locked = Promise.withResolvers<void>();
      const keeping = keeper.transaction(async (tx) => {
        await tx.any(sql.type(z.object({}))`lock table mentor_turn in access exclusive mode`);
        locked.resolve();
        await release.promise;
      });
      await locked.promise;
      const answers = await Promise.all(Array.from({ length: 8 }, async () => answerOf(await fetch(`${url}/turns`))));
      for (const { status, body } of answers)
        expect([status, body.code]).to.be.deep.oneOf([
          [503, 'DATABASE_UNAVAILABLE'],
          [503, 'BUSY'],
        ]);
      release.resolve();
      await keeping;
      await until('it answers again', async () => (await fetch(`${url}/turns`)).status === 200);
    });
  });
});
