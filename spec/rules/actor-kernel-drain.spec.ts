/**
 * Asks: when a server stops, is all that was accepted answered, and is nothing left behind?
 */
import { expect } from 'chai';
import { actorRig, faultOf, Gate, RIG_OPTIONS, turnOfTheLoop } from '../support/actor-rig.ts';

describe('a server that drains', () => {
  it('finishes what was accepted, refuses what is new with DRAINING, and then ends every actor', async () => {
    const { run, write, stay, system, notes, dropped, clock, events } = actorRig();
    const gate = new Gate();
    await stay('parked', true);
    await write('idle', 1);
    const accepted = [run('a', gate.wait), write('a', 1)];
    await gate.entered;
    const drained = system.drain(5_000);
    expect(await faultOf(write('a', 2))).to.include({ code: 'DRAINING', retry: 'later' });
    expect(notes.tell('new', { type: 'Write', n: 3 })).to.equal(false);
    expect(events).to.include('refused notes draining');
    expect(notes.has('a'), 'it has something to do').to.equal(true);
    gate.open();
    expect(await Promise.all(accepted)).to.deep.equal([[], [1]]);
    expect(await drained).to.equal(true);
    expect(dropped.map(({ id, reason }) => `${id} ${reason}`)).to.have.members(['parked shutdown', 'idle shutdown', 'a shutdown']);
    expect(notes.size).to.equal(0);
    expect(system.list()).to.deep.equal([]);
    expect(clock.timers, 'no timer is left').to.equal(0);
    expect((await faultOf(write('a', 4))).code).to.equal('DRAINING');
  });

  it('stops the kind that was created last first, unless it is told another order', async () => {
    const stopped = async (order: string[]) => {
      const { system, behaviour, events, write } = actorRig();
      const [second, third] = [system.kind('second', behaviour, RIG_OPTIONS), system.kind('third', behaviour, RIG_OPTIONS)];
      await Promise.all([write('a', 1), second.ask('a', { type: 'Write', n: 1 }), third.ask('a', { type: 'Write', n: 1 })]);
      await system.drain(1_000, order);
      return events.filter((event) => event.startsWith('passivated')).map((event) => event.split(' ')[1]);
    };
    expect(await stopped([])).to.deep.equal(['third', 'second', 'notes']);
    expect(await stopped(['second'])).to.deep.equal(['second', 'third', 'notes']);
  });

  it('lets accepted work ask the kinds that stop after its own', async () => {
    const { system, behaviour, notes, write } = actorRig();
    const later = system.kind('later', behaviour, RIG_OPTIONS);
    const gate = new Gate();
    let answer: readonly number[] = [];
    const work = async () => {
      await gate.wait();
      answer = await notes.ask('capacity', { type: 'Write', n: 1 });
    };
    const accepted = later.ask('a', { type: 'Run', during: work });
    await gate.entered;
    const drained = system.drain(5_000);
    await turnOfTheLoop();
    expect((await faultOf(write('capacity', 2))).code, 'an outsider').to.equal('DRAINING');
    gate.open();
    await accepted;
    expect(await drained).to.equal(true);
    expect(answer).to.deep.equal([1]);
  });

  it('gives up when its time is over: what waits is answered DRAINING, what runs is told to stop', async () => {
    const { run, write, system, clock, notes, dropped, rows } = actorRig();
    const gate = new Gate();
    let signal: AbortSignal | undefined;
    await write('a', 1);
    const hung = run('a', async (context) => {
      signal = context.signal;
      await gate.wait();
    });
    const waiting = faultOf(write('a', 2));
    await gate.entered;
    const drained = system.drain(5_000);
    await turnOfTheLoop();
    clock.advance(5_000);
    expect(await drained).to.equal(false);
    expect((await waiting).code).to.equal('DRAINING');
    expect(signal?.reason).to.include({ code: 'DRAINING' });
    expect(dropped, 'its handler still runs').to.deep.equal([]);
    gate.open();
    expect(await hung, 'a late answer is better than none').to.deep.equal([1]);
    await turnOfTheLoop();
    await turnOfTheLoop();
    expect(dropped).to.deep.equal([{ id: 'a', reason: 'shutdown', notes: [1] }]);
    expect(rows.get('a'), 'what was answered DRAINING did not run').to.deep.equal([1]);
    expect(notes.stats).to.include({ actors: 0, pending: 0 });
    expect(clock.timers).to.equal(0);
  });

  it('gives up also on a command that was accepted and has not started', async () => {
    const { write, system, clock, notes, rows, dropped } = actorRig();
    await write('a', 1);
    const accepted = faultOf(write('a', 2));
    const drained = system.drain(0);
    // The drain starts in a microtask and the mailbox in the next turn of the loop.
    await Promise.resolve();
    clock.advance(0);
    expect((await accepted).code).to.equal('DRAINING');
    expect(await drained).to.equal(false);
    expect(dropped).to.deep.equal([{ id: 'a', reason: 'shutdown', notes: [1] }]);
    await turnOfTheLoop();
    expect(rows.get('a')).to.deep.equal([1]);
    expect(notes.stats).to.include({ actors: 0, pending: 0 });
  });

  it('refuses already when it tells the first actor to go', async () => {
    const { system, notes } = actorRig();
    let accepted: boolean | undefined;
    const behaviour = {
      load: async () => null,
      handle: async (_state: null, _command: { type: 'Touch' }) => ({ state: null, reply: null }),
      dropped: () => {
        accepted = notes.tell('a', { type: 'Write', n: 1 });
      },
    };
    await system.kind('last', behaviour, RIG_OPTIONS).ask('x', { type: 'Touch' });
    await system.drain(1_000);
    expect(accepted).to.equal(false);
  });

  it('drains once, whoever asks', async () => {
    const { system, write, dropped } = actorRig();
    await write('a', 1);
    expect(await Promise.all([system.drain(1_000), system.drain(1)])).to.deep.equal([true, true]);
    expect(dropped).to.have.length(1);
  });
});
