/**
 * Owns: a frame of the stream -> an action of the store, parsed with the contract's schemas.
 */
import { STREAM_EVENTS, type StreamEventName } from '../../contract/events.ts';
import type { SseFrame } from '../net/sse-decoder.ts';
import type { ChatAction } from '../store/state.ts';

function isKnown(name: string): name is StreamEventName {
  return Object.hasOwn(STREAM_EVENTS, name);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** null for an event that this version does not know; `garbled` for one that it should know and cannot read. */
export function toAction({ event, data }: SseFrame): ChatAction | null | 'garbled' {
  if (!isKnown(event)) return null;
  const json = parseJson(data);
  switch (event) {
    case 'snapshot': {
      const { data: snapshot } = STREAM_EVENTS.snapshot.safeParse(json);
      return snapshot === undefined ? 'garbled' : { type: 'snapshot', snapshot };
    }
    case 'turn': {
      const { data: turn } = STREAM_EVENTS.turn.safeParse(json);
      return turn === undefined ? 'garbled' : { type: 'turn', turn };
    }
    case 'entry': {
      const { data: entry } = STREAM_EVENTS.entry.safeParse(json);
      return entry === undefined ? 'garbled' : { type: 'entry', entry };
    }
    case 'partial': {
      const { data: partial } = STREAM_EVENTS.partial.safeParse(json);
      return partial === undefined ? 'garbled' : { type: 'partial', partial };
    }
    case 'read': {
      const { data: read } = STREAM_EVENTS.read.safeParse(json);
      return read === undefined ? 'garbled' : { type: 'read', ...read };
    }
  }
}
