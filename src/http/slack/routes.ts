/**
 * Owns: which routes of Slack there are: none where nothing is taken from Slack, and the installation only where the app's credentials are set.
 */
import type { Route } from '../route.ts';
import type { WebDeps } from '../web/deps.ts';
import { slackInstallRoutes } from './install.ts';
import { slackLinkRoutes } from './link.ts';
import { postSlackEvents } from './post-events.ts';

export function slackRoutes({ slack, authenticator }: Pick<WebDeps, 'slack' | 'authenticator'>): readonly Route[] {
  if (!slack) return [];
  const { install } = slack;
  const installation = install ? slackInstallRoutes({ install, authenticator }) : [];
  return [postSlackEvents(slack), ...slackLinkRoutes({ door: slack, authenticator }), ...installation];
}
