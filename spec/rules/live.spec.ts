import { expect } from 'chai';
import { reconcileSlots } from '../../db/ledger/slots.ts';
import { sql } from '../../db/pool.ts';
import { useDatabase } from '../support/database.ts';
import { type HttpRig, useRigs } from '../support/http-rig.ts';
import { ask, emptyLedger, makeMain, makePerson, run } from '../support/ledger.ts';

describe('two servers on one database', () => {
  const database = useDatabase();
  const openRig = useRigs(database);
  let here: HttpRig;
  let there: HttpRig;
  beforeEach(async () => {
    await emptyLedger(database.db);
    await reconcileSlots(database.db, 4);
    here = await openRig();
    there = await openRig({ person: here.person });
  });

  it('show a question that was asked at the other one', async () => {
    const stream = await there.events();
    await stream.next('snapshot');
    const { body } = await here.ask('Why?');
    expect(await stream.next('entry')).to.deep.equal(body.entry);
    expect(await stream.next('turn')).to.deep.equal(body.turn);
  });

  it('show an answer that is being written at the other one, and its end', async () => {
    const { body } = await here.ask('Why?');
    const sandbox = await here.sandbox(body.turn.conversationId);
    const { body: pulled } = await sandbox.next(5_000);
    const stream = await there.events();
    await stream.next('snapshot');
    await sandbox.partial(pulled.run, 0, 'Because');
    expect(await stream.next('partial')).to.include({ offset: 0, text: 'Because', stage: 'Thinking…', epoch: 1 });
    expect((await there.send('GET', `turns/${body.turn.id}`)).body.stage).to.equal('Thinking…');
    await sandbox.partial(pulled.run, 7, ' of that.');
    expect(await stream.next('partial')).to.include({ offset: 7, text: ' of that.' });
    await sandbox.answer(pulled.run, 'Because of that.');
    expect((await stream.next('entry', ({ kind }) => kind === 'answer')).text).to.equal('Because of that.');
    await stream.next('turn', ({ status }) => status === 'DONE');
    expect(there.live.partials.size).to.deep.equal({ turns: 0, bytes: 0 });
  });

  it('show a reader who connects at any moment the whole text without a gap or a repeat', async () => {
    const { body } = await here.ask('Why?');
    const sandbox = await here.sandbox(body.turn.conversationId);
    const { body: pulled } = await sandbox.next(5_000);
    const text = Array.from({ length: 200 }, (_, n) => `word${n} `).join('');
    await sandbox.partial(pulled.run, 0, 'start ');
    const writing = (async () => {
      for (let at = 0; at < text.length; at += 12) await sandbox.partial(pulled.run, 6 + at, text.slice(at, at + 12));
    })();
    const readers = Array.from({ length: 20 }, async (_, n) => {
      const stream = await (n % 2 === 0 ? here : there).events();
      const { partials } = await stream.next('snapshot');
      let seen = partials[0]?.text ?? '';
      while (seen.length < 6 + text.length) {
        const partial = await stream.next('partial');
        expect(partial.offset).to.equal(seen.length);
        seen += partial.text;
      }
      await stream.close();
      return seen;
    });
    await writing;
    for (const seen of await Promise.all(readers)) expect(seen).to.equal(`start ${text}`);
  });

  it('tell each other whose attempts were stopped, so that model calls end everywhere', async () => {
    const { body } = await here.ask('Why?');
    const sandbox = await here.sandbox(body.turn.conversationId);
    const { body: pulled } = await sandbox.next(5_000);
    const sealed = Promise.withResolvers<readonly string[]>();
    there.live.changes.onChange((change) => {
      if (change.sealedRunIds.length > 0) sealed.resolve(change.sealedRunIds);
    });
    await here.send('PATCH', `turns/${body.turn.id}/status`, { body: { status: 'STOPPED' } });
    expect(await sealed.promise).to.deep.equal([pulled.run.id]);
  });

  it('tell a waiting person when every slot is taken, their position, and when one is free again', async () => {
    await reconcileSlots(database.db, 1);
    const other = await openRig({ person: await makePerson(database.db) });
    const { body } = await other.ask('first');
    const sandbox = await other.sandbox(body.turn.conversationId);
    const stream = await there.events();
    await stream.next('snapshot');
    const { body: waiting } = await here.ask('second');
    await stream.next('turn', ({ id, waitingFor }) => id === waiting.turn.id && waitingFor === null);
    const { body: pulled } = await sandbox.next(5_000);
    expect(await stream.next('turn')).to.include({ id: waiting.turn.id, waitingFor: 'FREE_HEPH', position: 1 });
    await sandbox.answer(pulled.run, 'Done.');
    expect(await stream.next('turn')).to.include({ id: waiting.turn.id, waitingFor: null, position: null });
  });

  it('live again when the LISTEN connection was cut: words that came meanwhile are found in the rows', async () => {
    const stream = await there.events();
    await stream.next('snapshot');
    await here.ask('before');
    await stream.next('turn');
    const subscribedAgain = new Promise<void>((resolve) => there.live.onGap(resolve));
    const [killed] = await run(
      database.db,
      sql.unsafe`select count(pg_terminate_backend(pid))::int as n from pg_stat_activity
        where datname = current_database() and application_name = 'heph-listen'`,
    );
    expect(killed?.['n']).to.equal(2);
    const { body } = await here.ask('in between');
    const seen = (conversations: readonly { turns: readonly { id: string }[] }[]) =>
      conversations.some(({ turns }) => turns.some(({ id }) => id === body.turn.id));
    await Promise.race([
      stream.next('snapshot', ({ conversations }) => seen(conversations)),
      stream.next('turn', ({ id }) => id === body.turn.id),
    ]);
    await subscribedAgain;
    const { body: later } = await here.ask('after');
    await Promise.race([
      stream.next('turn', ({ id }) => id === later.turn.id),
      stream.next('snapshot', ({ conversations }) => conversations.some(({ turns }) => turns.some(({ id }) => id === later.turn.id))),
    ]);
  });

  it('lose no reader and no change when every connection to the database is cut', async () => {
    const stream = await here.events();
    await stream.next('snapshot');
    await here.ask('before');
    await stream.next('turn');
    await run(
      database.db,
      sql.unsafe`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`,
    );
    let answer = await here.ask('after', { requestId: 'after' });
    while (answer.status === 503) answer = await here.ask('after', { requestId: 'after' });
    expect(answer.status).to.equal(202);
    const { turn } = answer.body;
    await Promise.race([
      stream.next('turn', ({ id }) => id === turn.id),
      stream.next('snapshot', ({ conversations }) => conversations.some(({ turns }) => turns.some(({ id }) => id === turn.id))),
    ]);
    expect(stream.over).to.equal(false);
  });

  it('are told every step of a conversation, so that nothing is left for the sweep', async () => {
    const steps: [since: number, version: number][] = [];
    here.live.changes.onChange(({ since, version }) => void steps.push([since ?? version - 1, version]));
    const { body } = await here.ask('stopped');
    const { conversationId } = body.turn;
    const sandbox = await here.sandbox(conversationId);
    const first = (await sandbox.next(5_000)).body.run;
    await here.send('PATCH', `turns/${body.turn.id}/status`, { body: { status: 'STOPPED' } });
    await sandbox.call(first, 'turn/end', { outcome: 'STOPPED', entries: [], lastPartial: null });
    const parked = sandbox.next(5_000);
    await here.parked(1);
    await here.ask('claimed with its question, then handed on');
    await sandbox.call((await parked).body.run, 'end', { outcome: 'HANDED_ON' });
    const again = (await sandbox.next(5_000)).body.run;
    expect(again.epoch).to.equal(2);
    await sandbox.answer(again, 'Because.');
    await here.send('PUT', 'conversation/read', { body: { lastReadAt: '2026-01-01T00:00:00.000Z' } });
    const [row] = await run(database.db, sql.unsafe`select version from mentor_conversation where id = ${conversationId}`);
    expect(steps.at(-1)?.[1]).to.equal(row?.['version']);
    for (const [at, [since]] of steps.entries()) expect(since, `step ${at}`).to.equal(steps[at - 1]?.[1] ?? 0);
  });

  it('find a change whose server died between its commit and its word', async () => {
    const stream = await there.events();
    await stream.next('snapshot');
    const conversationId = await makeMain(database.db, here.person);
    const asked = await ask(database.db, here.person, conversationId);
    const { conversations } = await stream.next('snapshot');
    expect(conversations[0]?.turns.map(({ id }) => id)).to.deep.equal([asked.turnId]);
    const again = await ask(database.db, here.person, conversationId);
    const second = await stream.next('snapshot');
    expect(second.conversations[0]?.turns.map(({ id }) => id)).to.include(again.turnId);
  });
});
