/**
 * What servers know of the words of running turns, whoever wrote them, whatever was lost on the way, and when they let go of them.
 * cases: C10, G7
 */
import { expect } from 'chai';
import fc from 'fast-check';
import { type ConversationId, type TurnId, uuidv7 } from '../../src/kernel/ids.ts';
import { PartialBus } from '../../src/live/partial-bus.ts';
import { ManualClock } from '../support/manual-clock.ts';

describe('the partial bus', () => {
  const turn = { workspaceId: uuidv7(), accountId: uuidv7(), conversationId: uuidv7<'conversation'>(), turnId: uuidv7<'turn'>() };
  const bus = (serverId: string, clock: ManualClock, bytesMax?: number) =>
    new PartialBus({ serverId, clock, wake: () => {}, ...(bytesMax === undefined ? {} : { bytesMax }) });
  const carry = (from: PartialBus, to: PartialBus, lose = false) => {
    for (const { payload } of from.take()) if (!lose) to.receive(payload);
  };
  const textOf = (of: PartialBus) => of.of(turn.workspaceId, turn.accountId).map(({ words }) => words.from(0));
  const write = (to: PartialBus, offset: number, text: string) =>
    to.publish({ ...turn, epoch: 1, offset, text, stage: 'Thinking…', full: false });
  const rewrite = (to: PartialBus, text: string) => to.publish({ ...turn, epoch: 1, offset: 0, text, stage: 'Thinking…', full: true });

  it('gives a server that came late, or lost a word, the whole text within 5 s, and the stage at once', () => {
    const clock = new ManualClock();
    const [here, there] = [bus('a', clock), bus('b', clock)];
    write(here, 0, 'one ');
    carry(here, there, true);
    write(here, 4, 'two ');
    carry(here, there);
    expect(textOf(there)).to.deep.equal(['']);
    expect(there.stageOf(turn.turnId)).to.equal('Thinking…');
    clock.advance(5_000);
    carry(here, there);
    expect(textOf(there)).to.deep.equal(['one two ']);
  });

  it('gives a server whose connection was new the whole text at once, however long it is', () => {
    const clock = new ManualClock();
    const [here, there] = [bus('a', clock), bus('b', clock)];
    const long = 'words '.repeat(20_000);
    write(here, 0, long);
    carry(here, there, true);
    there.missed();
    carry(there, here);
    carry(here, there);
    expect(textOf(there)).to.deep.equal([long]);
    expect(there.take(), 'it asks once').to.deep.equal([]);
  });

  it('clears a turn everywhere, and forgets nothing of its size', () => {
    const clock = new ManualClock();
    const [here, there] = [bus('a', clock), bus('b', clock)];
    write(here, 0, 'one');
    carry(here, there);
    here.clear(turn.conversationId, turn.turnId, 1);
    carry(here, there);
    for (const one of [here, there]) expect([one.size, one.stageOf(turn.turnId)]).to.deep.equal([{ turns: 0, bytes: 0 }, null]);
    expect(clock.timers).to.equal(0);
  });

  it('tells a rewritten text as a new beginning', () => {
    const clock = new ManualClock();
    const [here, there] = [bus('a', clock), bus('b', clock)];
    write(here, 0, 'the failed call');
    carry(here, there);
    rewrite(here, 'another');
    carry(here, there);
    expect(textOf(there)).to.deep.equal(['another']);
  });

  it('takes over when the next report of the attempt comes to another server', () => {
    const clock = new ManualClock();
    const [here, there] = [bus('a', clock), bus('b', clock)];
    write(here, 0, 'one ');
    carry(here, there);
    expect(write(there, 4, 'two')).to.equal('ok');
    carry(there, here);
    expect(textOf(here)).to.deep.equal(['one two']);
  });

  it('says everything again after a batch was lost on the way', () => {
    const clock = new ManualClock();
    const [here, there] = [bus('a', clock), bus('b', clock)];
    write(here, 0, 'one ');
    here.take();
    here.unsent();
    write(here, 4, 'two');
    carry(here, there);
    expect(textOf(there)).to.deep.equal(['one two']);
  });

  it('takes no words of an attempt that is over, whichever server tells of them too late, and those of the next attempt', () => {
    const clock = new ManualClock();
    const [writer, ender, reader] = [bus('a', clock), bus('b', clock), bus('c', clock)];
    write(writer, 0, 'one ');
    for (const { payload } of writer.take()) for (const one of [ender, reader]) one.receive(payload);
    write(writer, 4, 'two');
    const late = writer.take();
    ender.clear(turn.conversationId, turn.turnId, 1);
    for (const { payload } of ender.take()) for (const one of [writer, reader]) one.receive(payload);
    for (const { payload } of late) reader.receive(payload);
    expect(write(writer, 7, ' three'), 'of a loop that does not know yet').to.equal('ok');
    carry(writer, reader);
    for (const one of [writer, ender, reader]) {
      expect([one.size, one.stageOf(turn.turnId)]).to.deep.equal([{ turns: 0, bytes: 0 }, null]);
    }
    const again = () => writer.publish({ ...turn, epoch: 2, offset: 0, text: 'again', stage: null, full: false });
    again();
    carry(writer, reader);
    expect(textOf(reader)).to.deep.equal(['again']);
  });

  it('keeps the words of the next attempt when the end of the one before it is told late, and takes none once the turn is over', () => {
    const clock = new ManualClock();
    const [ender, reader] = [bus('b', clock), bus('c', clock)];
    write(ender, 0, 'first');
    carry(ender, reader);
    ender.clear(turn.conversationId, turn.turnId, 1);
    const late = ender.take();
    reader.publish({ ...turn, epoch: 2, offset: 0, text: 'second', stage: null, full: false });
    for (const { payload } of late) reader.receive(payload);
    expect(textOf(reader)).to.deep.equal(['second']);
    reader.forget(turn.turnId);
    reader.publish({ ...turn, epoch: 2, offset: 6, text: ' and more', stage: null, full: false });
    expect(reader.size).to.deep.equal({ turns: 0, bytes: 0 });
  });

  it('belongs with its next attempt to the account that the conversation was given to', () => {
    const clock = new ManualClock();
    const [here, there] = [bus('a', clock), bus('b', clock)];
    write(here, 0, 'first');
    carry(here, there);
    const accountId = uuidv7();
    here.publish({ ...turn, accountId, epoch: 2, offset: 0, text: 'second', stage: null, full: false });
    carry(here, there);
    for (const one of [here, there]) {
      expect(textOf(one)).to.deep.equal([]);
      expect(one.of(turn.workspaceId, accountId).map(({ words }) => words.from(0))).to.deep.equal(['second']);
      expect(one.size).to.deep.equal({ turns: 1, bytes: 12 });
    }
  });

  it('asks for what it missed, and tells of an end, again after the batch that said so was lost on the way', () => {
    const clock = new ManualClock();
    const [here, there] = [bus('a', clock), bus('b', clock)];
    const long = 'words '.repeat(20_000);
    write(here, 0, long);
    here.take();
    there.missed();
    there.take();
    there.unsent();
    carry(there, here);
    carry(here, there);
    expect(textOf(there)).to.deep.equal([long]);
    here.clear(turn.conversationId, turn.turnId, 1);
    here.take();
    here.unsent();
    carry(here, there);
    expect(textOf(there)).to.deep.equal([]);
    expect([here.take(), there.take()], 'and says it once').to.deep.equal([[], []]);
  });

  it('remembers the ends of 1,000 turns, and keeps as many that could not be told yet', () => {
    const one = bus('a', new ManualClock());
    const late = () => {
      write(one, 0, 'late');
      return textOf(one).length;
    };
    one.forget(turn.turnId);
    for (let n = 1; n < 1_000; n++) one.forget(uuidv7());
    expect(late()).to.equal(0);
    one.forget(uuidv7());
    expect(late()).to.equal(1);
    for (let n = 0; n < 1_001; n++) one.clear(turn.conversationId, uuidv7<'turn'>(), null);
    one.take();
    one.unsent();
    expect(one.take().filter(({ payload }) => payload.includes('"e":null'))).to.have.length(1_000);
  });

  it('has everything for who joins a turn that said nothing for as long as a turn may last, also at a server that started later (G7)', () => {
    const clock = new ManualClock();
    const [here, there] = [bus('a', clock), bus('b', clock)];
    const long = 'words '.repeat(20_000);
    write(here, 0, long);
    carry(here, there);
    for (let minute = 0; minute < 15; minute++) {
      clock.advance(60_000);
      carry(here, there);
    }
    const late = bus('c', clock);
    late.missed();
    carry(late, here);
    for (const { payload } of here.take()) late.receive(payload);
    for (const one of [here, there, late]) expect(textOf(one)).to.deep.equal([long]);
  });

  it('drops the least recently changed turn when all together are too large, and one whose server died in time', () => {
    const clock = new ManualClock();
    const small = bus('a', clock, 10_000);
    const publish = (turnId: TurnId) =>
      small.publish({ ...turn, turnId, epoch: 1, offset: 0, text: 'x'.repeat(2_000), stage: null, full: true });
    const turns = [uuidv7<'turn'>(), uuidv7<'turn'>(), uuidv7<'turn'>()] as const;
    publish(turns[0]);
    publish(turns[1]);
    publish(turns[0]);
    publish(turns[2]);
    expect(small.of(turn.workspaceId, turn.accountId).map(({ turnId }) => turnId)).to.deep.equal([turns[0], turns[2]]);
    clock.advance(21 * 60_000);
    expect(small.size).to.deep.equal({ turns: 0, bytes: 0 });
  });

  it('never keeps a clear from the others because the turn was not known here', () => {
    const clock = new ManualClock();
    const [here, there] = [bus('a', clock), bus('b', clock)];
    write(there, 0, 'one');
    here.clear(turn.conversationId as ConversationId, turn.turnId, 1);
    carry(here, there);
    expect(textOf(there)).to.deep.equal([]);
  });

  it('is the same everywhere in the end, whoever writes, ends and begins anew, whatever comes late, in another order or not at all', () => {
    const server = fc.nat(2);
    const step = fc.oneof(
      { weight: 4, arbitrary: fc.record({ kind: fc.constant('write' as const), server, text: fc.string({ minLength: 1, maxLength: 5 }) }) },
      { weight: 4, arbitrary: fc.record({ kind: fc.constant('send' as const), server, lost: fc.boolean() }) },
      { weight: 6, arbitrary: fc.record({ kind: fc.constant('arrive' as const), server, from: server }) },
      { weight: 1, arbitrary: fc.record({ kind: fc.constant('rewrite' as const), server, text: fc.string({ maxLength: 5 }) }) },
      { weight: 1, arbitrary: fc.record({ kind: fc.constant('again' as const), server }) },
      { weight: 1, arbitrary: fc.record({ kind: fc.constant('over' as const), server }) },
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const clock = new ManualClock();
        const servers = ['a', 'b', 'c'].map((name) => bus(name, clock));
        /** From one server to another one, in order. */
        const wires = servers.map(() => servers.map((): string[] => []));
        const at = (n: number) => servers[n] as PartialBus;
        let [epoch, words, over] = [1, '', false];
        let nth = 0;
        const send = (n: number, lost: boolean) => {
          const letters = at(n).take();
          if (lost) at(n).unsent();
          else for (const [to, wire] of wires[n]?.entries() ?? []) if (to !== n) wire.push(...letters.map(({ payload }) => payload));
        };
        const arrive = (from: number, to: number) => {
          const letter = wires[from]?.[to]?.shift();
          if (letter !== undefined) at(to).receive(letter);
          return letter !== undefined;
        };
        const say = (n: number, report: { offset: number; text: string; full: boolean }) =>
          at(n).publish({ ...turn, epoch, nth: ++nth, stage: null, ...report });
        for (const one of steps) {
          if (one.kind === 'send') send(one.server, one.lost);
          if (one.kind === 'arrive') arrive(one.from, one.server);
          if (one.kind === 'write' && !over) {
            const answer = say(one.server, { offset: words.length, text: one.text, full: false });
            words += one.text;
            if (answer === 'resync') say(one.server, { offset: 0, text: words, full: true });
          }
          if (one.kind === 'rewrite' && !over) {
            words = `«${nth}»${one.text}`; // never how the words before began
            say(one.server, { offset: 0, text: words, full: true });
          }
          if (one.kind === 'again' && !over) {
            at(one.server).clear(turn.conversationId, turn.turnId, epoch);
            [epoch, words, nth] = [epoch + 1, '', 0];
          }
          if (one.kind === 'over') {
            at(one.server).clear(turn.conversationId, turn.turnId, null);
            over = true;
          }
        }
        for (let rounds = 0; rounds < 3; rounds++) {
          clock.advance(5_000);
          for (const n of [0, 1, 2]) send(n, false);
          for (const from of [0, 1, 2]) for (const to of [0, 1, 2]) while (arrive(from, to));
        }
        const shown = servers.map((one) => textOf(one).join(''));
        expect(shown).to.deep.equal(servers.map(() => (over ? '' : words)));
        for (const one of servers) if (over) expect(one.size).to.deep.equal({ turns: 0, bytes: 0 });
      }),
      { numRuns: 1_000 },
    );
  });
});
