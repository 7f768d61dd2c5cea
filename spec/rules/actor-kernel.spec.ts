/**
 * Asks: can a command be lost, run twice at once, or wait without a bound; can an actor stay in memory without a bound?
 */
import { expect } from 'chai';
import { Work, WorkWatch } from '../../actors/kernel/work.ts';
import { RuntimeFault } from '../../src/kernel/faults.ts';
import { actorRig, faultOf, Gate, turnOfTheLoop } from '../support/actor-rig.ts';
import { ManualClock } from '../support/manual-clock.ts';

describe('the mailbox of an actor', () => {
  it('runs the commands of one id one at a time, in the order in which they were accepted', async () => {
    const { run, notes } = actorRig();
    const gate = new Gate();
    const steps: string[] = [];
    const step = (name: string, wait: () => Promise<void>) =>
      run('a', async () => {
        steps.push(`${name} starts`);
        await wait();
        steps.push(`${name} ends`);
      });
    const all = [step('first', gate.wait), step('second', turnOfTheLoop), step('third', turnOfTheLoop)];
    await gate.entered;
    await turnOfTheLoop();
    expect(steps).to.deep.equal(['first starts']);
    gate.open();
    await Promise.all(all);
    expect(steps).to.deep.equal(['first starts', 'first ends', 'second starts', 'second ends', 'third starts', 'third ends']);
    expect(notes.stats.pending).to.equal(0);
  });

  it('runs the commands of different ids side by side', async () => {
    const { run } = actorRig();
    const gate = new Gate();
    const slow = run('a', gate.wait);
    await gate.entered;
    await run('b', async () => gate.open());
    await slow;
  });

  it('accepts commands up to its bound, refuses one more with BUSY, and accepts again once it has caught up', async () => {
    const { write, run, notes, events } = actorRig({ mailboxMax: 3 });
    const gate = new Gate();
    const accepted = [run('a', gate.wait), write('a', 1), write('a', 2)];
    const refused = await faultOf(write('a', 3));
    expect(refused).to.include({ code: 'BUSY', retry: 'later' });
    expect(notes.tell('a', { type: 'Write', n: 4 })).to.equal(false);
    expect(events.filter((event) => event === 'refused notes mailbox')).to.have.length(2);
    gate.open();
    await Promise.all(accepted);
    expect(await write('a', 5)).to.deep.equal([1, 2, 5]);
  });

  it('answers a command that waited too long with BUSY and does not run it', async () => {
    const { run, write, clock, events, rows } = actorRig({ mailboxWaitMs: 500 });
    const gate = new Gate();
    const slow = run('a', gate.wait);
    const late = faultOf(write('a', 1));
    await gate.entered;
    clock.advance(501);
    gate.open();
    await slow;
    expect(await late).to.include({ code: 'BUSY', retry: 'later' });
    expect(rows.has('a')).to.equal(false);
    expect(events).to.include('handled notes Write expired 501 0');
    expect(await write('a', 2)).to.deep.equal([2]);
  });

  it('lets a caller wait less than the others', async () => {
    const { run, notes, write, clock } = actorRig();
    const gate = new Gate();
    const slow = run('a', gate.wait);
    const hasty = faultOf(notes.ask('a', { type: 'Write', n: 1 }, { waitMs: 10 }));
    const patient = write('a', 2);
    await gate.entered;
    clock.advance(11);
    gate.open();
    expect((await hasty).code).to.equal('BUSY');
    expect(await patient).to.deep.equal([2]);
    await slow;
  });
});

describe('a command that crashes', () => {
  it('is answered with its fault, and the next command finds the state that the rows have', async () => {
    const { write, run, rows, loads, dropped, notes, events, system } = actorRig();
    await write('a', 1);
    const crash = faultOf(
      run('a', async () => {
        rows.set('a', [1, 2]);
        throw new RuntimeFault('CONVERSATION_NOT_FOUND', 'It is gone.');
      }),
    );
    const next = write('a', 3);
    expect((await crash).code).to.equal('CONVERSATION_NOT_FOUND');
    expect(await next).to.deep.equal([1, 2, 3]);
    expect(loads).to.deep.equal(['a', 'a']);
    expect(dropped).to.deep.equal([{ id: 'a', reason: 'crash', notes: [1] }]);
    expect(notes.stats.crashes).to.equal(1);
    expect(events).to.include('crashed notes CONVERSATION_NOT_FOUND');
    expect(system.list()[0]).to.include({ id: 'a', state: 'active', lastFault: 'CONVERSATION_NOT_FOUND' });
  });

  it('is answered without the words of what was thrown, whatever that is', async () => {
    const { run, notes, system } = actorRig();
    const thrown = await faultOf(run('a', () => Promise.reject(new TypeError('secret words'))));
    expect(thrown).to.include({ code: 'INTERNAL', retry: 'later' });
    expect(thrown.publicMessage).to.not.contain('secret');
    expect(system.list()[0]).to.include({ state: 'failed', lastFault: 'TypeError' });
    const odd = await faultOf(run('a', () => Promise.reject('a string')));
    expect(odd.code).to.equal('INTERNAL');
    expect(notes.stats).to.include({ crashes: 2, pending: 0 });
  });

  it('is answered when its load fails, and the next command tries the load again', async () => {
    const { write, hooks, dropped, events } = actorRig();
    let failures = 2;
    hooks.load = async () => {
      if (failures-- > 0) throw new RuntimeFault('DATABASE_UNAVAILABLE', 'The database does not answer.', { retry: 'later' });
    };
    const answers = [faultOf(write('a', 1)), faultOf(write('a', 2)), write('a', 3)] as const;
    expect((await answers[0]).code).to.equal('DATABASE_UNAVAILABLE');
    expect((await answers[1]).code).to.equal('DATABASE_UNAVAILABLE');
    expect(await answers[2]).to.deep.equal([3]);
    expect(dropped).to.deep.equal([]);
    expect(events.filter((event) => event.startsWith('activated'))).to.have.length(1);
  });

  it('does no harm when its caller wanted no reply', async () => {
    const { notes, write } = actorRig();
    expect(notes.tell('a', { type: 'Run', during: () => Promise.reject(new Error('nobody listens')) })).to.equal(true);
    expect(await write('a', 1)).to.deep.equal([1]);
  });
});

