/**
 * Owns: the read tool: Pi's own, on the context folder only. Pages of 2,000 lines or 50 KB are Pi's.
 * Does not own: which paths are inside (context-folder.ts).
 */
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { WORKSPACE_DIR } from '../config.ts';
import type { ContextFolder } from '../context-folder.ts';
import { pi, type ToolDefinition } from '../pi.ts';
import { wellFormedResult } from './result.ts';

/** The tool for one attempt. Documents are text; an image is read as text, too. */
export function createReadTool(folder: () => ContextFolder): ToolDefinition {
  const read = pi.createReadToolDefinition(WORKSPACE_DIR, {
    operations: {
      access: async (path) => {
        await folder().resolveFile(path);
      },
      readFile: async (path) => Buffer.concat(await Array.fromAsync(chunksOf(folder(), path))),
      createReadStream: (path) => chunksOf(folder(), path),
    },
  });
  const tool: typeof read = {
    ...read,
    // Pi's details repeat the text for its terminal; the ledger would store it twice.
    execute: async (...call) => wellFormedResult(await read.execute(...call)),
  };
  return tool as unknown as ToolDefinition;
}

async function* chunksOf(folder: ContextFolder, path: string): AsyncGenerator<Buffer> {
  const local = await folder.resolveFile(path);
  const handle = await open(local, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    for await (const chunk of handle.createReadStream({ autoClose: false })) yield chunk as Buffer;
  } finally {
    await handle.close();
  }
}
