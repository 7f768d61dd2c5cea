/**
 * Owns: the admin commands for workspaces and members: what each is called, which options it takes and which request it makes.
 */
import type { MemberChange, MemberInput, Role, WorkspaceInput } from '../contract/people.ts';
import { type Command, type Given, optional, text } from './commands.ts';

const ROLES = 'member|admin|operator';

const first = ({ positionals }: Given) => positionals[0] as string;
const at = (given: Given) => `the workspace ${text(given, 'workspace')}`;

export const PEOPLE_COMMANDS: readonly Command[] = [
  {
    ...{ words: 'workspace list', usage: '', about: 'every workspace, and how many members it has', options: [], arguments: 0 },
    request: () => ({ method: 'GET', path: 'workspaces', list: 'workspaces' }),
  },
  {
    ...{
      words: 'workspace add',
      usage: 'SLUG --name NAME',
      about: 'a workspace; its slug stands in its address',
      options: ['name'],
      arguments: 1,
    },
    request: (given) => ({
      ...{ method: 'POST', path: 'workspaces', body: { slug: first(given), name: text(given, 'name') } satisfies WorkspaceInput },
      done: `The workspace ${first(given)} is added. Next: heph member add EMAIL --workspace ${first(given)}.`,
    }),
  },
  {
    ...{ words: 'member list', usage: '[--workspace SLUG]', about: 'who belongs where, and as what', options: ['workspace'], arguments: 0 },
    request: (given) => {
      const slug = optional(given, 'workspace');
      return { method: 'GET', path: slug === undefined ? 'members' : `members?workspace=${encodeURIComponent(slug)}`, list: 'members' };
    },
  },
  {
    ...{ words: 'member add', usage: `EMAIL --workspace SLUG [--role ${ROLES}] [--name NAME]`, arguments: 1 },
    about: 'the person with this email; an account waits for the first sign-in with it, if there is none',
    options: ['workspace', 'role', 'name'],
    request(given) {
      const [role = 'member', name] = [optional(given, 'role') as Role | undefined, optional(given, 'name')];
      const body: MemberInput = { email: first(given), workspace: text(given, 'workspace'), role, ...(name === undefined ? {} : { name }) };
      return { method: 'POST', path: 'members', body, done: `${first(given)} is a member of ${at(given)}, as ${role}.` };
    },
  },
  {
    ...{
      words: 'member role',
      usage: `EMAIL|ACCOUNT ${ROLES} --workspace SLUG`,
      about: 'what a member may do',
      options: ['workspace'],
      arguments: 2,
    },
    request: (given) => ({
      ...{ method: 'PATCH', path: 'members' },
      body: { member: first(given), workspace: text(given, 'workspace'), role: given.positionals[1] as Role } satisfies MemberChange,
      done: `${first(given)} is ${given.positionals[1]} in ${at(given)} now.`,
    }),
  },
  {
    ...{ words: 'member remove', usage: 'EMAIL|ACCOUNT --workspace SLUG', options: ['workspace'], arguments: 1 },
    about: 'shows them nothing more of the workspace, at once; what they said stays theirs',
    request: (given) => ({
      ...{ method: 'PATCH', path: 'members' },
      body: { member: first(given), workspace: text(given, 'workspace'), role: null } satisfies MemberChange,
      done: `${first(given)} is no member of ${at(given)} any more.`,
    }),
  },
];
