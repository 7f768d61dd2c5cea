/**
 * The pump that reads what changed and sends it: nobody who is woken is forgotten, at whatever moment that happens.
 */
import { expect } from 'chai';
import type { Database, Executor } from '../../db/pool.ts';
import type { MemberKey } from '../../db/web/membership.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import { silentLog } from '../../src/kernel/log.ts';
import { Audience } from '../../src/live/audience.ts';
import type { Guard } from '../../src/live/guard.ts';
import { LiveStream } from '../../src/live/live-stream.ts';
import { PartialBus } from '../../src/live/partial-bus.ts';
import type { StreamSink } from '../../src/live/ports.ts';
import { Pump } from '../../src/live/pump.ts';
import { VersionBook } from '../../src/live/version-book.ts';

/** More microtasks than the pump needs from its waking to its rest. */
const MOMENTS = 80;

/** A database without a row, which answers at once: only the order of what happens is looked at. */
const emptyDatabase = { any: async () => [] } as Pick<Executor, 'any'> as Database;
const everybody = { judge: ({ audiences }) => new Set(audiences) } as Pick<Guard, 'judge'> as Guard;

/** An account with one stream, and how many snapshots that has got. */
function reader() {
  const member: MemberKey = { workspaceId: uuidv7<'workspace'>(), accountId: uuidv7<'account'>() };
  const audience = new Audience(member);
  const got: string[] = [];
  const nothing = () => undefined;
  const sink: StreamSink = {
    ...{ idle: true, stalledMs: 0, ping: nothing, end: nothing, destroy: nothing, onDrain: nothing, onClose: nothing },
    send: (event) => {
      got.push(event);
      return true;
    },
  };
  audience.streams.add(new LiveStream({ sink, proof: { sessionId: null, untilMs: null } }, nothing));
  return { audience, got };
}

describe('the pump', () => {
  it('serves an account that is woken at any moment of its work for another one, also in the moment in which it comes to rest', async () => {
    const common = { db: emptyDatabase, clock: systemClock, log: silentLog, guard: everybody, dismiss: () => undefined };
    const forgotten: number[] = [];
    for (let moment = 0; moment < MOMENTS; moment++) {
      const partials = new PartialBus({ serverId: 'a', clock: systemClock, wake: () => undefined });
      const pump = new Pump({ ...common, partials, book: new VersionBook() });
      const [first, second] = [reader(), reader()];
      pump.wake(first.audience);
      for (let n = 0; n < moment; n++) await Promise.resolve();
      pump.wake(second.audience);
      await new Promise((resolve) => setImmediate(resolve));
      expect(first.got).to.deep.equal(['snapshot']);
      if (second.got.length !== 1) forgotten.push(moment);
      await pump.stop();
    }
    expect(forgotten).to.deep.equal([]);
  });
});
