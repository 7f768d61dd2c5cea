/**
 * Owns: where the prompt cache breakpoint of a model request stands. Pi puts it on the last message; ours is the situation, which is
 * new each time, so that the conversation would be written to the cache again and again and never read. Pure.
 */

type Block = { type: string; text?: string; cache_control?: unknown };
type Message = { role: string; content: string | Block[] };

/** Moves `cache_control` from the last message to the nearest message before it that can carry one. Other payloads stay as they are. */
export function moveBreakpoint(payload: unknown): unknown {
  const messages = messagesOf(payload);
  const last = blocksOf(messages.at(-1));
  const breakpoint = last.find((block) => block.cache_control !== undefined)?.cache_control;
  if (messages.length < 2 || breakpoint === undefined) return payload;
  for (const block of last) delete block.cache_control;
  for (const message of messages.slice(0, -1).reverse()) {
    if (message.role === 'system' || message.role === 'developer') break;
    if (typeof message.content === 'string' && message.content !== '') message.content = [{ type: 'text', text: message.content }];
    const carrier = blocksOf(message).findLast(canCarry);
    if (carrier === undefined) continue;
    carrier.cache_control = breakpoint;
    break;
  }
  return payload;
}

function messagesOf(payload: unknown): Message[] {
  const messages = typeof payload === 'object' && payload !== null && 'messages' in payload ? payload.messages : undefined;
  return Array.isArray(messages) ? (messages as Message[]) : [];
}

function blocksOf(message: Message | undefined): Block[] {
  return Array.isArray(message?.content) ? message.content : [];
}

/** The API refuses a breakpoint on thinking and on an empty text. */
function canCarry(block: Block): boolean {
  if (block.type === 'thinking' || block.type === 'redacted_thinking') return false;
  return block.type !== 'text' || (block.text ?? '') !== '';
}
