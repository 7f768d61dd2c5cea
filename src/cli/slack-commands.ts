/**
 * Owns: the operators' commands for Slack and the outbox: what each is called, which options it takes and which request it makes.
 */
import type { OutboxDecision, SlackConnectInput } from '../contract/slack.ts';
import { type Command, type Given, optional, text } from './commands.ts';

const first = ({ positionals }: Given) => positionals[0] as string;

const decide = (decision: OutboxDecision, about: string, done: string): Command => ({
  ...{ words: `outbox ${decision}`, usage: 'ID', about, options: [], arguments: 1 },
  request: (given) => ({ method: 'POST', path: `outbox/${encodeURIComponent(first(given))}`, body: { decision }, done }),
});

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
  {
    ...{ words: 'outbox list', usage: '[--state STATE]', options: ['state'], arguments: 0 },
    about: 'what is not sent yet, or may not be; UNCERTAIN: nobody knows whether Slack has it',
    request(given) {
      const state = optional(given, 'state');
      return { method: 'GET', path: state === undefined ? 'outbox' : `outbox?state=${encodeURIComponent(state)}`, list: 'outbox' };
    },
  },
  decide('sent', 'an uncertain action is in Slack: you have seen it', 'The action is marked as sent.'),
  decide('again', 'send an action again: it is not in Slack, or its reason is gone', 'The action is sent again.'),
];
