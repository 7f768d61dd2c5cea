/**
 * Owns: proof of what the runner writes down about a turn: one line for each model call and each tool call, with names, outcomes and durations,
 * and no word of a person, a model, a tool or a file (seed, "Stop and deadline"). And that it counts what it reports. Real runner, real HTTP.
 */
import { expect } from 'chai';
import type { PartialRequest } from '../../src/contract/agent.ts';
import { streamTool, streamWords } from '../support/agent-scripts.ts';
import { NotedLog } from '../support/noted-log.ts';
import { RunnerRig } from '../support/runner-rig.ts';

describe('the log of a runner', function () {
  this.timeout(60_000);
  const rig = new RunnerRig();
  after(() => rig.close());

  it('has one line for each model call and each tool call: which tool, how it ended, how long it took, and never the words', async () => {
    const log = new NotedLog();
    const { server: fake } = await rig.openRunner({ log });
    const calls = [
      ['bash', { command: 'echo marzipan' }],
      ['read', { path: 'inputs/context/marzipan.json' }],
      ['marzipan_tool', { marzipan: true }],
    ] as const;
    fake.on('model', (_call, response) => {
      const [name, args] = calls[fake.named('model').length - 1] ?? [];
      if (name === undefined || args === undefined) streamWords(response, ['All ', 'marzipan.']);
      else streamTool(response, name, args);
    });
    fake.giveRun();
    expect((await fake.end()).outcome).to.equal('DONE');
    const facts = (event: string) =>
      log.of(event).map(({ level, tool, outcome }) => ({ level, ...(tool === undefined ? {} : { tool }), outcome }));
    expect(facts('tool_call')).to.deep.equal([
      { level: 'info', tool: 'bash', outcome: 'ok' },
      { level: 'info', tool: 'read', outcome: 'error' },
      { level: 'info', tool: 'unknown', outcome: 'error' },
    ]);
    expect(facts('model_call').map(({ outcome }) => outcome)).to.deep.equal(['toolUse', 'toolUse', 'toolUse', 'stop']);
    for (const line of [...log.of('tool_call'), ...log.of('model_call')]) {
      expect(line).to.include.keys('runId', 'sandboxId');
      expect(line['durationMs']).to.be.a('number').and.at.least(0);
    }
    expect(JSON.stringify(log.lines)).to.not.include('marzipan');
  });
});

describe('the reports of a runner', function () {
  this.timeout(60_000);
  const rig = new RunnerRig();
  after(() => rig.close());

  it('are counted anew in each attempt, so that servers know one that was overtaken by a later one', async () => {
    const { server: fake } = await rig.openRunner();
    for (let attempt = 0; attempt < 2; attempt++) {
      fake.reset();
      fake.on('model', (_call, response) => streamTool(response, 'bash', { command: 'sleep 0.6' }));
      fake.giveRun();
      await fake.until(() => fake.named('turn/partial').length > 2 || undefined);
      fake.on('model', (_call, response) => streamWords(response, ['Done.']));
      expect((await fake.end()).outcome).to.equal('DONE');
      const counts = fake.named('turn/partial').map(({ body }) => (body as PartialRequest).nth);
      expect(counts).to.deep.equal(counts.map((_, n) => n + 1));
    }
  });
});
