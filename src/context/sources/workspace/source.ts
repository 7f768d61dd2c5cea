/** `workspace.json`: where the developer asks. */
import type { ContentSource } from '../../spi.ts';
import { contextTime } from '../../times.ts';

const PATH = 'inputs/context/workspace.json';
const MAX_BYTES = 8 * 1024;

export const workspaceSource: ContentSource = {
  name: 'workspace',
  paths: [PATH],
  async documents({ workspace: { name, slug }, account, now }) {
    const content = { name, slug, preparedAt: contextTime(now, account.timeZone) };
    return [{ path: PATH, says: 'the workspace in which the developer asks', content, maxBytes: MAX_BYTES }];
  },
};
