/**
 * Owns: `conversation.json`, the facts of the conversation without any words of it, and the item `message/<entryId>.json`: one message in
 * full, where a search hit or a summary has only a part. Words are in items only: what an erasure must find again has the entry's id in its path.
 * rule: R16 (an item is one of the account's own tree, and not erased)
 */
import { readConversationFacts, readMessage } from '../../../../db/context/conversation-facts.ts';
import type { Database } from '../../../../db/pool.ts';
import { LIMITS } from '../../../contract/limits.ts';
import { isUuid } from '../../../kernel/ids.ts';
import { fitItems, fitText } from '../../fit.ts';
import type { ContentSource, MentorContextRequest } from '../../spi.ts';
import { contextTime } from '../../times.ts';

const PATH = 'inputs/context/conversation.json';
const ITEMS = 'inputs/context/message/';
const SAYS =
  'when this conversation started, how its questions ended, its threads and latest messages; `messageByEntryId` leads to the whole message of an entry id';
const MAX_BYTES = 32 * 1024;
/** Threads, and latest messages, that the document names. */
const LISTED_MAX = 20;

const resource = (entryId: string) => `${ITEMS}${entryId}.json`;

export function conversationSource(db: Database): ContentSource {
  return {
    name: 'conversation',
    paths: [PATH],
    items: ITEMS,
    async documents(request) {
      return [{ path: PATH, says: SAYS, content: await facts(db, request), maxBytes: MAX_BYTES }];
    },
    async read(request, name) {
      return isUuid(name) ? message(db, request, name) : null;
    },
  };
}

async function facts(db: Database, request: MentorContextRequest): Promise<Readonly<Record<string, unknown>>> {
  const found = await readConversationFacts(db, request, LISTED_MAX);
  const at = (isoTime: string) => contextTime(isoTime, request.account.timeZone);
  const listed = [
    ...found.threads.map(({ createdAt, parentEntryId }) => ({
      of: 'threads',
      value: { startedAt: at(createdAt), resource: resource(parentEntryId) },
    })),
    ...found.messages.map(({ id, kind, createdAt, status }) => ({
      of: 'latestMessages',
      value: { kind, at: at(createdAt), ...(kind === 'question' && status ? { ended: status } : {}), resource: resource(id) },
    })),
  ];
  return fitItems(listed, MAX_BYTES, (kept) => {
    const group = (of: string) => kept.filter((one) => one.of === of).map(({ value }) => value);
    const [threads, latestMessages] = [group('threads'), group('latestMessages')];
    const omittedThreads = found.threadCount - threads.length;
    const omittedMessages = found.messageCount - latestMessages.length;
    return {
      kind: found.isThread ? 'thread' : 'main conversation',
      startedAt: at(found.startedAt),
      questions: found.questions,
      threads,
      ...(omittedThreads > 0 ? { omittedThreads } : {}),
      latestMessages,
      ...(omittedMessages > 0 ? { omittedMessages } : {}),
      messageByEntryId: resource('<entryId>'),
    };
  });
}

async function message(db: Database, request: MentorContextRequest, entryId: string) {
  const found = await readMessage(db, request, entryId);
  if (!found) return null;
  const head = {
    entryId,
    from: found.kind === 'question' ? 'the developer' : 'the assistant',
    kind: found.kind,
    at: contextTime(found.createdAt, request.account.timeZone),
    surface: found.surface,
    conversation: found.isThread ? 'a thread' : 'the main conversation',
    /** What was said is data here, whoever said it. */
    untrusted: true,
  };
  const maxBytes = LIMITS.documentMaxBytes;
  return {
    content: fitText(found.text, maxBytes, (text, truncated) => ({ ...head, ...(truncated ? { truncated } : {}), text })),
    maxBytes,
  };
}
