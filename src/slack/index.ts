/**
 * The door of src/slack: one object that a server opens, gives its actors, and stops.
 */
import type { Actors, OutboxOptions, Runtime } from '../../actors/index.ts';
import { OUTBOX_TIMES } from '../../actors/index.ts';
import type { Database } from '../../db/pool.ts';
import type { Clock, Timer } from '../kernel/clock.ts';
import type { AccountId } from '../kernel/ids.ts';
import type { Log } from '../kernel/log.ts';
import type { SecretBox } from '../kernel/secret-box.ts';
import { SlackAdmin } from './admin.ts';
import { Disconnector } from './disconnect.ts';
import { Inbox } from './inbox.ts';
import { Installer } from './install.ts';
import { Links, linkToken } from './link.ts';
import { Retention } from './retention.ts';
import { createSender } from './sender.ts';
import { isSigned, type SignedDelivery } from './signature.ts';

export interface SlackOptions {
  readonly db: Database;
  readonly clock: Clock;
  readonly log: Log;
  readonly secrets: SecretBox;
  readonly apiUrl: string;
  /** Between two readings of a team's history, milliseconds; default: as Slack asks of most apps. */
  readonly readEveryMs?: number;
  /** How long what a tool copied is kept, milliseconds. */
  readonly retentionMs: number;
  /** null: nothing is taken from Slack; what is connected can be seen and ended. */
  readonly signingSecret: string | null;
  /** The app's own, for its installation by Slack's consent page; null: teams are connected at the command line only. */
  readonly app: { readonly clientId: string; readonly clientSecret: string } | null;
  readonly assistantName: string;
  /** Where people open the app. */
  readonly appUrl: string;
  /** null: only this machine reaches it. */
  readonly publicUrl: string | null;
  readonly observer: OutboxOptions['observer'];
}

/** Longest time of one call; far below the lease of an outbox action. */
const CALL_TIMEOUT_MS = 10_000;
const SWEEP_MS = 2_000;
const TIDY_EVERY_SWEEPS = 1_800;

export class Slack {
  readonly outbox: OutboxOptions;
  readonly #options: SlackOptions;
  #started: { readonly inbox: Inbox; readonly disconnector: Disconnector; readonly retention: Retention; readonly timer: Timer } | null =
    null;
  #sweeps = 0;

  constructor(options: SlackOptions) {
    this.#options = options;
    const { apiUrl, secrets, assistantName, appUrl, signingSecret, observer } = options;
    const linkUrl = (actionId: string) => `${appUrl}/slack/link?token=${linkToken(signingSecret ?? '', actionId)}`;
    const sender = createSender({ client: { apiUrl, timeoutMs: CALL_TIMEOUT_MS }, secrets, voice: { assistantName, appUrl, linkUrl } });
    this.outbox = { sender, times: { ...OUTBOX_TIMES, readEveryMs: options.readEveryMs ?? OUTBOX_TIMES.readEveryMs }, observer };
  }

  /** Takes deliveries up, and what an earlier server left. */
  start(actors: Pick<Actors, 'entriesErased'> & { readonly runtime: Pick<Runtime, 'submitQuestion' | 'editEntry' | 'eraseEntry'> }): void {
    const { db, log, clock, retentionMs } = this.#options;
    const disconnector = new Disconnector({ db, log, actors });
    const disconnect = async (teamId: string, why: string) => void (await disconnector.end(teamId, why));
    const inbox = new Inbox({ db, clock, log, runtime: actors.runtime, disconnect });
    const retention = new Retention({ db, log, actors, retentionMs });
    this.#started = { inbox, disconnector, retention, timer: clock.every(SWEEP_MS, () => this.#sweep()) };
    this.#sweep();
  }

  #sweep(): void {
    const { log } = this.#options;
    const failed = (error: unknown) => log.error('slack sweep failed', {}, error); // the next one goes on
    this.#started?.inbox.wake();
    this.#started?.disconnector.run().catch(failed);
    if (this.#sweeps++ % TIDY_EVERY_SWEEPS !== 0) return;
    this.#started?.inbox.prune().catch(failed);
    this.#started?.retention.run().catch(failed);
  }

  async stop(): Promise<void> {
    this.#started?.timer.cancel();
    await this.#started?.inbox.stop();
  }

  /** Resolves when no delivery is being worked on. */
  async idle(): Promise<void> {
    await this.#started?.inbox.idle();
  }

  /** What the web listener calls; null: this server takes nothing from Slack. */
  get door() {
    const { db, signingSecret, clock } = this.#options;
    if (signingSecret === null) return null;
    const links = new Links(db, signingSecret);
    return {
      receive: async (delivery: SignedDelivery): Promise<{ readonly challenge: string | null } | null> => {
        if (!isSigned(delivery, signingSecret, clock.now())) return null;
        return this.#inbox().receive(delivery.body);
      },
      lookAtLink: (token: string) => links.look(token),
      install: this.#installer(),
      redeemLink: (token: string, accountId: AccountId) => links.use(token, accountId),
    };
  }

  #installer(): Installer | null {
    const { db, log, app, apiUrl, appUrl } = this.#options;
    if (app === null) return null;
    const admin = this.admin();
    return new Installer({
      ...{ db, log, ...app, client: { apiUrl, timeoutMs: CALL_TIMEOUT_MS }, callbackUrl: `${appUrl}/slack/oauth/callback` },
      connect: (input) => admin.connect(input),
    });
  }

  admin(): SlackAdmin {
    const { db, secrets, apiUrl, signingSecret, publicUrl } = this.#options;
    return new SlackAdmin({
      ...{ db, secrets, publicUrl, client: { apiUrl, timeoutMs: CALL_TIMEOUT_MS }, hasSigningSecret: signingSecret !== null },
      disconnect: async (teamId, why) => this.#running().disconnector.end(teamId, why),
    });
  }

  #inbox(): Inbox {
    return this.#running().inbox;
  }

  #running() {
    if (this.#started) return this.#started;
    throw new Error('Slack is asked before it is started');
  }
}
