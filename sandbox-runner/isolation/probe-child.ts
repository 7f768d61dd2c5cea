/**
 * Owns: what the probe asks from inside of a sandbox: what the kernel says about this process, and about a command in a layer of its own.
 * It prints one line of JSON. Nothing but probe.ts starts it.
 */
import { spawnSync } from 'node:child_process';
import { openSync, readFileSync } from 'node:fs';
import { INSIDE, toolLayer } from './layers.ts';
import { FACTS_COMMAND, parseFacts } from './probe-facts.ts';

const own = ['/proc/self/status', '/proc/net/dev'].map((file) => readFileSync(file, 'utf8')).join('\n');
const [file = '', ...args] = toolLayer(FACTS_COMMAND);
const filter = openSync(INSIDE.toolFilter, 'r');
const tool = spawnSync(file, args, { stdio: ['ignore', 'pipe', 'pipe', filter], encoding: 'utf8', timeout: 10_000 });
process.stdout.write(
  `${JSON.stringify({ runner: parseFacts(own), tool: tool.status === 0 ? parseFacts(tool.stdout) : null, why: tool.stderr.slice(0, 300) })}\n`,
);
