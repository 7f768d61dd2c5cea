/**
 * Owns: who may still see what the streams send: members of their workspace, by a sign-in that has not ended.
 * rule: R16 (asked before each snapshot, event, partial and ping; one round trip for all of them)
 */
import { liveSessions } from '../../db/people/sessions.ts';
import type { Database } from '../../db/pool.ts';
import { activeMembers, type MemberKey } from '../../db/web/membership.ts';
import type { Clock } from '../kernel/clock.ts';
import { type Audience, keyOf } from './audience.ts';
import type { LiveStream } from './live-stream.ts';

/** Who looks now. Streams that open later are not judged by the answer. */
export interface GuardQuestion {
  readonly audiences: readonly Audience[];
  readonly streams: readonly LiveStream[];
  readonly members: readonly MemberKey[];
  readonly sessionIds: readonly string[];
}

export interface GuardAnswer {
  /** Those that are active and visible. */
  readonly members: readonly MemberKey[];
  /** Those that live. */
  readonly sessionIds: ReadonlySet<string>;
}

/** What the database is to be asked before anything is sent to these audiences. */
export function ask(audiences: readonly Audience[]): GuardQuestion {
  const streams = audiences.flatMap((audience) => [...audience.streams]);
  const sessionIds = new Set(streams.flatMap(({ proof }) => proof.sessionId ?? []));
  return { audiences, streams, members: audiences.map(({ member }) => member), sessionIds: [...sessionIds] };
}

export class Guard {
  readonly #db: Database;
  readonly #clock: Clock;

  constructor({ db, clock }: { readonly db: Database; readonly clock: Clock }) {
    this.#db = db;
    this.#clock = clock;
  }

  /**
   * Closes the streams whose sign-in has ended, and all of an account that is no member any more. The audiences that are left.
   * A stream that opens meanwhile has just been asked by its request. Rejects when the database does not say.
   */
  async admitted(audiences: readonly Audience[]): Promise<ReadonlySet<Audience>> {
    const question = ask(audiences);
    const [members, sessionIds] = await Promise.all([
      activeMembers(this.#db, question.members),
      liveSessions(this.#db, question.sessionIds),
    ]);
    return this.judge(question, { members, sessionIds });
  }

  /** The same with an answer that a read has brought along (db/live/read-changes.ts). */
  judge({ audiences, streams }: GuardQuestion, answer: GuardAnswer): ReadonlySet<Audience> {
    for (const stream of streams) if (this.#isOver(stream, answer.sessionIds)) stream.sink.destroy();
    const keys = new Set(answer.members.map(keyOf));
    const left = audiences.filter(({ key }) => keys.has(key));
    for (const audience of audiences) if (!keys.has(audience.key)) for (const { sink } of [...audience.streams]) sink.destroy();
    return new Set(left);
  }

  #isOver({ proof }: LiveStream, sessions: ReadonlySet<string>): boolean {
    if (proof.sessionId !== null && !sessions.has(proof.sessionId)) return true;
    return proof.untilMs !== null && this.#clock.now() >= proof.untilMs;
  }
}
