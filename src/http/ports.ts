/**
 * Owns: what the routes need from other capabilities, as interfaces. main.ts plugs the real ones in.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import type { Attempt, Member, Refusal } from '../../actors/index.ts';
import type { SignInProof } from '../../db/people/sessions.ts';
import type { LoadManifest, SearchRequest, SearchResponse } from '../contract/agent.ts';
import type { StreamEventName } from '../contract/events.ts';
import type { SignInRefusal } from '../contract/people.ts';
import type { AccountId, RunId } from '../kernel/ids.ts';

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
  /** Throws TOO_MANY_STREAMS or DRAINING before it calls `connect`. `proof`: the stream ends with it. */
  open(member: Member, connect: () => EventSink, proof: SignInProof): void;
}

/** Tokens of native clients. */
export interface BearerDoor {
  /** Whose it is, and when it ends (milliseconds since the epoch). Throws UNAUTHENTICATED, FORBIDDEN or SIGN_IN_UNAVAILABLE. */
  verify(token: string): Promise<{ readonly accountId: AccountId; readonly untilMs: number }>;
}

/** Signing in at an issuer. A session and a browser are known by secrets; sessions are named by the hash of theirs. */
export interface SignInDoor {
  /** Where to send the browser. Throws SIGN_IN_UNAVAILABLE. */
  begin(input: { readonly browser: string; readonly returnPath: string }): Promise<URL>;
  finish(input: {
    readonly browser: string | null;
    readonly query: string;
    readonly replaces: string | null;
  }): Promise<
    | { readonly kind: 'signed-in'; readonly secret: string; readonly returnPath: string; readonly hasWorkspace: boolean }
    | { readonly kind: 'refused'; readonly reason: SignInRefusal }
  >;
  /** The URL to sign out at the issuer, or null. */
  signOut(sessionId: string | null): Promise<string | null>;
}

/** Connecting a Slack team by Slack's consent page. */
export interface SlackInstallDoor {
  mayInstall(accountId: AccountId, workspace: string): Promise<boolean>;
  /** Answers the request itself. */
  begin(
    request: IncomingMessage,
    response: ServerResponse,
    purpose: { readonly workspace: string; readonly accountId: AccountId },
  ): Promise<void>;
  /** Leaves the answer to the caller. */
  finish(
    request: IncomingMessage,
    response: ServerResponse,
    accountId: AccountId,
  ): Promise<{ readonly kind: 'connected'; readonly team: string } | { readonly kind: 'refused'; readonly why: string }>;
}

/** What Slack and its users send to the web listener; src/slack implements it. */
export interface SlackDoor {
  /** Resolves when the delivery is stored. null: it is not signed by Slack. */
  receive(delivery: {
    readonly body: Buffer;
    readonly timestamp: string;
    readonly signature: string;
  }): Promise<{ readonly challenge: string | null } | null>;
  /** Whom a link is for; null: it is over. */
  lookAtLink(token: string): Promise<{ readonly teamId: string; readonly userId: string } | null>;
  /** False: it is over. */
  redeemLink(token: string, accountId: AccountId): Promise<boolean>;
  /** null: the app's client id and secret are not set. */
  readonly install: SlackInstallDoor | null;
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