describe('a command that runs too long', () => {
  it('is reported once, its signal aborts, and its caller may try again later', async () => {
    const { run, write, clock, events, notes, system } = actorRig({ handlerMs: 2_000 });
    await write('a', 1);
    const gate = new Gate();
    const slow = faultOf(
      run('a', async (context) => {
        await gate.wait();
        context.signal.throwIfAborted();
      }),
    );
    await gate.entered;
    clock.advance(1_999);
    expect(notes.stats.overruns).to.equal(0);
    clock.advance(60_000);
    expect(events.filter((event) => event === 'overran notes Run')).to.have.length(1);
    expect(system.list()[0]).to.include({ state: 'busy', lastFault: 'HandlerOverrun' });
    gate.open();
    expect(await slow).to.include({ code: 'BUSY', retry: 'later' });
  });

  it('tells its I/O through the signal, and the fault of that I/O reaches the caller as BUSY', async () => {
    const { run, clock } = actorRig({ handlerMs: 2_000 });
    const entered = Promise.withResolvers<void>();
    const slow = faultOf(
      run('a', ({ signal }) => {
        entered.resolve();
        return new Promise((_, reject) => {
          signal.addEventListener('abort', () => reject(new DOMException('This operation was aborted', 'AbortError')));
        });
      }),
    );
    await entered.promise;
    clock.advance(2_000);
    expect((await slow).code).to.equal('BUSY');
  });

  it('also when it is the load that takes too long', async () => {
    const { write, clock, hooks, notes } = actorRig({ handlerMs: 2_000 });
    const gate = new Gate();
    hooks.load = gate.wait;
    const slow = write('a', 1);
    await gate.entered;
    clock.advance(2_000);
    expect(notes.stats.overruns).to.equal(1);
    gate.open();
    expect(await slow).to.deep.equal([1]);
  });

  it('is watched no more once it has ended', async () => {
    const clock = new ManualClock();
    const reported: string[] = [];
    const watch = new WorkWatch<{ name: string; work: Work }>(clock, 1_000, ({ name }) => void reported.push(name));
    const item = (name: string) => ({ name, work: new Work({ id: name, type: 'Run' }, clock.now(), clock.monotonicMs()) });
    const [slow, quick] = [item('slow'), item('quick')];
    watch.started(slow);
    watch.started(quick);
    watch.ended(quick);
    clock.advance(1_000);
    expect([...watch.overdue]).to.deep.equal([slow]);
    watch.ended(slow);
    expect([...watch.overdue]).to.deep.equal([]);
    clock.advance(10_000);
    expect(reported).to.deep.equal(['slow']);
    expect(clock.timers).to.equal(0);
  });

  it('does not spend the time of the command after it', async () => {
    const { run, clock, notes } = actorRig({ handlerMs: 2_000 });
    const [first, second] = [new Gate(), new Gate()];
    const commands = [run('a', first.wait), run('a', second.wait)];
    await first.entered;
    clock.advance(1_500);
    first.open();
    await second.entered;
    clock.advance(1_999);
    expect(notes.stats.overruns).to.equal(0);
    clock.advance(1);
    expect(notes.stats.overruns).to.equal(1);
    second.open();
    await Promise.all(commands);
  });

  it('does not hold the callers behind it longer than they wanted to wait', async () => {
    const { run, write, clock, rows } = actorRig({ handlerMs: 2_000, mailboxWaitMs: 3_000 });
    const gate = new Gate();
    const slow = run('a', gate.wait);
    const behind = faultOf(write('a', 1));
    await gate.entered;
    clock.advance(4_000);
    expect((await behind).code).to.equal('BUSY');
    gate.open();
    await slow;
    expect(await write('a', 2)).to.deep.equal([2]);
    expect(rows.get('a')).to.deep.equal([2]);
  });
});
