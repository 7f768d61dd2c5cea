/**
 * Owns: doing what was delivered: a message becomes a question, an edit and a deletion reach it, an uninstall ends the connection. An event is
 * done at least once, and doing it again changes nothing.
 */
import type { Runtime } from '../../actors/index.ts';
import type { Database } from '../../db/pool.ts';
import { findTeam } from '../../db/slack/connections.ts';
import { finishEvent, postponeEvent, pruneEvents, storeEvent, type TakenEvent, takeEvent, wasDeleted } from '../../db/slack/inbox.ts';
import { enqueueNotice, findMessage, findSlackPerson } from '../../db/slack/people.ts';
import { LIMITS } from '../contract/limits.ts';
import { RuntimeFault } from '../kernel/faults.ts';
import { uuidv7 } from '../kernel/ids.ts';
import type { Log } from '../kernel/log.ts';
import { codePoints, isBlank } from '../kernel/text.ts';
import { TRANSIENT } from '../kernel/transient.ts';
import type { Notice } from './compose.ts';
import { type Happening, happeningSchema, readDelivery } from './events.ts';

export interface InboxDeps {
  readonly db: Database;
  readonly log: Log;
  readonly runtime: Pick<Runtime, 'submitQuestion' | 'editEntry' | 'eraseEntry'>;
  /** Ends the connection of a team and erases what was written through it. Repeats change nothing. */
  readonly disconnect: (teamId: string, why: string) => Promise<void>;
}

const LEASE_MS = 30_000;
const [POSTPONE_MIN_MS, POSTPONE_MAX_MS] = TRANSIENT.slackEvent.growsMs;
/** About ten minutes of a database or a server that is busy. */
const TRIES_MAX = 25;
/** Slack delivers an event again for about an hour. */
const KEEP_MS = 86_400_000;

type Asked = Extract<Happening, { type: 'asked' }>;

export class Inbox {
  readonly #deps: InboxDeps;
  #working: Promise<void> | null = null;
  #again = false;
  #stopped = false;

  constructor(deps: InboxDeps) {
    this.#deps = deps;
  }

  /** Stores a verified delivery. What it asks for is done afterwards. Answers the challenge of a new address. */
  async receive(body: Buffer): Promise<{ readonly challenge: string | null }> {
    const delivery = readDelivery(body);
    if (delivery.kind === 'challenge') return { challenge: delivery.challenge };
    if (delivery.kind === 'event' && (await storeEvent(this.#deps.db, delivery.event))) this.wake();
    return { challenge: null };
  }

  /** There may be something to do. */
  wake(): void {
    if (this.#stopped) return;
    this.#again = true;
    this.#working ??= this.#work().finally(() => {
      this.#working = null;
      if (this.#again) this.wake(); // what came between the last look and this moment
    });
  }

  prune(): Promise<void> {
    return pruneEvents(this.#deps.db, KEEP_MS);
  }

  /** Resolves when nothing is being done any more. */
  async idle(): Promise<void> {
    while (this.#working !== null) await this.#working;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.idle();
  }

  async #work(): Promise<void> {
    try {
      while (this.#again && !this.#stopped) {
        this.#again = false;
        for (let event = await this.#take(); event; event = await this.#take()) await this.#do(event);
      }
    } catch (error) {
      this.#deps.log.error('slack inbox failed', {}, error); // the next sweep goes on
    }
  }

  async #take(): Promise<TakenEvent | null> {
    return this.#stopped ? null : takeEvent(this.#deps.db, LEASE_MS);
  }

  async #do(event: TakenEvent): Promise<void> {
    const { db, log } = this.#deps;
    const { teamId, eventId, tries } = event;
    try {
      const outcome = await this.#happen(event, happeningSchema.parse(JSON.parse(event.payload)));
      await finishEvent(db, event, outcome);
      log.info('slack event done', { teamId, eventId, outcome });
    } catch (error) {
      const fault = error instanceof RuntimeFault ? error : null;
      if (fault?.retry === 'later' && tries < TRIES_MAX) {
        log.warn('slack event postponed', { teamId, eventId, code: fault.code, tries });
        await postponeEvent(db, event, Math.min(POSTPONE_MIN_MS * 2 ** (tries - 1), POSTPONE_MAX_MS));
        return;
      }
      log.error('slack event failed', { teamId, eventId, tries }, error);
      await finishEvent(db, event, 'failed');
    }
  }

  async #happen(event: TakenEvent, happening: Happening): Promise<string> {
    const { db, runtime, disconnect } = this.#deps;
    const { teamId } = event;
    if (happening.type === 'ended') {
      await disconnect(teamId, happening.why);
      return 'disconnected';
    }
    if (happening.type === 'asked') return this.#ask(event, happening);
    const message = await findMessage(db, { teamId, channelId: happening.channel, messageTs: happening.ts });
    if (message === null) return 'no_question';
    if (happening.type === 'deleted') {
      await runtime.eraseEntry(message.owner, message.entryId);
      return 'erased';
    }
    if (isBlank(happening.text) || codePoints(happening.text) > LIMITS.questionMaxChars) return 'not_a_question';
    return (await runtime.editEntry(message.owner, message.entryId, happening.text)).kind;
  }

  /** Whoever may not ask gets no conversation. */
  async #ask(event: TakenEvent, asked: Asked): Promise<string> {
    const { db, runtime } = this.#deps;
    const { teamId } = event;
    const { channel: channelId, user: userId, ts: messageTs, threadTs, text } = asked;
    const team = await findTeam(db, teamId);
    if (!team) return 'not_connected';
    if (userId === team.botUserId || isBlank(text)) return 'ignored';
    if (await wasDeleted(db, { teamId, channelId, messageTs })) return 'deleted';
    const { workspaceId } = team;
    const say = async (notice: Notice) => {
      await enqueueNotice(db, { id: uuidv7<'action'>(), eventId: event.eventId, workspaceId, teamId, channelId, threadTs, userId, notice });
      return `notice_${notice.toLowerCase()}`;
    };
    const person = await findSlackPerson(db, { teamId, userId, workspaceId });
    if (!person) return say('LINK');
    if (!person.active) return say('NO_MEMBER');
    if (!person.aiAllowed) return say('AI_CHOICE');
    if (codePoints(text) > LIMITS.questionMaxChars) return say('TOO_LONG');
    const reply = await runtime.submitQuestion({
      ...{ workspaceId, accountId: person.accountId, conversationId: null, surface: 'slack', text, page: null },
      requestId: `slack:${teamId}:${channelId}:${messageTs}`,
      slack: { teamId, channelId, userId, messageTs, threadTs },
    });
    switch (reply.kind) {
      case 'accepted':
      case 'request-id-reused': // its words were edited before it came again
        return 'asked';
      case 'full':
        return say('FULL');
      case 'person-erased':
        return say('PERSON_ERASED');
      case 'disconnected':
        return 'not_connected';
      case 'no-conversation':
        throw new RuntimeFault('BUSY', 'The conversation has just gone. Try again.', { retry: 'later' });
    }
  }
}
