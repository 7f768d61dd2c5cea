/**
 * Owns: what the routes need from other capabilities, as interfaces. main.ts plugs the real ones in.
 */
import type { Readable } from 'node:stream';
import type { Attempt, Member, Refusal } from '../../actors/index.ts';
import type { LoadManifest, SearchRequest, SearchResponse } from '../contract/agent.ts';
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
/** What an attempt may read beyond its fixed documents; src/context implements it. `text` is for the model. */
export interface ContextItems {
  readDocument(
    attempt: Attempt,
    path: string,
  ): Promise<{ readonly kind: 'document'; readonly content: string } | { readonly kind: 'notFound' } | Refusal>;
  /** `client` aborts when nobody reads the answer any more. The body is read or destroyed. */
  load(
    attempt: Attempt,
    path: string,
    client: AbortSignal,
  ): Promise<
    | { readonly kind: 'load'; readonly manifest: LoadManifest; readonly body: Readable }
    | { readonly kind: 'notFound' | 'refused'; readonly text: string }
    | Refusal
  >;
}

/** What `GET /session` says about the installation. */
export interface SessionFacts {
  readonly assistantName: string;
  /** Warnings that a person must see. */
  warnings(): readonly string[];
  readonly maxFollowUps: number;
}
