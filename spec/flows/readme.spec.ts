/**
 * The README's curl walk-through, word for word, against a server that was started as the README says (on another port).
 */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { WebClient } from '../support/person.ts';
import { removeDataDirs, ServerProcess } from '../support/server-process.ts';

const README = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
const blocks = [...README.matchAll(/```sh\n([\s\S]*?)```/g)].map((block) => block[1] ?? '').filter((block) => block.includes('curl'));

const OUTPUT_MAX_BYTES = 10 * 1024 * 1024;

describe('the README', function () {
  this.timeout(60_000);
  let server: ServerProcess;
  before(async () => {
    server = await ServerProcess.start();
  });
  after(async () => {
    await server.kill();
    removeDataDirs();
  });

  /** Runs one block as it stands, with our port. curl ends a watched stream with "timed out", which is no failure of the block. */
  async function bash(nth: number): Promise<string> {
    const script = `${(blocks[nth] ?? '').replaceAll('localhost:8080', `localhost:${server.port}`)}\ntrue`;
    return (await promisify(execFile)('bash', ['-c', script], { maxBuffer: OUTPUT_MAX_BYTES })).stdout;
  }

  it('asks, watches, reads and stops with curl, word for word', async () => {
    expect(blocks).to.have.length(4);
    const asked = JSON.parse(await bash(0)) as { entry: { text: string }; turn: { id: string } };
    expect(asked.entry.text).to.equal('What can you read here?');
    expect(await bash(1), 'the stream begins with a snapshot').to.include('event: snapshot\n');
    await new WebClient(`http://127.0.0.1:${server.port}`).waitForTurn(asked.turn.id);
    const page = JSON.parse(await bash(2)) as { entries: { kind: string; text: string }[] };
    expect(page.entries.map(({ kind }) => kind)).to.deep.equal(['question', 'answer']);
    expect(page.entries[1]?.text).to.include('INDEX.md');
    expect(JSON.parse(await bash(3))).to.include({ status: 'STOPPED' });
  });

  it('describes the same routes as the server does', async () => {
    const answer = await fetch(server.url('/openapi.json'));
    const { paths } = (await answer.json()) as { paths: Record<string, unknown> };
    expect(Object.keys(paths)).to.include.members(['/workspaces/{slug}/mentor/questions', '/workspaces/{slug}/mentor/events']);
  });
});
