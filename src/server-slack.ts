/**
 * Owns: putting Slack together for a server.
 */
import type { Database } from '../db/pool.ts';
import type { Config } from './config.ts';
import { systemClock } from './kernel/clock.ts';
import type { Log } from './kernel/log.ts';
import { SecretBox } from './kernel/secret-box.ts';
import type { Metrics } from './ops/index.ts';
import { Slack } from './slack/index.ts';

/** Every server posts what is due, whichever of them takes deliveries. */
export function openSlack({ config, db, log, metrics }: { config: Config; db: Database; log: Log; metrics: Metrics }): Slack {
  const { auth, slack, assistantName, secretKeys, port } = config;
  const publicUrl = auth.kind === 'oidc' ? auth.publicUrl.origin : null;
  return new Slack({
    ...{ db, log, clock: systemClock, secrets: new SecretBox(secretKeys), assistantName, publicUrl, observer: metrics },
    ...{
      apiUrl: slack.apiUrl,
      readEveryMs: slack.readEveryMs,
      retentionMs: slack.retentionMs,
      signingSecret: slack.signingSecret,
      app: slack.app,
      appUrl: publicUrl ?? `http://localhost:${port}`,
    },
  });
}
