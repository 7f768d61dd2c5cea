/**
 * A process that does nothing but post: the outbox of a server on a real database and a Slack, until somebody kills it. It looks all the time,
 * so that a spec does not wait for a server's sweeps. Started by outbox-process.ts.
 */
import type { OutboxTimes } from '../../db/slack/outbox.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { openTestDatabase } from './database.ts';
import { openOutbox, sender } from './slack-scene.ts';

export interface WorkerTask {
  readonly databaseUrl: string;
  readonly apiUrl: string;
  readonly times: OutboxTimes;
  /** Between two looks. */
  readonly lookEveryMs: number;
}

const { databaseUrl, apiUrl, times, lookEveryMs } = JSON.parse(process.argv[2] ?? '') as WorkerTask;
const db = await openTestDatabase(databaseUrl);
const { outbox } = openOutbox(db, { sender: sender(apiUrl), times });
systemClock.every(lookEveryMs, () => outbox.look());
process.stdin.resume().on('end', () => process.exit()); // it lives as long as whoever started it
process.stdout.write('posting\n');
