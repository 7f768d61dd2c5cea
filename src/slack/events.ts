/**
 * Owns: what a delivery of Slack's Events API means to Heph. Everything else (other channels, bots, our own messages, other subtypes, events that
 * nothing is done about) is ignored here, before it is stored.
 */
import { z } from 'zod';
import type { DeliveredEvent } from '../../db/slack/inbox.ts';
import { wellFormed } from '../kernel/text.ts';
import { plainText } from './plain.ts';

const id = z.string().regex(/^[A-Z0-9]{1,30}$/);
const ts = z.string().regex(/^\d{1,12}\.\d{1,12}$/);

/** What is stored, until it is done. */
export const happeningSchema = z.discriminatedUnion('type', [
  /** `files`: there were some beside the words. Nothing of them is kept. */
  z.object({ type: z.literal('asked'), channel: id, user: id, ts, threadTs: ts, text: z.string(), files: z.boolean().default(false) }),
  z.object({ type: z.literal('edited'), channel: id, user: id, ts, threadTs: ts.optional(), text: z.string() }),
  z.object({ type: z.literal('deleted'), channel: id, ts }),
  /** A person looks at the app's messages. */
  z.object({ type: z.literal('opened'), channel: id, user: id }),
  z.object({ type: z.literal('ended'), why: z.enum(['app_uninstalled', 'tokens_revoked']) }),
]);
export type Happening = z.infer<typeof happeningSchema>;

const words = z.object({
  ts,
  user: id.optional(),
  thread_ts: ts.optional(),
  text: z.string().default(''),
  files: z.array(z.unknown()).default([]),
  bot_id: z.string().optional(),
  subtype: z.string().optional(),
});
const messageSchema = words.extend({
  type: z.literal('message'),
  channel: id,
  channel_type: z.string().optional(),
  ts: ts.optional(),
  message: words.optional(),
  deleted_ts: ts.optional(),
});
/** A message with files; each other subtype is something that happened, not somebody's words. */
const FILE_SHARE = 'file_share';
const openedSchema = z.object({ type: z.literal('app_home_opened'), user: id, channel: id.regex(/^D/), tab: z.literal('messages') });
const revokedSchema = z.object({ type: z.literal('tokens_revoked'), tokens: z.object({ bot: z.array(z.string()).default([]) }) });
const bodySchema = z.object({
  type: z.string(),
  challenge: z.string().max(1_000).optional(),
  team_id: id.optional(),
  event_id: z.string().min(1).max(60).optional(),
  event: z.looseObject({ type: z.string() }).optional(),
});

export type Delivery =
  | { readonly kind: 'challenge'; readonly challenge: string }
  | { readonly kind: 'event'; readonly event: DeliveredEvent }
  | { readonly kind: 'ignored' };

const IGNORED = { kind: 'ignored' } as const;

/** Never throws: what cannot be read is ignored, since Slack would only send it again. */
export function readDelivery(body: Buffer): Delivery {
  let json: unknown;
  try {
    json = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    return IGNORED;
  }
  const parsed = bodySchema.safeParse(json);
  if (!parsed.success) return IGNORED;
  const { type, challenge, team_id: teamId, event_id: eventId, event } = parsed.data;
  if (type === 'url_verification' && challenge !== undefined) return { kind: 'challenge', challenge };
  if (type !== 'event_callback' || teamId === undefined || eventId === undefined || event === undefined) return IGNORED;
  const happening = happeningOf(event);
  if (happening === null) return IGNORED;
  return {
    kind: 'event',
    event: {
      ...{ teamId, eventId, channelId: 'channel' in happening ? happening.channel : '' },
      ...{ deletedTs: happening.type === 'deleted' ? happening.ts : null, messageTs: happening.type === 'asked' ? happening.ts : null },
      payload: JSON.stringify(happening),
    },
  };
}

function happeningOf(event: { readonly type: string }): Happening | null {
  if (event.type === 'app_uninstalled') return { type: 'ended', why: 'app_uninstalled' };
  if (event.type === 'tokens_revoked') {
    const revoked = revokedSchema.safeParse(event);
    return revoked.success && revoked.data.tokens.bot.length > 0 ? { type: 'ended', why: 'tokens_revoked' } : null;
  }
  if (event.type === 'app_home_opened') {
    const opened = openedSchema.safeParse(event);
    return opened.success ? { type: 'opened', channel: opened.data.channel, user: opened.data.user } : null;
  }
  const parsed = event.type === 'message' ? messageSchema.safeParse(event) : null;
  if (!parsed?.success || (parsed.data.channel_type !== undefined && parsed.data.channel_type !== 'im')) return null;
  return ofMessage(parsed.data);
}

function ofMessage(event: z.infer<typeof messageSchema>): Happening | null {
  const { channel, subtype, message, deleted_ts: deletedTs } = event;
  if (!channel.startsWith('D')) return null;
  if (subtype === 'message_deleted') return deletedTs === undefined ? null : { type: 'deleted', channel, ts: deletedTs };
  if (subtype === 'message_changed') return message === undefined ? null : ofChange(channel, message);
  if (!isOfPerson(event) || event.user === undefined || event.ts === undefined) return null;
  return {
    ...{ type: 'asked', channel, user: event.user, ts: event.ts, threadTs: event.thread_ts ?? event.ts },
    ...{ text: textOf(event.text), files: event.files.length > 0 || subtype === FILE_SHARE },
  };
}

/** A message with answers in its thread is not deleted but becomes a tombstone. */
function ofChange(channel: string, message: z.infer<typeof words>): Happening | null {
  if (message.subtype === 'tombstone') return { type: 'deleted', channel, ts: message.ts };
  if (!isOfPerson(message) || message.user === undefined) return null;
  return {
    ...{ type: 'edited', channel, user: message.user, ts: message.ts, threadTs: message.thread_ts ?? message.ts },
    text: textOf(message.text),
  };
}

function isOfPerson({ subtype, bot_id: botId }: { readonly subtype?: string | undefined; readonly bot_id?: string | undefined }): boolean {
  return (subtype === undefined || subtype === FILE_SHARE) && botId === undefined;
}

/** As the ledger stores it. Reading a JSON column would refuse what this replaces. */
function textOf(text: string): string {
  return wellFormed(plainText(text));
}
