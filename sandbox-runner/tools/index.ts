/**
 * Owns: the list of tools of a turn. It is the same for each turn, whatever the machine can do.
 */
import type { ContextFolder } from '../context-folder.ts';
import type { Fate } from '../fate.ts';
import type { RunClient } from '../gateway-client.ts';
import type { ToolDefinition } from '../pi.ts';
import { createBashTool } from './bash.ts';
import { createLoadTool } from './load-context.ts';
import { createReadTool } from './read.ts';
import { createSearchTool } from './search-conversation.ts';

export { confineCommands, killCommands } from './command.ts';

export interface ToolOptions {
  /** The folder of this turn; asked when a tool runs. */
  readonly folder: () => ContextFolder;
  readonly conversationId: () => string;
  readonly bash: boolean;
  readonly setprivPath: string | null;
  readonly client: RunClient;
  readonly fate: Fate;
}

/** The tools, in the order in which the model sees them. */
export function createTools(options: ToolOptions): ToolDefinition[] {
  return [
    createReadTool(options.folder),
    createBashTool({ folder: options.folder, allowed: options.bash, setprivPath: options.setprivPath }),
    createLoadTool(options),
    createSearchTool(options),
  ];
}
