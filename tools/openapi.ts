/**
 * Owns: openapi.json, the tracked description of the web API.
 * Does not own: what it says (src/http/openapi.ts builds it from the contract).
 * `npm run openapi` writes the file, `--check` only compares.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { writeOrCheck } from './generated.ts';
import { PROJECT_ROOT } from './tree.ts';

const BUILDER = 'src/http/openapi.ts';

/** The description as it is tracked: JSON in the builder's own order, two spaces, a newline at the end. */
async function buildText(): Promise<string> {
  const builder: { buildOpenApi?: () => object } = await import(pathToFileURL(join(PROJECT_ROOT, BUILDER)).href);
  if (typeof builder.buildOpenApi !== 'function') throw new Error(`${BUILDER} exports no function buildOpenApi`);
  return `${JSON.stringify(builder.buildOpenApi(), null, 2)}\n`;
}

if (existsSync(join(PROJECT_ROOT, BUILDER))) {
  writeOrCheck({ path: 'openapi.json', source: 'the contract says', command: 'npm run openapi' }, await buildText());
} else {
  console.error(`${BUILDER} does not exist yet. It exports buildOpenApi(): object.`);
  process.exitCode = 1;
}
