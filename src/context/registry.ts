/**
 * Owns: the sources and loaders of one server: who owns which path, the files of a turn, one item document.
 * Rules: two owners of one path are refused when the server starts; a document over its limit never leaves (its source is at fault).
 * Does not own: who may ask (desk.ts), what a document says (sources/), preparing a heavy item (loaders/).
 */
import type { Log } from '../kernel/log.ts';
import { documentBytes, documentText } from './fit.ts';
import { isFolderPath } from './folder-path.ts';
import { INDEX_PATH, indexPage } from './index-page.ts';
import type { ContentSource, ContextDocument, ContextLoader, MentorContextRequest } from './spi.ts';
import type { TarFile } from './tar.ts';

/** Where documents are; loaders own other folders. */
export const DOCUMENTS_FOLDER = 'inputs/context/';
const ITEM_SUFFIX = '.json';

export interface RegistryParts {
  readonly sources: readonly ContentSource[];
  readonly loaders?: readonly ContextLoader[];
  readonly log: Log;
}

export class ContextRegistry {
  readonly #sources: readonly ContentSource[];
  readonly #loaders: readonly ContextLoader[];
  readonly #log: Log;

  /** Throws RangeError when two parts claim one path, or one claims a path that is not its to claim. */
  constructor({ sources, loaders = [], log }: RegistryParts) {
    this.#sources = sources;
    this.#loaders = loaders;
    this.#log = log;
    checkPaths(sources, loaders);
  }

  /** INDEX.md first, then the documents, in the order of the sources. Rejects when a source cannot read. */
  async files(request: MentorContextRequest): Promise<readonly TarFile[]> {
    const [documents, sections] = await Promise.all([
      Promise.all(this.#sources.map((source) => this.#documents(source, request))),
      Promise.all(this.#loaders.map((loader) => loader.index(request))),
    ]);
    const built = documents.flat();
    const index = indexPage(
      built,
      sections.filter((section) => section !== null),
    );
    return [{ path: INDEX_PATH, content: index }, ...built.map((document) => ({ path: document.path, content: this.#text(document) }))];
  }

  /** The text of one item document; null when no source has it for this account. */
  async read(request: MentorContextRequest, path: string): Promise<string | null> {
    if (!isFolderPath(path) || !path.endsWith(ITEM_SUFFIX)) return null;
    const source = this.#sources.find(({ items }) => items !== undefined && path.startsWith(items));
    const name = path.slice(source?.items?.length ?? 0, -ITEM_SUFFIX.length);
    const item = name === '' ? null : await source?.read?.(request, name);
    return item ? this.#text({ ...item, path: source?.items ?? path }) : null;
  }

  /** The loader that owns a path; null when none does, or when the path names no item. */
  loader(path: string): ContextLoader | null {
    if (!isFolderPath(path)) return null;
    return this.#loaders.find(({ prefix }) => path.startsWith(prefix) && path.length > prefix.length) ?? null;
  }

  async #documents(source: ContentSource, request: MentorContextRequest): Promise<readonly ContextDocument[]> {
    const documents = await source.documents(request);
    for (const { path } of documents)
      if (!source.paths.includes(path)) throw new RangeError(`the source ${source.name} built a path that is not its own`);
    return documents;
  }

  #text({ content, maxBytes, path }: Omit<ContextDocument, 'says'>): string {
    const bytes = documentBytes(content);
    if (bytes <= maxBytes) return documentText(content);
    this.#log.error('context_document_too_large', { path, bytes, maxBytes });
    return documentText({ omittedForSize: true, bytes });
  }
}

function checkPaths(sources: readonly ContentSource[], loaders: readonly ContextLoader[]): void {
  const files = [INDEX_PATH, ...sources.flatMap(({ paths }) => paths)];
  const folders = [...sources.flatMap(({ items }) => items ?? []), ...loaders.map(({ prefix }) => prefix)];
  for (const path of [...files, ...folders.map((folder) => folder.slice(0, -1))])
    if (!isFolderPath(path)) throw new RangeError(`"${path}" is no path of the context folder`);
  const twice = files.find((path, nth) => files.indexOf(path) !== nth);
  if (twice !== undefined) throw new RangeError(`two sources have the path "${twice}"`);
  for (const { name, paths, items = DOCUMENTS_FOLDER } of sources)
    if (![...paths, items].every((path) => path.startsWith(DOCUMENTS_FOLDER) && (path !== items || path.endsWith('/'))))
      throw new RangeError(`the source ${name} has a path outside of ${DOCUMENTS_FOLDER}`);
  for (const { prefix } of loaders)
    if (!prefix.endsWith('/') || DOCUMENTS_FOLDER.startsWith(prefix)) throw new RangeError(`"${prefix}" is no folder of a loader`);
  for (const [nth, folder] of folders.entries()) {
    const within = [...files, ...folders.filter((_, other) => other !== nth)].find((path) => path.startsWith(folder));
    if (within !== undefined) throw new RangeError(`"${within}" lies in the folder "${folder}" of another part`);
  }
}
