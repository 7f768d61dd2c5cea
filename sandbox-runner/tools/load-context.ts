/**
 * Owns: the load_context tool: what the model is told about it, one load at a time in a turn, and the summary command of a load.
 * Does not own: receiving and extracting (load.ts), and how often a turn may load (the server counts).
 */
import type { LoadManifest } from '../../src/contract/agent.ts';
import { LIMITS } from '../../src/contract/limits.ts';
import { WORKSPACE_DIR } from '../config.ts';
import type { ContextFolder } from '../context-folder.ts';
import type { Fate } from '../fate.ts';
import type { RunClient } from '../gateway-client.ts';
import { stageLoad } from '../load.ts';
import type { ToolDefinition } from '../pi.ts';
import { TarRefused } from '../tar-header.ts';
import { answered } from './ask-server.ts';
import { commandText, runCommand } from './command.ts';
import { wellFormedResult } from './result.ts';

const DESCRIPTION = [
  'Load a repository that INDEX.md lists into the context folder, to read its files with read and bash. They are read-only.',
  `A turn may load ${LIMITS.loadsPerAttemptMax} times. Loading the same repository again replaces it.`,
].join(' ');
const PARAMETERS = {
  type: 'object',
  properties: {
    path: {
      type: 'string',
      minLength: 1,
      maxLength: LIMITS.documentPathMaxChars,
      description: 'What to load, as INDEX.md writes it, for example repos/name',
    },
  },
  required: ['path'],
};

export interface LoadToolOptions {
  readonly client: Pick<RunClient, 'load'>;
  readonly fate: Fate;
  readonly folder: () => ContextFolder;
  readonly setprivPath: string | null;
}

/** The tool for one attempt. */
export function createLoadTool(options: LoadToolOptions): ToolDefinition {
  let before: Promise<unknown> = Promise.resolve();
  return {
    name: 'load_context',
    label: 'load_context',
    description: DESCRIPTION,
    parameters: PARAMETERS,
    execute: async (_callId, params, signal = new AbortController().signal) => {
      const { path } = params as { path: string };
      // Loads run one after the other, so that a later one of the same repository replaces the earlier.
      const loaded = before.then(() => load(path, signal, options));
      before = loaded.catch(() => undefined);
      return wellFormedResult({ content: [{ type: 'text', text: await loaded }] });
    },
  };
}

async function load(path: string, signal: AbortSignal, options: LoadToolOptions): Promise<string> {
  signal.throwIfAborted();
  const opened = answered(await options.client.load(relativePath(path), signal), { fate: options.fate, refusal });
  const { manifest } = opened;
  const localDir = await stageLoad(options.folder(), opened, signal)
    .catch((error: unknown) => {
      signal.throwIfAborted();
      const why = error instanceof TarRefused ? `: its archive has ${error.message}` : '';
      throw new Error(`The load could not be used${why}. Nothing was loaded.`);
    })
    .finally(opened.close);
  const head = `Loaded ${manifest.directory} at version ${manifest.version}. Its files are under ${WORKSPACE_DIR}/${manifest.directory}, read-only.`;
  const summary = manifest.summary === null ? '' : await summarize(manifest.summary, localDir, { ...options, signal });
  return summary === '' ? head : `${head}\n\n${summary}`;
}

/** Paths of the folder are also written with its name. */
function relativePath(path: string): string {
  return path.startsWith(`${WORKSPACE_DIR}/`) ? path.slice(WORKSPACE_DIR.length + 1) : path;
}

function refusal(status: number): string {
  if (status === 404) return 'There is nothing to load under that path. INDEX.md lists what can be loaded, if anything.';
  return `That cannot be loaded: INDEX.md does not list it, or this turn has made all of its ${LIMITS.loadsPerAttemptMax} loads.`;
}

type SummaryOptions = Pick<LoadToolOptions, 'folder' | 'setprivPath'> & { readonly signal: AbortSignal };

/** What the load's own program prints about it. */
async function summarize(argv: NonNullable<LoadManifest['summary']>, cwd: string, options: SummaryOptions): Promise<string> {
  const { folder, setprivPath, signal } = options;
  const result = await runCommand({ argv, cwd, timeoutMs: LIMITS.bashTimeoutMs, setprivPath, signal });
  return commandText(result, (text) => text.replaceAll(folder().localDir, WORKSPACE_DIR)).text;
}
