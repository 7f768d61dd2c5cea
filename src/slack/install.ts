/**
 * Owns: "Add to Slack": an administrator of a workspace sends Slack's consent page a state of ours, and comes back with a code that Slack's
 * library turns into a bot token. The state is signed, bound to the browser by a cookie, ends after ten minutes, and names the workspace and the account.
 */
import { createHmac } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { InstallProvider } from '@slack/oauth';
import { z } from 'zod';
import { readOwnAccount } from '../../db/people/members.ts';
import type { Database } from '../../db/pool.ts';
import type { SlackConnectInput } from '../contract/slack.ts';
import { RuntimeFault } from '../kernel/faults.ts';
import type { AccountId } from '../kernel/ids.ts';
import type { Log } from '../kernel/log.ts';
import { SCOPES } from './admin.ts';
import { type ClientOptions, silentLogger } from './client.ts';

export interface InstallerDeps {
  readonly db: Database;
  readonly log: Log;
  readonly client: ClientOptions;
  readonly clientId: string;
  readonly clientSecret: string;
  /** Of this installation, as the app's settings name it. */
  readonly callbackUrl: string;
  /** Stores the token; throws a fault whose words are for the administrator. */
  readonly connect: (input: SlackConnectInput) => Promise<void>;
}

/** `why`: words for the administrator. */
export type Installed = { readonly kind: 'connected'; readonly team: string } | { readonly kind: 'refused'; readonly why: string };

const INSTALLERS: readonly string[] = ['admin', 'operator'];
const purposeSchema = z.object({ workspace: z.string(), account: z.string() });
type Purpose = z.infer<typeof purposeSchema>;

export class Installer {
  readonly #deps: InstallerDeps;

  constructor(deps: InstallerDeps) {
    this.#deps = deps;
  }

  /** True for somebody who administers the workspace now. */
  async mayInstall(accountId: AccountId, workspace: string): Promise<boolean> {
    const own = await readOwnAccount(this.#deps.db, accountId);
    return own?.workspaces.some(({ slug, role }) => slug === workspace && INSTALLERS.includes(role)) ?? false;
  }

  /** Answers the request itself: a redirect to Slack. */
  async begin(
    request: IncomingMessage,
    response: ServerResponse,
    purpose: { readonly workspace: string; readonly accountId: AccountId },
  ): Promise<void> {
    const metadata = JSON.stringify({ workspace: purpose.workspace, account: purpose.accountId } satisfies Purpose);
    await this.#provider().handleInstallPath(request, response, undefined, {
      ...{ scopes: [...SCOPES], metadata, redirectUri: this.#deps.callbackUrl },
    });
  }

  /** Sets a header on `response` (the cookie is over), and leaves the rest of the answer to the caller. */
  async finish(request: IncomingMessage, response: ServerResponse, accountId: AccountId): Promise<Installed> {
    let result: Installed = { kind: 'refused', why: 'Slack did not finish. Begin again.' };
    const refuse = (why: string) => {
      result = { kind: 'refused', why };
      return false;
    };
    await this.#provider().handleCallback(request, response, {
      beforeInstallation: async ({ metadata }) => {
        const purpose = purposeOf(metadata);
        if (purpose?.account !== accountId) return refuse('Another account began this. Begin again.');
        return (
          (await this.mayInstall(accountId, purpose.workspace)) || refuse('Only an administrator of the workspace connects it to Slack.')
        );
      },
      successAsync: async ({ team, bot, isEnterpriseInstall }, { metadata }) => {
        const purpose = purposeOf(metadata);
        if (!team || !bot || !purpose || isEnterpriseInstall)
          return void refuse('Slack gave no bot token for one team. Install the app in a team.');
        result = await this.#connect({ team: team.id, workspace: purpose.workspace, token: bot.token });
      },
      failureAsync: async (error) => {
        this.#deps.log.warn('slack install failed', { code: String(error.code) });
        refuse('Slack did not let the app in, or this page was opened twice or too late. Begin again.');
      },
    });
    return result;
  }

  async #connect(input: SlackConnectInput): Promise<Installed> {
    try {
      await this.#deps.connect(input);
      return { kind: 'connected', team: input.team };
    } catch (error) {
      if (error instanceof RuntimeFault && error.retry === 'never') return { kind: 'refused', why: error.publicMessage };
      throw error;
    }
  }

  /** Its store is not used: a token is stored by `connect`, sealed. */
  #provider(): InstallProvider {
    const { clientId, clientSecret, client } = this.#deps;
    return new InstallProvider({
      ...{ clientId, clientSecret, directInstall: true, logger: silentLogger },
      stateSecret: createHmac('sha256', clientSecret).update('heph slack install state').digest('hex'),
      authorizationUrl: new URL('/oauth/v2/authorize', client.apiUrl).href,
      clientOptions: { slackApiUrl: client.apiUrl, retryConfig: { retries: 0 }, timeout: client.timeoutMs, rejectRateLimitedCalls: true },
      installationStore: {
        storeInstallation: async () => undefined,
        fetchInstallation: () => Promise.reject(new Error('installations are rows of slack_connection')),
      },
    });
  }
}

function purposeOf(metadata: string | undefined): Purpose | null {
  try {
    return purposeSchema.parse(JSON.parse(metadata ?? ''));
  } catch {
    return null; // a state that is not ours
  }
}
