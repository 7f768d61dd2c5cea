/**
 * Owns: what the routes need from other capabilities, as interfaces. main.ts plugs the real ones in.
 */
import type { Member } from '../../actors/index.ts';
import type { SearchRequest, SearchResponse } from '../contract/agent.ts';
import type { StreamEventName } from '../contract/events.ts';
import type { RunId } from '../kernel/ids.ts';

/** One open connection to a reader, as src/live writes to it. `sse.ts` is the only one here. */
export interface EventSink {
  send(event: StreamEventName, json: string): boolean;
  readonly idle: boolean;
  readonly stalledMs: number;
  ping(): void;
  end(retryMs?: number): void;
  destroy(): void;
  onDrain(listener: () => void): void;
  onClose(listener: () => void): void;
}

/** Event streams of members. */
export interface LiveStreams {
  /** Throws TOO_MANY_STREAMS or DRAINING before it calls `connect`. */
  open(member: Member, connect: () => EventSink): void;
}

/** What a running turn does right now. */
export interface Stages {
  stageOf(turnId: string): string | null;
}

/** What a run's search finds; null: there is no such run. */
export type TurnSearch = (runId: RunId, request: SearchRequest) => Promise<SearchResponse | null>;

/** What `GET /session` says about the installation. */
export interface SessionFacts {
  readonly assistantName: string;
  /** Warnings that a person must see. */
  warnings(): readonly string[];
  readonly maxFollowUps: number;
}
