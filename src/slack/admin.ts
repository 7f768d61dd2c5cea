/**
 * Owns: what an operator may do with Slack, and the sentences that refuse it.
 * Does not own: the outbox (src/ops).
 */
import { randomUUID } from 'node:crypto';
import { findWorkspaceId } from '../../db/people/members.ts';
import type { Database } from '../../db/pool.ts';
import { connectTeam, findTeam, listTeams } from '../../db/slack/connections.ts';
import { hasDelivered } from '../../db/slack/inbox.ts';
import type { SlackCheckView, SlackConnectInput, SlackConnectionView } from '../contract/slack.ts';
import { RuntimeFault } from '../kernel/faults.ts';
import { type SecretBox, SecretError } from '../kernel/secret-box.ts';
import { type ClientOptions, slackClient } from './client.ts';
import { knownOf } from './outcome.ts';

export interface SlackAdminDeps {
  readonly db: Database;
  readonly secrets: SecretBox;
  readonly client: ClientOptions;
  /** HEPH_SLACK_SIGNING_SECRET is set. */
  readonly hasSigningSecret: boolean;
  /** Where Slack and people reach this installation; null: only this machine does. */
  readonly publicUrl: string | null;
  /** Resolves when everything is erased. */
  readonly disconnect: (teamId: string, why: string) => Promise<boolean>;
}

/** What a bot token must be allowed: to post, to be sent direct messages, and to read them back. */
export const SCOPES = ['chat:write', 'im:history'] as const;

const bad = (text: string) => new RuntimeFault('BAD_REQUEST', text);

export class SlackAdmin {
  readonly #deps: SlackAdminDeps;

  constructor(deps: SlackAdminDeps) {
    this.#deps = deps;
  }

  connections(): Promise<readonly SlackConnectionView[]> {
    return listTeams(this.#deps.db);
  }

  /** The token is tried before it is stored. */
  async connect({ team, workspace, token }: SlackConnectInput): Promise<void> {
    const { db, secrets } = this.#deps;
    if (!secrets.canSeal) throw bad('A token can only be stored when HEPH_SECRET_KEY is set. Set it and restart every server.');
    const workspaceId = await findWorkspaceId(db, workspace);
    if (!workspaceId) throw new RuntimeFault('NOT_FOUND', `There is no workspace "${workspace}". heph workspace list shows them.`);
    const who = await this.#ask(token);
    if ('why' in who) throw bad(`Slack does not take this token (${who.why}). Copy the bot token (xoxb-…) of the app again.`);
    if (who.teamId !== team) throw bad(`This token belongs to the team ${who.teamId}, not to ${team}.`);
    const missing = missingScopes(who.scopes);
    if (missing.length > 0)
      throw bad(`The token lacks the scopes ${missing.join(', ')}. Add them to the app, install it again, and use its new token.`);
    const known = await findTeam(db, team);
    const id = known?.id ?? randomUUID();
    const tokenSealed = secrets.seal(token, id);
    const done = await db.transaction((tx) => connectTeam(tx, { id, workspaceId, teamId: team, botUserId: who.userId, tokenSealed }));
    if (!done) {
      throw new RuntimeFault(
        'NAME_TAKEN',
        'The team or the workspace has another connection. heph slack list shows it; heph slack disconnect ends it.',
      );
    }
  }

  async disconnect(team: string): Promise<void> {
    if (await this.#deps.disconnect(team, 'operator')) return;
    throw new RuntimeFault('NOT_FOUND', `The team ${team} is not connected. heph slack list shows those that are.`);
  }

  async check(): Promise<readonly SlackCheckView[]> {
    const { db, secrets, hasSigningSecret, publicUrl } = this.#deps;
    const line = (what: string, ok: boolean, next: string): SlackCheckView => ({ what, ok: ok ? 'yes' : 'no', next: ok ? '' : next });
    const teams = (await listTeams(db)).filter(({ state }) => state === 'ACTIVE');
    return [
      line('signing secret', hasSigningSecret, 'Set HEPH_SLACK_SIGNING_SECRET (Basic Information of the app).'),
      line('secret key', secrets.canSeal, 'Set HEPH_SECRET_KEY, for example to what `openssl rand -base64 32` prints.'),
      line('public address', publicUrl !== null, 'Set HEPH_AUTH=oidc and HEPH_PUBLIC_URL: Slack and people must reach /slack on it.'),
      line('connected team', teams.length > 0, 'Run: printf %s "$TOKEN" | heph slack connect TEAM --workspace SLUG'),
      ...(await Promise.all(teams.flatMap(({ team }) => [this.#checkTeam(team), this.#checkDeliveries(team)]))),
    ];
  }

  /** Whether Slack reaches this installation shows only when it has. */
  async #checkDeliveries(team: string): Promise<SlackCheckView> {
    const { db, publicUrl } = this.#deps;
    const arrived = await hasDelivered(db, team);
    const next = `Send the app a message. If it stays so, look at Event Subscriptions of the app: ${publicUrl ?? 'https://…'}/slack/events must be verified.`;
    return { what: `deliveries of ${team} today`, ok: arrived ? 'yes' : 'no', next: arrived ? '' : next };
  }

  async #checkTeam(team: string): Promise<SlackCheckView> {
    const { db, secrets } = this.#deps;
    const no = (next: string): SlackCheckView => ({ what: `team ${team}`, ok: 'no', next });
    const found = await findTeam(db, team);
    if (!found) return no('It was disconnected just now.');
    let token: string;
    try {
      token = secrets.open(found.tokenSealed, found.id);
    } catch (error) {
      if (error instanceof SecretError) return no(error.message);
      throw error;
    }
    const who = await this.#ask(token);
    if ('why' in who) return no(`Slack answers ${who.why}. Connect the team again with a new token.`);
    const missing = missingScopes(who.scopes);
    return missing.length === 0
      ? { what: `team ${team}`, ok: 'yes', next: '' }
      : no(`Add the scopes ${missing.join(', ')} and connect the team again.`);
  }

  async #ask(token: string): Promise<{ teamId: string; userId: string; scopes: readonly string[] | null } | { why: string }> {
    try {
      const { team_id: teamId, user_id: userId, response_metadata } = await slackClient(token, this.#deps.client).auth.test();
      if (!teamId || !userId) return { why: 'an answer without a team' };
      return { teamId, userId, scopes: response_metadata?.scopes ?? null };
    } catch (error) {
      const known = knownOf(error);
      return { why: known.kind === 'limited' ? 'rate_limited' : known.reason };
    }
  }
}

/** Slack names the scopes of a token in a header; where it does not, nothing is missing that is known. */
function missingScopes(scopes: readonly string[] | null): readonly string[] {
  return scopes === null ? [] : SCOPES.filter((scope) => !scopes.includes(scope));
}
