/**
 * Asks: can an operator see what the actors do, and does each way of addressing one reach the right one?
 */
import { expect } from 'chai';
import { ActorSystem, type Address } from '../../actors/kernel/index.ts';
import { type LogFields, silentLog } from '../../src/kernel/log.ts';
import { actorRig, faultOf, Gate, type NoteCommand, RIG_OPTIONS } from '../support/actor-rig.ts';
import { ManualClock } from '../support/manual-clock.ts';

describe('the supervision tree', () => {
  it('shows each actor with its state, its mailbox, its last fault and its times', async () => {
    const { write, run, clock, system } = actorRig();
    const startedAt = clock.now();
    const gate = new Gate();
    await write('idle', 1);
    clock.advance(1_000);
    await faultOf(run('failed', () => Promise.reject(new TypeError('words'))));
    await write('busy', 1);
    clock.advance(1_000);
    const commands = [run('busy', gate.wait), write('busy', 2), write('busy', 3)];
    await gate.entered;
    clock.advance(500);
    const common = { kind: 'notes', oldestWaitMs: 0, mailboxDepth: 0, lastFault: null, commandsHandled: 1 };
    expect(system.list()).to.deep.equal([
      {
        ...common,
        id: 'busy',
        state: 'busy',
        mailboxDepth: 3,
        oldestWaitMs: 500,
        activatedAt: startedAt + 1_000,
        lastUsedAt: startedAt + 1_000,
      },
      { ...common, id: 'failed', state: 'failed', lastFault: 'TypeError', activatedAt: startedAt + 1_000, lastUsedAt: startedAt + 1_000 },
      { ...common, id: 'idle', state: 'active', activatedAt: startedAt, lastUsedAt: startedAt },
    ]);
    gate.open();
    await Promise.all(commands);
  });

  it('shows an actor that loads as activating', async () => {
    const { write, hooks, system } = actorRig();
    const gate = new Gate();
    hooks.load = gate.wait;
    const first = write('a', 1);
    await gate.entered;
    expect(system.list()[0]).to.include({ id: 'a', state: 'activating', commandsHandled: 0 });
    gate.open();
    await first;
  });

  it('shows the busiest actors of all kinds when there are more than were asked for', async () => {
    const { system, behaviour, write, run, stay } = actorRig({ actorsMax: 2_000 });
    const others = system.kind('others', behaviour, RIG_OPTIONS);
    const gate = new Gate();
    for (let i = 0; i < 1_100; i++) await write(String(i), 1);
    await stay('0', true);
    const commands = [others.ask('x', { type: 'Run', during: gate.wait }), others.ask('x', { type: 'Write', n: 1 }), run('7', gate.wait)];
    await gate.entered;
    expect(system.list(3).map(({ kind, id }) => `${kind} ${id}`)).to.deep.equal(['others x', 'notes 7', 'notes 0']);
    expect(system.list()).to.have.length(1_000);
    gate.open();
    await Promise.all(commands);
  });

  it('reports each command with its wait, its work and its outcome', async () => {
    const { run, write, clock, events, system } = actorRig();
    const gate = new Gate();
    const commands = [run('a', gate.wait), write('a', 1)];
    await gate.entered;
    clock.advance(250);
    gate.open();
    await Promise.all(commands);
    await faultOf(run('a', () => Promise.reject(new TypeError('words'))));
    expect(events).to.deep.equal([
      'activated notes 0',
      'handled notes Run ok 0 250',
      'handled notes Write ok 250 0',
      'crashed notes TypeError',
      'handled notes Run crash 0 0',
    ]);
    const expected = { kind: 'notes', actors: 1, pending: 0, commands: 3, activations: 1, crashes: 1 };
    expect(system.stats()[0]).to.include(expected);
  });

  it('does not break when its observer does', async () => {
    const logged: string[] = [];
    const broken = () => {
      throw new Error('broken metrics');
    };
    const observer = {
      commandHandled: broken,
      activated: broken,
      passivated: broken,
      crashed: broken,
      refused: broken,
      overran: broken,
    };
    const log = { ...silentLog, error: (event: string, _fields?: LogFields) => void logged.push(event) };
    const system = new ActorSystem({ clock: new ManualClock(), log, observer });
    const behaviour = { load: async () => 1, handle: async (state: number, _command: { type: 'Touch' }) => ({ state, reply: state }) };
    const kind = system.kind('a', behaviour, RIG_OPTIONS);
    expect(await kind.ask('x', { type: 'Touch' })).to.equal(1);
    expect(await system.drain(1_000)).to.equal(true);
    expect(logged).to.include('actor.observer_failed');
  });
});

