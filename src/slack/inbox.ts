/**
 * Owns: doing what was delivered: a message becomes a question, an edit and a deletion reach it, an uninstall ends the connection. An event is
 * done at least once, and doing it again changes nothing.
 */
import type { Runtime } from '../../actors/index.ts';
import type { Database } from '../../db/pool.ts';
import { findTeam } from '../../db/slack/connections.ts';
import {
  finishEvent,
  postponeEvent,
  pruneEvents,
  storeEvent,
  type TakenEvent,
  takeEvent,
  wasDeleted,
  wasDone,
} from '../../db/slack/inbox.ts';
import { enqueueNotice, findMessage, findSlackPerson } from '../../db/slack/people.ts';
import { LIMITS } from '../contract/limits.ts';
import type { Clock } from '../kernel/clock.ts';
import { RuntimeFault } from '../kernel/faults.ts';
import { uuidv7, type WorkspaceId } from '../kernel/ids.ts';
import type { Log } from '../kernel/log.ts';
import { codePoints, isBlank } from '../kernel/text.ts';
import { TRANSIENT } from '../kernel/transient.ts';
import type { Notice } from './compose.ts';
import { type Happening, happeningSchema, readDelivery } from './events.ts';

export interface InboxDeps {
  readonly db: Database;
  readonly clock: Pick<Clock, 'now'>;
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
    if (happening.type === 'opened') return this.#welcome(event, happening);
    const message = await findMessage(db, { teamId, channelId: happening.channel, messageTs: happening.ts });
    if (message === null) return happening.type === 'edited' ? this.#editUnknown(event, happening) : 'no_question';
    if (happening.type === 'deleted' || isBlank(happening.text)) {
      await runtime.eraseEntry(message.owner, message.entryId);
      return 'erased';
    }
    if (codePoints(happening.text) > LIMITS.questionMaxChars) {
      return this.#sayer(event, { ...happening, workspaceId: message.owner.workspaceId })('TOO_LONG');
    }
    return (await runtime.editEntry(message.owner, message.entryId, happening.text)).kind;
  }

  /**
   * An edit of a message that is no question: it was done and became none, or it is too old to come; or the edit has overtaken it, and asks in
   * its place. The message itself is the same question when it comes.
   */
  async #editUnknown(event: TakenEvent, { ts, threadTs = ts, ...edited }: Extract<Happening, { type: 'edited' }>): Promise<string> {
    const { db, clock } = this.#deps;
    const mayCome = Number(ts) * 1_000 > clock.now() - KEEP_MS;
    if (!mayCome || (await wasDone(db, { teamId: event.teamId, channelId: edited.channel, messageTs: ts }))) return 'no_question';
    return this.#ask(event, { ...edited, type: 'asked', ts, threadTs, files: false });
  }

  /** Enqueues fixed words to a user, once for the event (or for what `key` names instead). */
  #sayer({ teamId, eventId }: TakenEvent, to: { workspaceId: WorkspaceId; channel: string; user: string; threadTs?: string | undefined }) {
    return async (notice: Notice, key: string = eventId): Promise<string> => {
      const place = { workspaceId: to.workspaceId, teamId, channelId: to.channel, threadTs: to.threadTs ?? null };
      await enqueueNotice(this.#deps.db, { id: uuidv7<'action'>(), eventId: key, ...place, userId: to.user, notice });
      return `notice_${notice.toLowerCase()}`;
    };
  }

  /** Somebody who is not known is told once what the app is, and how to begin. */
  async #welcome(event: TakenEvent, opened: Extract<Happening, { type: 'opened' }>): Promise<string> {
    const team = await findTeam(this.#deps.db, event.teamId);
    if (!team) return 'not_connected';
    const { workspaceId } = team;
    const person = await findSlackPerson(this.#deps.db, { teamId: event.teamId, userId: opened.user, workspaceId });
    return person ? 'known' : this.#sayer(event, { ...opened, workspaceId })('WELCOME', `welcome:${opened.user}`);
  }

  /** Whoever may not ask gets no conversation. */
  async #ask(event: TakenEvent, asked: Asked): Promise<string> {
    const { db, runtime } = this.#deps;
    const { teamId } = event;
    const { channel: channelId, user: userId, ts: messageTs, threadTs, text, files } = asked;
    const team = await findTeam(db, teamId);
    if (!team) return 'not_connected';
    if (userId === team.botUserId || (isBlank(text) && !files)) return 'ignored';
    if (await wasDeleted(db, { teamId, channelId, messageTs })) return 'deleted';
    const { workspaceId } = team;
    const say = this.#sayer(event, { ...asked, workspaceId });
    const person = await findSlackPerson(db, { teamId, userId, workspaceId });
    if (!person) return say('LINK');
    if (!person.active) return say('NO_MEMBER');
    if (!person.aiAllowed) return say('AI_CHOICE');
    if (isBlank(text)) return say('FILE_ONLY');
    if (codePoints(text) > LIMITS.questionMaxChars) return say('TOO_LONG');
    const reply = await runtime.submitQuestion({
      ...{ workspaceId, accountId: person.accountId, conversationId: null, surface: 'slack', text, page: null },
      requestId: `slack:${teamId}:${channelId}:${messageTs}`,
      slack: { teamId, channelId, userId, messageTs, threadTs },
    });
    switch (reply.kind) {
      case 'accepted':
      case 'request-id-reused': // its words were edited before it came again
        if (files) await say('FILE_LEFT_OUT', `file:${channelId}:${messageTs}`);
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
