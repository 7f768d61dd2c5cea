/**
 * Owns: the fixed documents of a turn and INDEX.md, the only description of them. A source is a function; one line each in the index.
 */
import type { TurnFacts } from '../../db/context/read-path.ts';
import type { TarFile } from './tar.ts';
import { dayAndTime } from './times.ts';

interface Document {
  readonly path: string;
  /** What INDEX.md says about it. */
  readonly says: string;
  readonly content: Readonly<Record<string, unknown>>;
}

function documents(facts: TurnFacts): readonly Document[] {
  return [
    {
      path: 'inputs/context/user.json',
      says: 'who the developer is: name and time zone',
      content: { name: facts.displayName, timeZone: facts.timeZone },
    },
    {
      path: 'inputs/context/workspace.json',
      says: 'the workspace in which the developer asks',
      content: { name: facts.workspaceName, slug: facts.workspaceSlug, preparedAt: dayAndTime(facts.now, facts.timeZone) },
    },
  ];
}

/** INDEX.md first, then the documents, in a stable order. */
export function contextFiles(facts: TurnFacts): readonly TarFile[] {
  const built = documents(facts);
  const index = ['# What this turn can read', '', ...built.map(({ path, says }) => `- ${path}: ${says}`), ''].join('\n');
  return [
    { path: 'INDEX.md', content: index },
    ...built.map(({ path, content }) => ({ path, content: `${JSON.stringify(content, null, 2)}\n` })),
  ];
}
