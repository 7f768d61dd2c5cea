/**
 * Asks: who leaves memory, when, and is what it held released exactly once?
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect } from 'chai';
import { ActorSystem } from '../../actors/kernel/index.ts';
import { silentLog } from '../../src/kernel/log.ts';
import { actorRig, faultOf, Gate, RIG_OPTIONS, turnOfTheLoop } from '../support/actor-rig.ts';
import { ManualClock } from '../support/manual-clock.ts';

describe('an actor that nobody uses', () => {
  it('leaves memory after its idle time, and the next command finds it as it was', async () => {
    const { write, clock, notes, dropped } = actorRig({ idleMs: 60_000, sweepMs: 1_000 });
    await write('a', 1);
    clock.advance(59_000);
    expect(notes.has('a')).to.equal(true);
    await write('a', 2);
    clock.advance(59_000);
    expect(notes.has('a'), 'its last use counts').to.equal(true);
    clock.advance(1_000);
    expect(notes.has('a')).to.equal(false);
    expect(dropped).to.deep.equal([{ id: 'a', reason: 'idle', notes: [1, 2] }]);
    expect(await write('a', 3)).to.deep.equal([1, 2, 3]);
  });

  it('never leaves while it has something to do', async () => {
    const { run, write, clock, notes } = actorRig({ idleMs: 0, handlerMs: 1_000_000, mailboxWaitMs: 1_000_000 });
    const gate = new Gate();
    const commands = [run('a', gate.wait), write('a', 1)];
    clock.advance(60_000);
    await gate.entered;
    clock.advance(60_000);
    expect(notes.has('a')).to.equal(true);
    gate.open();
    expect(await Promise.all(commands)).to.deep.equal([[], [1]]);
    clock.advance(1_000);
    expect(notes.has('a')).to.equal(false);
  });

  it('stays as long as its behaviour wants it to, for example while it parks a pull', async () => {
    const { stay, clock, notes, dropped } = actorRig({ idleMs: 60_000 });
    await stay('a', true);
    clock.advance(10 * 60_000);
    expect(notes.has('a')).to.equal(true);
    await stay('a', false);
    clock.advance(60_000);
    expect(notes.has('a')).to.equal(false);
    expect(dropped.map((drop) => drop.reason)).to.deep.equal(['idle']);
  });

  it('leaves with the next sweep when it stops wanting to stay without a command', async () => {
    const { clock, system } = actorRig();
    const pull = { parked: true };
    const behaviour = {
      load: async () => pull,
      handle: async (state: typeof pull, _command: { type: 'Park' }) => ({ state, reply: null }),
      mayPassivate: (state: typeof pull) => !state.parked,
    };
    const kind = system.kind('pulls', behaviour, { mailboxMax: 4, actorsMax: 10, idleMs: 1_000, handlerMs: 1_000, sweepMs: 1_000 });
    await kind.ask('a', { type: 'Park' });
    clock.advance(10_000);
    expect(kind.has('a')).to.equal(true);
    pull.parked = false;
    clock.advance(1_000);
    expect(kind.has('a')).to.equal(false);
  });

  it('stays when its behaviour fails to say what it wants, and that failure is visible', async () => {
    const { write, clock, notes, hooks, system } = actorRig({ idleMs: 1_000 });
    await write('a', 1);
    hooks.asked = () => {
      throw new RangeError('broken');
    };
    clock.advance(2_000);
    expect(notes.has('a')).to.equal(true);
    expect(system.list()[0]?.lastFault).to.equal('RangeError');
  });

  it('leaves although its behaviour fails to release what it held', async () => {
    const { clock, system } = actorRig();
    const behaviour = {
      load: async () => 0,
      handle: async (state: number, _command: { type: 'Touch' }) => ({ state: state + 1, reply: state }),
      dropped: () => {
        throw new RangeError('broken');
      },
    };
    const kind = system.kind('broken', behaviour, { mailboxMax: 4, actorsMax: 10, idleMs: 1_000, handlerMs: 1_000, sweepMs: 1_000 });
    await kind.ask('a', { type: 'Touch' });
    clock.advance(1_000);
    expect(kind.has('a')).to.equal(false);
    expect(kind.stats.crashes).to.equal(1);
    expect(await kind.ask('a', { type: 'Touch' })).to.equal(0);
  });

  it('costs no timer of its own', async () => {
    const { write, clock } = actorRig({ actorsMax: 1_000 });
    await write('0', 0);
    const timers = clock.timers;
    await Promise.all(Array.from({ length: 500 }, (_, i) => write(String(i), i)));
    expect(clock.timers).to.equal(timers);
    clock.advance(RIG_OPTIONS.handlerMs);
    expect(clock.timers, 'only the sweep is left').to.equal(1);
  });

  it('leaves also when thousands leave at once', async () => {
    const { write, clock, notes } = actorRig({ actorsMax: 5_000, idleMs: 0, sweepMs: 1_000 });
    await Promise.all(Array.from({ length: 3_500 }, (_, i) => write(String(i), i)));
    clock.advance(1_000);
    expect(notes.size).to.equal(0);
  });
});

describe('a kind that has all the actors it may have', () => {
  it('ends the idle actor that was used least recently to make room for another', async () => {
    const { write, notes, dropped } = actorRig({ actorsMax: 3 });
    for (const id of ['a', 'b', 'c', 'a']) await write(id, 1);
    await write('d', 1);
    expect(dropped).to.deep.equal([{ id: 'b', reason: 'evicted', notes: [1] }]);
    expect(notes.size).to.equal(3);
    expect(await write('b', 2)).to.deep.equal([1, 2]);
  });

  it('passes over an actor that wants to stay', async () => {
    const { write, stay, dropped } = actorRig({ actorsMax: 2 });
    await stay('a', true);
    await write('b', 1);
    await write('c', 1);
    expect(dropped.map(({ id }) => id)).to.deep.equal(['b']);
  });

  it('refuses another with BUSY when all are busy or want to stay, and serves it once one may leave', async () => {
    const { write, stay, run, notes, events } = actorRig({ actorsMax: 2 });
    const gate = new Gate();
    await stay('a', true);
    const busy = run('b', gate.wait);
    expect(await faultOf(write('c', 1))).to.include({ code: 'BUSY', retry: 'later' });
    expect(notes.tell('c', { type: 'Write', n: 1 })).to.equal(false);
    expect(events.filter((event) => event === 'refused notes actors')).to.have.length(2);
    expect(await write('a', 2), 'those in memory are served').to.deep.equal([2]);
    gate.open();
    await busy;
    expect(await write('c', 3)).to.deep.equal([3]);
    expect(notes.has('b')).to.equal(false);
  });

  it('does not ask all of its actors again and again whether they may leave', async () => {
    const { stay, write, hooks } = actorRig({ actorsMax: 1_000 });
    for (let i = 0; i < 1_000; i++) await stay(String(i), true);
    await faultOf(write('another', 1));
    let asked = 0;
    hooks.asked = () => void asked++;
    for (let i = 0; i < 100; i++) await faultOf(write('another', 1));
    expect(asked).to.be.at.most(1_000);
  });

  it('finds the one that may leave among many that want to stay', async () => {
    const { system } = actorRig();
    const parked = new Set<string>();
    const behaviour = {
      load: async (id: string) => {
        parked.add(id);
        return id;
      },
      handle: async (state: string, _command: { type: 'Park' }) => ({ state, reply: null }),
      mayPassivate: (id: string) => !parked.has(id),
    };
    const kind = system.kind('pulls', behaviour, { ...RIG_OPTIONS, actorsMax: 40 });
    for (let i = 0; i < 40; i++) await kind.ask(String(i), { type: 'Park' });
    await faultOf(kind.ask('another', { type: 'Park' }));
    parked.delete('25');
    let refusals = 0;
    while (!kind.tell('another', { type: 'Park' })) expect(++refusals).to.be.below(40);
    expect(kind.has('25')).to.equal(false);
    expect(kind.size).to.equal(40);
  });

  it('is not confused by an actor that, as it leaves, asks for the one that it makes room for', async () => {
    const { system } = actorRig();
    const loads: string[] = [];
    const kind = system.kind(
      'nested',
      {
        load: async (id: string) => {
          loads.push(id);
          return id;
        },
        handle: async (state: string, _command: { type: 'Touch' }) => ({ state, reply: state }),
        dropped: (id: string) => void (id === 'a' && kind.tell('b', { type: 'Touch' })),
      },
      { mailboxMax: 4, actorsMax: 1, idleMs: 1_000, handlerMs: 1_000, sweepMs: 1_000 },
    );
    await kind.ask('a', { type: 'Touch' });
    expect(await kind.ask('b', { type: 'Touch' })).to.equal('b');
    expect(loads).to.deep.equal(['a', 'b']);
    expect(kind.stats).to.include({ actors: 1, commands: 3, pending: 0 });
  });
});

describe('an idle actor in memory', () => {
  it('costs at most 3 KB, and nothing once it has left', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const clock = new ManualClock();
    const system = new ActorSystem({ clock, log: silentLog });
    const behaviour = {
      load: async () => 0,
      handle: async (state: number, _command: { type: 'Touch' }) => ({ state: state + 1, reply: state }),
    };
    const options = { mailboxMax: 4, actorsMax: 20_000, idleMs: 1_000, handlerMs: 1_000, sweepMs: 1_000 };
    const kind = system.kind('idle', behaviour, options);
    const touch = (from: number, to: number) => {
      const ids = Array.from({ length: to - from }, (_, i) => `0198c0de-0000-7000-8000-${String(from + i).padStart(12, '0')}`);
      return Promise.all(ids.map((id) => kind.ask(id, { type: 'Touch' })));
    };
    await touch(0, 1_000);
    collect();
    const beforeBytes = process.memoryUsage().heapUsed;
    for (let from = 1_000; from < 11_000; from += 500) await touch(from, from + 500);
    collect();
    const bytesPerActor = (process.memoryUsage().heapUsed - beforeBytes) / 10_000;
    expect(kind.size).to.equal(11_000);
    expect(bytesPerActor).to.be.within(200, 3_072);
    clock.advance(1_000);
    expect(kind.size).to.equal(0);
    await turnOfTheLoop();
    collect();
    expect((process.memoryUsage().heapUsed - beforeBytes) / 10_000, 'left behind').to.be.below(50);
  });
});
