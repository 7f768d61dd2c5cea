/**
 * Owns: the operators' commands for Slack: what each is called, which options it takes and which request it makes.
 */
import type { SlackConnectInput } from '../contract/slack.ts';
import { type Command, type Given, text } from './commands.ts';

const first = ({ positionals }: Given) => positionals[0] as string;

export const SLACK_COMMANDS: readonly Command[] = [
  {
    ...{ words: 'slack check', usage: '', about: 'what Slack needs, what is missing, and what to do about it', options: [], arguments: 0 },
    request: () => ({ method: 'GET', path: 'slack/check', list: 'check' }),
  },
  {
    ...{ words: 'slack list', usage: '', about: 'teams that are connected', options: [], arguments: 0 },
    request: () => ({ method: 'GET', path: 'slack', list: 'slack' }),
  },
  {
    ...{ words: 'slack connect', usage: 'TEAM --workspace SLUG', options: ['workspace'], arguments: 1 },
    about: 'connect a team; the bot token of the app (xoxb-…) is read from standard input',
    async request(given) {
      const body: SlackConnectInput = { team: first(given), workspace: text(given, 'workspace'), token: await given.readKey() };
      return { method: 'POST', path: 'slack', body, done: `The team ${first(given)} is connected to the workspace ${body.workspace}.` };
    },
  },
  {
    ...{ words: 'slack disconnect', usage: 'TEAM', options: [], arguments: 1 },
    about: 'end the connection and erase everything that was written in Slack in its workspace',
    request: (given) => ({
      ...{ method: 'POST', path: 'slack/disconnect', body: { team: first(given) } },
      done: `The team ${first(given)} is disconnected, and what was written in Slack is erased.`,
    }),
  },
];
