/**
 * An admin changes the model of a running installation from the command line: `heph` as a process, against a real server.
 */
import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { Flow } from '../support/flow.ts';
import { heph } from '../support/heph-command.ts';
import { answer } from '../support/model-script.ts';

describe('an admin at the command line', function () {
  this.timeout(120_000);
  let flow: Flow;
  afterEach(() => flow.close());

  it('moves the next turn to another provider, with its own key, without a restart', async () => {
    flow = await Flow.open({
      script: answer(),
      env: { HEPH_LLM_ALLOW_PRIVATE: 'true', HEPH_SECRET_KEY: randomBytes(32).toString('base64') },
    });
    const server = await flow.server();
    const person = flow.person(server);
    const before = await person.ask('Who are you?');
    expect((await person.waitForTurn(before.turn.id)).status).to.equal('DONE');
    const done = async (args: string, input = '') => {
      const { code, said } = await heph(server.opsPort, args.split(' '), input);
      expect(code, said).to.equal(0);
      return said;
    };
    await done(`connection add second --api openai-completions --base-url ${flow.model.url} --key-stdin`, 'key-of-the-admin\n');
    await done(
      'model add better --connection second --provider-model better-1 --context 64000 --output 8000 --input-price 1 --output-price 2',
    );
    await done('model bind better');
    const after = await person.ask('And now?');
    expect((await person.waitForTurn(after.turn.id)).status).to.equal('DONE');
    const [first, last] = [flow.model.seen[0], flow.model.seen.at(-1)];
    expect([first?.body.model, last?.body.model]).to.deep.equal(['model-of-the-spec', 'better-1']);
    expect(last?.headers.authorization).to.equal('Bearer key-of-the-admin');
    expect(await done('model list')).to.match(/^better +second +better-1 +64000 +8000 +PRICED 1 2$/m);
    await done('model budget 0');
    const refused = await person.ask('Still there?');
    const turn = await person.waitForTurn(refused.turn.id);
    expect([turn.status, turn.error?.code]).to.deep.equal(['FAILED', 'BUDGET']);
    expect(server.lines.find(({ event }) => event === 'turn refused')).to.include({ code: 'BUDGET', level: 30 });
  });
});
