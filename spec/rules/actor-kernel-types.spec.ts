/**
 * Asks: does the compiler refuse a command that an actor does not know? nact's own references accept anything.
 * The snippet is compiled with the settings of the tree; each line marked `refused` must be an error, and no other line may be.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect } from 'chai';

const ROOT = path.resolve(import.meta.dirname, '../..');

const SNIPPET = `
import type { ActorKind, ActorSystem, Address, Behaviour, SingleActor } from '${ROOT}/actors/kernel/index.ts';

type Submit = { readonly type: 'Submit'; readonly text: string };
type Stop = { readonly type: 'Stop' };
declare const system: ActorSystem;
declare const conversation: Behaviour<{ n: number }, Submit | Stop, { ok: boolean }>;
declare const options: Parameters<ActorSystem['kind']>[2];
const conversations = system.kind('conversation', conversation, options);
const copies = system.kind('copy', conversation, options);
const slack = system.kind('slack', {} as Behaviour<null, { readonly type: 'Post' }, string>, options);
const capacity = system.single('capacity', {} as Behaviour<null, { readonly type: 'Claim' }, number>, options);

export const replies: Promise<{ ok: boolean }> = conversations.ask('id', { type: 'Submit', text: 'hello' });
export const posted: Promise<string> = slack.ask(slack.address('id'), { type: 'Post' });
export const claimed: Promise<number> = capacity.ask({ type: 'Claim' });
export const news: Promise<{ ok: boolean }> | null = conversations.askIfActive('id', { type: 'Stop' });
export const told: boolean = conversations.tell(conversations.address('id'), { type: 'Stop' });
export const narrow: Address<Stop> = conversations.address('id');
export const anyName: ActorKind<Submit | Stop, { ok: boolean }> = conversations;
export const anySingle: SingleActor<{ readonly type: 'Claim' }, number> = capacity;

conversations.tell('id', { type: 'Claim' }); // refused
conversations.tell('id', { type: 'Submit' }); // refused
conversations.tell('id', { type: 'Submit', text: 'hello', extra: 1 }); // refused
void conversations.ask(conversations.address('id'), { type: 'Post' }); // refused
void conversations.ask(slack.address('id'), { type: 'Stop' }); // refused
void conversations.ask(copies.address('id'), { type: 'Stop' }); // refused
conversations.tell(narrow, { type: 'Submit', text: 'hello' }); // refused
conversations.tell({ kind: 'conversation', id: 'id' }, { type: 'Stop' }); // refused
conversations.tell({}, { type: 'Stop' }); // refused
conversations.tell(7, { type: 'Stop' }); // refused
conversations.tellIfActive('id', { type: 'Claim' }); // refused
void conversations.askIfActive('id', { type: 'Claim' }); // refused
capacity.tell({ type: 'Stop' }); // refused
export const wide: Address<Submit | Stop | { readonly type: 'Post' }> = conversations.address('id'); // refused
export const wrongReply: Promise<number> = conversations.ask('id', { type: 'Stop' }); // refused
export const untyped: Behaviour<null, { readonly text: string }, null> | null = null; // refused
`;

/** What tsc prints; it exits with 1 or 2 when there are errors. */
function compile(project: string): Promise<string> {
  const tsc = path.join(ROOT, 'node_modules/.bin/tsc');
  return new Promise((resolve) =>
    execFile(process.execPath, [tsc, '-p', project, '--pretty', 'false'], (_error, stdout) => resolve(stdout)),
  );
}

describe('a command that an actor does not know', () => {
  it('does not compile', async function () {
    this.timeout(120_000);
    const folder = mkdtempSync(path.join(tmpdir(), 'heph-types-'));
    try {
      writeFileSync(path.join(folder, 'snippet.ts'), SNIPPET);
      writeFileSync(path.join(folder, 'package.json'), '{"type":"module"}');
      const settings = {
        noEmit: true,
        typeRoots: [`${ROOT}/node_modules/@types`],
        types: ['node'],
        rewriteRelativeImportExtensions: false,
      };
      const project = { extends: `${ROOT}/tsconfig.json`, compilerOptions: settings, include: [], files: ['snippet.ts'] };
      writeFileSync(path.join(folder, 'tsconfig.json'), JSON.stringify(project));
      const output = await compile(folder);
      const errors = [...output.matchAll(/^.*snippet\.ts\((\d+),\d+\): error/gm)].map(([, line]) => Number(line));
      const lines = SNIPPET.split('\n');
      const refused = lines.flatMap((line, index) => (line.endsWith('// refused') ? [index + 1] : []));
      expect([...new Set(errors)], output).to.deep.equal(refused);
      expect(output.match(/: error TS/g), 'no error is elsewhere').to.have.length(errors.length);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
