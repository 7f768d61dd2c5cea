/**
 * Owns: the few things that rendering must know of Pi's session entries. Everything else in them is passed on as it came.
 */
import type { PiEntry } from '../contract/agent.ts';

export interface Block {
  readonly type: string;
  readonly [key: string]: unknown;
}

export interface PiMessage {
  readonly role?: string;
  readonly content?: unknown;
  readonly stopReason?: string;
  readonly toolCallId?: string;
  readonly [key: string]: unknown;
}

/** The message of a `message` entry; null for other entries. */
export function messageOf(entry: PiEntry): PiMessage | null {
  return entry.type === 'message' ? ((entry['message'] as PiMessage | undefined) ?? null) : null;
}

export function blocksOf(message: PiMessage): readonly Block[] {
  if (typeof message.content === 'string') return [{ type: 'text', text: message.content }];
  return Array.isArray(message.content) ? (message.content as Block[]) : [];
}

export function textBlock(text: string): Block {
  return { type: 'text', text };
}

/** The id of a tool call; null for other blocks. */
export function callIdOf(block: Block): string | null {
  return block.type === 'toolCall' && typeof block['id'] === 'string' ? block['id'] : null;
}
