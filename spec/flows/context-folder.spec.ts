/**
 * A repository from the command line to what a model reads: `heph repo add` against a real server, then a turn in a real sandbox.
 */
import { expect } from 'chai';
import { runAdminCommand } from '../../src/cli/run.ts';
import { Flow } from '../support/flow.ts';
import { GitFolder } from '../support/git-repositories.ts';
import { calls, says } from '../support/model-script.ts';

describe('the context folder of a real turn', function () {
  this.timeout(120_000);
  let flow: Flow;
  let folder: GitFolder;
  before(async () => {
    folder = await GitFolder.open();
  });
  after(() => folder.close());
  afterEach(() => flow.close());

  it('lists the repositories that an admin has added, beside the documents', async () => {
    const remote = await folder.repository();
    await remote.commit([{ path: 'README.md', content: 'hello' }], { branch: 'trunk' });
    await remote.git('symbolic-ref', 'HEAD', 'refs/heads/trunk');
    flow = await Flow.open({
      env: { HEPH_GIT_ALLOW_FILE: 'true' },
      script: ({ toolResults }) => (toolResults.length === 0 ? calls('read', { path: 'INDEX.md' }) : says(toolResults.join('\n'))),
    });
    const server = await flow.server();
    let said = '';
    const say = (text: string) => {
      said += text;
    };
    const context = { opsUrl: `http://127.0.0.1:${server.opsPort}`, readInput: async () => '', out: say, err: say };
    expect(await runAdminCommand(['repo', 'add', remote.url, '--name', 'project'], context), said).to.equal(0);
    const person = flow.person(server);
    const { turn } = await person.ask('What can you read?');
    expect((await person.waitForTurn(turn.id)).status).to.equal('DONE');
    const entries = await person.entries(turn.conversationId);
    const answer = entries.find(({ kind }) => kind === 'answer')?.text ?? '';
    expect(answer).to.include('inputs/context/user.json').and.include('inputs/context/conversation.json');
    expect(answer).to.include('- repos/project: default branch `trunk`');
  });
});
