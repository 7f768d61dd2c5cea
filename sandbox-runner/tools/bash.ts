/**
 * Owns: the bash tool: what the model is told about it, the refusal where it may not run, and its paths on this machine.
 * Does not own: the process and its output (command.ts), and isolation: where bash is allowed, somebody has decided that it may run.
 * Declared the same for each turn, whatever the machine can do: the tools are part of the stable prefix of a request.
 */
import { LIMITS } from '../../src/contract/limits.ts';
import { WORKSPACE_DIR } from '../config.ts';
import type { ContextFolder } from '../context-folder.ts';
import type { ToolDefinition } from '../pi.ts';
import { commandText, runCommand } from './command.ts';
import { wellFormedResult } from './result.ts';

const TIMEOUT_SECONDS = LIMITS.bashTimeoutMs / 1_000;
const REFUSAL =
  'bash is not available on this installation: it has no isolation for commands. Use read for the files of the context folder.';
const DESCRIPTION = [
  `Execute a bash command in ${WORKSPACE_DIR}, the context folder. Returns stdout and stderr together.`,
  `A command may take ${TIMEOUT_SECONDS} seconds. Processes that it leaves in the background end with it.`,
  'Output is cut to its last 2000 lines or 50KB, whichever is hit first.',
].join(' ');
const PARAMETERS = {
  type: 'object',
  properties: {
    command: { type: 'string', description: 'Bash command to execute' },
    timeout: { type: 'number', description: `Timeout in seconds, at most ${TIMEOUT_SECONDS}` },
  },
  required: ['command'],
};

export interface BashToolOptions {
  readonly folder: () => ContextFolder;
  readonly allowed: boolean;
  /** Ties the command's life to the runner's. */
  readonly setprivPath: string | null;
}

/** The tool for one attempt. */
export function createBashTool(options: BashToolOptions): ToolDefinition {
  return {
    name: 'bash',
    label: 'bash',
    description: DESCRIPTION,
    parameters: PARAMETERS,
    execute: async (_callId, params, signal) => {
      if (!options.allowed) throw new Error(REFUSAL);
      const { command, timeout } = params as { command: string; timeout?: number };
      const { localDir } = options.folder();
      const result = await runCommand({
        argv: ['bash', '--norc', '--noprofile', '-c', command.replaceAll(WORKSPACE_DIR, localDir)],
        cwd: localDir,
        timeoutMs: timeoutOf(timeout),
        setprivPath: options.setprivPath,
        signal: signal ?? new AbortController().signal,
      });
      const { text, failed } = commandText(result, (printed) => printed.replaceAll(localDir, WORKSPACE_DIR));
      return wellFormedResult({ content: [{ type: 'text', text: text === '' ? '(no output)' : text }], isError: failed });
    },
  };
}

function timeoutOf(seconds: number | undefined): number {
  const wantedMs = seconds !== undefined && seconds > 0 ? seconds * 1_000 : LIMITS.bashTimeoutMs;
  return Math.min(wantedMs, LIMITS.bashTimeoutMs);
}
