/**
 * Asks: does anything of the caller that woke an actor (its trace, its transaction) leak into the commands of other callers?
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { expect } from 'chai';
import { z } from 'zod';
import { sql } from '../../db/pool.ts';
import { actorRig, Gate, RIG_OPTIONS, turnOfTheLoop } from '../support/actor-rig.ts';
import { useDatabase } from '../support/database.ts';

describe('the async context of a command', () => {
  it('is that of its caller, not of the caller that woke the actor', async () => {
    const { run, hooks } = actorRig();
    const trace = new AsyncLocalStorage<string>();
    const seen: string[] = [];
    const gate = new Gate();
    hooks.load = async () => void seen.push(`load ${trace.getStore()}`);
    const asked = (name: string, wait = turnOfTheLoop) =>
      trace.run(name, () =>
        run('a', async () => {
          await wait();
          seen.push(`${trace.getStore()}`);
        }),
      );
    const commands = [
      asked('first', gate.wait),
      asked('second'),
      asked('third'),
      run('a', async () => void seen.push(`${trace.getStore()}`)),
    ];
    await gate.entered;
    gate.open();
    await Promise.all(commands);
    expect(seen).to.deep.equal(['load first', 'first', 'second', 'third', 'undefined']);
  });

  it('is nobody’s when an actor leaves memory to make room for the actor of a caller', async () => {
    const { system } = actorRig();
    const trace = new AsyncLocalStorage<string>();
    const seen: (string | undefined)[] = [];
    const behaviour = {
      load: async () => null,
      handle: async (_state: null, _command: { type: 'Touch' }) => ({ state: null, reply: null }),
      dropped: () => void seen.push(trace.getStore()),
    };
    const kind = system.kind('traced', behaviour, { ...RIG_OPTIONS, actorsMax: 1 });
    await trace.run('first', () => kind.ask('a', { type: 'Touch' }));
    await trace.run('second', () => kind.ask('b', { type: 'Touch' }));
    expect(seen).to.deep.equal([undefined]);
  });

  it('is nobody’s when idle actors are looked for', async () => {
    const { system, clock } = actorRig();
    const trace = new AsyncLocalStorage<string>();
    const seen: (string | undefined)[] = [];
    const behaviour = {
      load: async () => null,
      handle: async (_state: null, _command: { type: 'Touch' }) => ({ state: null, reply: null }),
      mayPassivate: () => seen.push(trace.getStore()) > 0,
    };
    const options = { ...RIG_OPTIONS, idleMs: 0, sweepMs: 100 };
    await trace.run('start', () => system.kind('traced', behaviour, options).ask('a', { type: 'Touch' }));
    clock.advance(100);
    expect(seen).to.deep.equal([undefined]);
  });

  it('is nobody’s when a command that runs too long is reported', async () => {
    const { run, clock, events } = actorRig({ handlerMs: 1_000 });
    const trace = new AsyncLocalStorage<string>();
    const seen: (string | undefined)[] = [];
    const push = events.push.bind(events);
    events.push = (event: string) => {
      if (event.startsWith('overran')) seen.push(trace.getStore());
      return push(event);
    };
    const gate = new Gate();
    const slow = trace.run('first', () => run('a', gate.wait));
    await gate.entered;
    clock.advance(1_000);
    gate.open();
    await slow;
    expect(seen).to.deep.equal([undefined]);
  });
});

describe('an actor that was woken inside a database transaction', () => {
  const database = useDatabase();
  const one = sql.type(z.object({ one: z.number() }))`select 1 as one`;

  it('runs the commands of others outside of it', async () => {
    const { run } = actorRig();
    const gate = new Gate();
    const queries: Promise<unknown>[] = [];
    const query = async () => void (await database.db.one(one));
    await database.db.transaction(async (tx) => {
      await tx.one(one);
      queries.push(run('a', gate.wait));
      await gate.entered;
    });
    queries.push(run('a', query));
    gate.open();
    await Promise.all(queries);
    await run('a', query);
  });
});
