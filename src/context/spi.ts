/**
 * Owns: the two plugs of the context folder (seed, "Context documents" and "Context loaders"): a ContentSource gives small documents, a
 * ContextLoader prepares one heavy item on request. A capability brings its own; server.ts puts them together.
 * Rules for both: they show only what the account may see; words of other people are marked `untrusted`; times are written by
 * `contextTime`; a link is copied, never built; what is left out is said.
 */
import type { Readable } from 'node:stream';
import type { MentorContextRequest } from '../../db/context/read-request.ts';
import type { LoadManifest } from '../contract/agent.ts';

export type { MentorContextRequest };

/** A file of the context folder that is there before the turn begins. */
export interface ContextDocument {
  /** One of the source's `paths`. */
  readonly path: string;
  /** The one line that INDEX.md says about it: the only description that the model gets. */
  readonly says: string;
  readonly content: Readonly<Record<string, unknown>>;
  /** Of the document as JSON, UTF-8. The source cuts what it shows to fit (fit.ts) and says what it left out. */
  readonly maxBytes: number;
}

export interface ContentSource {
  /** For logs. */
  readonly name: string;
  /** Every path that `documents` may use. No two sources share one. */
  readonly paths: readonly string[];
  /** The folder of its item documents, with a slash at its end. No folder lies in another one. */
  readonly items?: string;
  /** Its fixed documents. Rejects only when it cannot read: then the turn cannot be prepared. */
  documents(request: MentorContextRequest): Promise<readonly ContextDocument[]>;
  /**
   * The item `<items><name>.json`; null when there is none that this account may see: absent and forbidden look the same. Item paths stand
   * in a `resource` member of a document and nowhere else.
   */
  read?(request: MentorContextRequest, name: string): Promise<Omit<ContextDocument, 'path' | 'says'> | null>;
}

/** An item that is ready to be sent. */
export interface PreparedLoad {
  readonly kind: 'prepared';
  readonly manifest: LoadManifest;
  /** The archive, `manifest.bytes` long. It is read or destroyed exactly once; what it needs stays until then. */
  readonly body: Readable;
}

/** `notFound`: no such item for this account. `refused`: it is there and cannot be loaded. `text` is for the model. */
export type LoadResult = PreparedLoad | { readonly kind: 'notFound' | 'refused'; readonly text: string };

export interface ContextLoader {
  /** The folder that it owns, with a slash at its end, for example `repos/`. A path is routed by it alone. */
  readonly prefix: string;
  /** Its section of INDEX.md in Markdown, or null when there is nothing to load. */
  index(request: MentorContextRequest): Promise<string | null>;
  /** Prepares an item. Rejects with the reason of `signal` once that aborts, and leaves nothing running. */
  load(request: MentorContextRequest, path: string, signal: AbortSignal): Promise<LoadResult>;
}
