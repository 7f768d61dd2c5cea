/**
 * A process that stands for a Heph server around the embedded PostgreSQL, so that a spec can kill it, interrupt it or race it.
 * One command per line on stdin, one JSON answer per line on stdout: `start <dataDir>`, `stop`, and `race <fromMs> <count> <parentDir>`,
 * which takes the locks of the directories 0 to count-1 one by one, at times that all hosts have in common, to a fraction of a millisecond.
 * The end of stdin is a stop too: nothing outlives the spec.
 */
import { createInterface } from 'node:readline';
import { DataDirInUse, type EmbeddedPostgres, startEmbeddedPostgres } from '../../db/embedded/index.ts';
import { acquireLock } from '../../db/embedded/lock.ts';
import { silentLog } from '../../src/kernel/log.ts';

let postgres: EmbeddedPostgres | undefined;

const say = (answer: object) => process.stdout.write(`${JSON.stringify(answer)}\n`);

/** The numbers of the directories whose lock this process got. */
function race(fromMs: number, count: number, parentDir: string): number[] {
  const won: number[] = [];
  for (let i = 0; i < count; i++) {
    while (performance.timeOrigin + performance.now() < fromMs + i);
    try {
      acquireLock(`${parentDir}/${i}`);
      won.push(i);
    } catch (error) {
      if (!(error instanceof DataDirInUse)) throw error;
    }
  }
  return won;
}

async function run(command: string, args: readonly string[]): Promise<object> {
  if (command === 'start') {
    postgres = await startEmbeddedPostgres({ dataDir: args.join(' '), log: silentLog });
    return { event: 'started', url: postgres.url, pid: postgres.pid };
  }
  if (command === 'race') return { event: 'raced', won: race(Number(args[0]), Number(args[1]), args.slice(2).join(' ')) };
  await postgres?.stop();
  return { event: 'stopped' };
}

process.on('SIGINT', () => say({ event: 'interrupted' }));
say({ event: 'up' });
for await (const line of createInterface({ input: process.stdin })) {
  const [command = '', ...args] = line.split(' ');
  say(await run(command, args).catch((error: Error) => ({ event: 'refused', name: error.name, message: error.message })));
}
await postgres?.stop();
