/**
 * Owns: INDEX.md, the only description of what a turn can read: one line for each document, then a section of each loader.
 */

export const INDEX_PATH = 'INDEX.md';

export function indexPage(documents: readonly { readonly path: string; readonly says: string }[], sections: readonly string[]): string {
  const lines = documents.map(({ path, says }) => `- ${path}: ${says}`);
  const intro = 'Paths in a `resource` member of a document can be read too.';
  return `${['# What this turn can read', '', ...lines, '', intro, ...sections.flatMap((section) => ['', section.trim()])].join('\n')}\n`;
}
