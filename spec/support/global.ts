/** Root plugin of every mocha process (.mocharc.json): stops what specs share. */
import { stopSharedServer } from './database.ts';

export async function mochaGlobalTeardown(): Promise<void> {
  await stopSharedServer();
}
