/**
 * Owns: the list of tools of a turn. It is the same for each turn, whatever the machine can do.
 */
import type { ContextFolder } from '../context-folder.ts';
import type { ToolDefinition } from '../pi.ts';
import { createBashTool } from './bash.ts';
import { createReadTool } from './read.ts';

export { confineCommands, killCommands } from './command.ts';

export interface ToolOptions {
  /** The folder of this turn; asked when a tool runs. */
  readonly folder: () => ContextFolder;
  readonly bash: boolean;
  readonly setprivPath: string | null;
}

/** The tools, in the order in which the model sees them. */
export function createTools(options: ToolOptions): ToolDefinition[] {
  return [
    createReadTool(options.folder),
    createBashTool({ folder: options.folder, allowed: options.bash, setprivPath: options.setprivPath }),
  ];
}
