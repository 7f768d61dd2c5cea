/**
 * Owns: one attempt to post, and reading back whether it is there. The outbox decides when; this decides what an answer means. rule: R14
 */
import type { WebClient } from '@slack/web-api';
import type { SlackSender, Verdict } from '../../actors/index.ts';
import type { LeasedAction } from '../../db/slack/outbox.ts';
import { type SecretBox, SecretError } from '../kernel/secret-box.ts';
import { TRANSIENT } from '../kernel/transient.ts';
import { type ClientOptions, slackClient } from './client.ts';
import { compose, type Voice } from './compose.ts';
import { knownOf } from './outcome.ts';

/** Names an action in the metadata of its message. Every member of a Slack team can read it, so it holds an opaque id and nothing else. */
export const METADATA_TYPE = 'heph_outbox';

export interface SenderDeps {
  readonly client: ClientOptions;
  readonly secrets: SecretBox;
  readonly voice: Voice;
}

const [BACKOFF_MIN_MS, BACKOFF_MAX_MS] = TRANSIENT.slackPost.growsMs;
const ATTEMPTS_MAX = 20;
/** The history is read from a little before the attempt: clocks of Slack and of the database differ. */
const HISTORY_EARLIER_S = 300;
const HISTORY_PAGES_MAX = 5;
const HISTORY_PAGE_MESSAGES = 100;

export function createSender(deps: SenderDeps): SlackSender {
  return {
    post: (action) => withToken(deps, action, (token) => post(deps, action, token)).then((verdict) => verdict ?? parked()),
    find: (action) =>
      withToken(deps, action, (token) => find(deps, action, token)).then((verdict) => verdict ?? undecided(UNREADABLE, false)),
  };
}

const UNREADABLE = 'token_unreadable';
const parked = (): Verdict => ({ to: { state: 'PARKED', reason: UNREADABLE } });

/** null: the token cannot be opened with the keys of this server. */
async function withToken(
  { secrets }: SenderDeps,
  action: LeasedAction,
  work: (token: string) => Promise<Verdict>,
): Promise<Verdict | null> {
  let token: string;
  try {
    token = secrets.open(action.tokenSealed, action.connectionId);
  } catch (error) {
    if (error instanceof SecretError) return null;
    throw error;
  }
  return work(token);
}

async function post({ client, voice }: SenderDeps, action: LeasedAction, token: string): Promise<Verdict> {
  const text = compose(action, voice);
  if (text === null) return { to: { state: 'DEAD', reason: action.saying.kind === 'nothing' ? action.saying.why : 'nothing' } };
  try {
    const { ts } = await slackClient(token, client).chat.postMessage({
      ...{ channel: action.channelId, text, mrkdwn: true, parse: 'none', link_names: false },
      ...(action.threadTs === null ? {} : { thread_ts: action.threadTs }),
      ...{ unfurl_links: false, unfurl_media: false },
      metadata: { event_type: METADATA_TYPE, event_payload: { action: action.id } },
    });
    return ts ? { to: { state: 'SENT', messageTs: ts } } : { to: { state: 'UNCERTAIN', reason: 'no_ts', readAgain: true } };
  } catch (error) {
    return failed(action, error);
  }
}

function failed({ attempts }: LeasedAction, error: unknown): Verdict {
  const known = knownOf(error);
  switch (known.kind) {
    case 'limited':
      return { to: { state: 'RETRY', afterMs: known.afterMs, reason: 'rate_limited' }, pauseMs: known.afterMs };
    case 'again': {
      if (attempts >= ATTEMPTS_MAX) return { to: { state: 'PARKED', reason: `gave_up_${known.reason}` } };
      return { to: { state: 'RETRY', afterMs: Math.min(BACKOFF_MIN_MS * 2 ** (attempts - 1), BACKOFF_MAX_MS), reason: known.reason } };
    }
    case 'revoked':
      return { to: { state: 'PARKED', reason: known.reason } };
    case 'permanent':
      return { to: { state: 'DEAD', reason: known.reason } };
    case 'unknown':
      return { to: { state: 'UNCERTAIN', reason: known.reason, readAgain: true } };
  }
}

/** Found: SENT. All of the thread (of the channel, for a message without a thread) was read and it is not there: RETRY. Anything else says nothing. */
async function find({ client }: SenderDeps, action: LeasedAction, token: string): Promise<Verdict> {
  const api = slackClient(token, client);
  try {
    let cursor: string | undefined;
    for (let page = 0; page < HISTORY_PAGES_MAX; page++) {
      const { messages, has_more, response_metadata } = await readPage(api, action, cursor);
      if (!Array.isArray(messages)) return undecided('unreadable_history');
      const found = messages.find(({ metadata }) => metadata?.event_type === METADATA_TYPE && isAction(metadata.event_payload, action.id));
      if (found?.ts) return { to: { state: 'SENT', messageTs: found.ts } };
      if (!has_more) return { to: { state: 'RETRY', afterMs: 0, reason: 'not_in_history' } };
      cursor = response_metadata?.next_cursor;
      if (!cursor) return undecided('unreadable_history');
    }
    return undecided('history_too_long');
  } catch (error) {
    return unread(error);
  }
}

function readPage({ conversations }: WebClient, { channelId, threadTs, startedAtS }: LeasedAction, cursor: string | undefined) {
  const page = {
    ...{ channel: channelId, include_all_metadata: true, limit: HISTORY_PAGE_MESSAGES },
    ...{ oldest: String(startedAtS - HISTORY_EARLIER_S), ...(cursor ? { cursor } : {}) },
  };
  return threadTs === null ? conversations.history(page) : conversations.replies({ ...page, ts: threadTs });
}

function isAction(payload: unknown, id: string): boolean {
  return typeof payload === 'object' && payload !== null && (payload as { action?: unknown }).action === id;
}

const undecided = (reason: string, readAgain = true): Verdict => ({ to: { state: 'UNCERTAIN', reason, readAgain } });

function unread(error: unknown): Verdict {
  const known = knownOf(error);
  if (known.kind === 'limited') return { ...undecided('history_limited'), pauseMs: known.afterMs };
  return undecided(`history_${known.reason}`, known.kind === 'again' || known.kind === 'unknown');
}