describe('the address of an actor', () => {
  it('reaches the same actor as its id', async () => {
    const { notes, write } = actorRig();
    await write('a', 1);
    const address = notes.address('a');
    expect(address).to.include({ kind: 'notes', id: 'a' });
    expect(await notes.ask(address, { type: 'Write', n: 2 })).to.deep.equal([1, 2]);
  });

  it('is refused by another kind even where the compiler was told otherwise', async () => {
    const { system, behaviour, notes } = actorRig();
    const others = system.kind('others', behaviour, RIG_OPTIONS);
    const foreign = others.address('a') as unknown as Address<NoteCommand, 'notes'>;
    expect(() => notes.tell(foreign, { type: 'Write', n: 1 })).to.throw(TypeError, 'others');
    expect(notes.size).to.equal(0);
  });

  it('may hold any characters', async () => {
    const { write, rows } = actorRig();
    for (const id of ['a/b:c%@ é', '', '__proto__']) await write(id, 1);
    expect([...rows.keys()]).to.deep.equal(['a/b:c%@ é', '', '__proto__']);
  });

  it('does not wake an actor for news that a load would read anyway', async () => {
    const { notes, write, run, loads } = actorRig();
    const news = { type: 'Write', n: 9 } as const;
    expect(notes.askIfActive('a', news)).to.equal(null);
    expect(notes.tellIfActive('a', news)).to.equal(false);
    await faultOf(run('failed', () => Promise.reject(new Error('words'))));
    expect(notes.tellIfActive('failed', news), 'it holds no state').to.equal(false);
    expect(loads).to.deep.equal(['failed']);
    await write('a', 1);
    expect(await notes.askIfActive('a', news)).to.deep.equal([1, 9]);
    expect(notes.tellIfActive('a', news)).to.equal(true);
    expect(await write('a', 2)).to.deep.equal([1, 9, 9, 2]);
  });

  it('brings news to an actor that is loading, because its load may have read the old rows', async () => {
    const { notes, write, hooks } = actorRig();
    const gate = new Gate();
    hooks.load = gate.wait;
    const first = write('a', 1);
    await gate.entered;
    const news = notes.askIfActive('a', { type: 'Write', n: 2 });
    gate.open();
    await first;
    expect(await news).to.deep.equal([1, 2]);
  });
});

describe('a single actor', () => {
  it('keeps its state until the server stops, under the same rules', async () => {
    const { system, behaviour, clock, dropped } = actorRig();
    const single = system.single('capacity', behaviour, { mailboxMax: 2, handlerMs: 1_000 });
    await single.ask({ type: 'Write', n: 1 });
    clock.advance(10 * 3_600_000);
    expect(await single.ask({ type: 'Write', n: 2 })).to.deep.equal([1, 2]);
    const gate = new Gate();
    expect(single.tell({ type: 'Run', during: gate.wait })).to.equal(true);
    expect(single.tell({ type: 'Write', n: 3 })).to.equal(true);
    expect(single.tell({ type: 'Write', n: 4 })).to.equal(false);
    gate.open();
    expect(await system.drain(1_000)).to.equal(true);
    expect(dropped).to.deep.equal([{ id: 'capacity', reason: 'shutdown', notes: [1, 2, 3] }]);
    expect(single.stats).to.include({ kind: 'capacity', activations: 1, actors: 0 });
  });
});

describe('an actor kind', () => {
  it('is not created with a bound that bounds nothing, and says which', () => {
    const { system, behaviour } = actorRig();
    const create = (wrong: object) => () => system.kind('wrong', behaviour, { ...RIG_OPTIONS, ...wrong });
    expect(create({ mailboxMax: 0 })).to.throw(RangeError, 'actor kind wrong: mailboxMax is 0');
    expect(create({ actorsMax: Number.POSITIVE_INFINITY })).to.throw(RangeError, 'actorsMax is Infinity');
    expect(create({ handlerMs: Number.NaN })).to.throw(RangeError, 'handlerMs is NaN');
    expect(create({ idleMs: -1 })).to.throw(RangeError, 'idleMs is -1');
  });

  it('has its name alone', () => {
    const { system, behaviour } = actorRig();
    expect(() => system.kind('notes', behaviour, RIG_OPTIONS)).to.throw(TypeError, 'notes');
  });
});
