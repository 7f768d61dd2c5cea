/**
 * Owns: proof that a runner answers a turn: real processes started by the real local host, real HTTP to an agent listener whose
 * answers a spec scripts. What the model and the ledger get, the tools, and what readers see meanwhile.
 * Does not own: how turns end otherwise (runner-endings.spec.ts), the life of the processes (runner-life.spec.ts), and the context
 * folder in detail (spec/rules/context-folder.spec.ts).
 * cases: C10
 */
import { join } from 'node:path';
import { expect } from 'chai';
import type { PartialRequest, PiEntry } from '../../src/contract/agent.ts';
import {
  openai,
  openStream,
  storedTurn,
  streamAnthropic,
  streamResponses,
  streamTool,
  streamWords,
  tarOf,
  transcriptOf,
  wordsIn,
} from '../support/agent-scripts.ts';
import { type FakeAgentServer, type Responder, reply } from '../support/fake-agent-server.ts';
import { processGone, RunnerRig } from '../support/runner-rig.ts';

/** Variables that bash sets itself. */
const BASH_OWN = new Set(['OLDPWD', 'PWD', 'SHLVL', '_']);

describe('a runner answers turns', () => {
  let rig: RunnerRig;
  let fake: FakeAgentServer;

  before(async () => {
    rig = new RunnerRig();
    fake = (await rig.openRunner()).server;
  });
  beforeEach(() => fake.reset());
  after(() => rig.close());

  describe('what the model and the ledger get', () => {
    const HISTORY = storedTurn(1, 'Hephaestus.');

    it('an OpenAI-compatible model sees system prompt, tools, history, question and situation, in this order', async () => {
      const { context, run } = fake.giveRun({ entries: HISTORY });
      const end = await fake.end();
      const call = await fake.call('model');
      expect(call.path).to.equal('/internal/llm/v1/chat/completions');
      expect(call.headers).to.include({ authorization: 'Bearer the-credential', 'x-agent-run': run.id, 'x-agent-epoch': '1' });
      expect(transcriptOf(call)).to.deep.equal([
        { role: 'system', text: context.systemPrompt },
        { role: 'user', text: 'Question 1?' },
        { role: 'assistant', text: 'Hephaestus.' },
        { role: 'user', text: context.prompt },
        { role: 'user', text: context.situation },
      ]);
      expect((call.body as { tools: { function: { name: string } }[] }).tools.map((tool) => tool.function.name)).to.deep.equal([
        'read',
        'bash',
        'load_context',
        'search_conversation',
      ]);
      expect(end.outcome).to.equal('DONE');
      expect(wordsIn(end.entries, 'assistant')).to.deep.equal(['It works.']);
      expect(wordsIn(end.entries, 'user')).to.deep.equal([]);
      expect(JSON.stringify(end.entries)).not.to.include(context.situation);
      const answer = end.entries.at(-1) as PiEntry;
      expect(answer.parentId).to.equal(context.questionEntryId);
      expect(answer.id).to.match(/^[0-9a-f]{8}-[0-9a-f]{4}-7/);
    });

    it('the next turn continues from what the end before it stored, and its request begins with the same bytes', async () => {
      const first = fake.giveRun();
      const stored = (await fake.end()).entries;
      const question = { type: 'message', id: first.context.questionEntryId, parentId: null, timestamp: '2026-10-08T07:00:00.000Z' };
      const asked = { ...question, message: { role: 'user', content: [{ type: 'text', text: first.context.prompt }], timestamp: 1 } };
      const path = [asked, ...stored].map((entry, index, all) => ({ ...entry, parentId: all[index - 1]?.id ?? null })) as PiEntry[];
      fake.giveRun({ entries: path, prompt: 'And now?' });
      const end = await fake.end(2);
      const requests = fake.named('model').map((call) => call.body as { messages: unknown[]; tools: unknown[] });
      expect(requests[1]?.messages.slice(0, 2)).to.deep.equal(requests[0]?.messages.slice(0, 2));
      expect(requests[1]?.tools).to.deep.equal(requests[0]?.tools);
      expect(
        transcriptOf(await fake.call('model', 2))
          .map((message) => message.text)
          .slice(1, 4),
      ).to.deep.equal([first.context.prompt, 'It works.', 'And now?']);
      expect(wordsIn(end.entries, 'system'), 'an unchanged prompt is not stored again').to.deep.equal([]);
    });

    it('an Anthropic model gets the same, with the cache breakpoint on the message before the situation', async () => {
      fake.on('model', (_call, response) => streamAnthropic(response, ['Hello ', 'there.']));
      const { context } = fake.giveRun({
        entries: HISTORY,
        model: { id: 'other', api: 'anthropic-messages', contextTokens: 32_768, outputTokens: 4_096 },
      });
      const end = await fake.end();
      const call = await fake.call('model');
      expect(call.path).to.match(/^\/internal\/llm\/v1\/messages/);
      expect(call.headers).to.include({ authorization: 'Bearer the-credential' }).and.not.to.have.property('x-api-key');
      const { system, messages } = call.body as {
        system: { text: string }[];
        messages: { content: { text: string; cache_control?: object }[] }[];
      };
      expect(system.map((block) => block.text)).to.deep.equal([context.systemPrompt]);
      expect(transcriptOf(call).map((message) => message.text)).to.deep.equal([
        'Question 1?',
        'Hephaestus.',
        context.prompt,
        context.situation,
      ]);
      expect(messages.map((message) => JSON.stringify(message).includes('cache_control'))).to.deep.equal([false, false, true, false]);
      expect(end.outcome).to.equal('DONE');
      expect(wordsIn(end.entries, 'assistant')).to.deep.equal(['Hello there.']);
    });

    it('a model behind the Responses API answers too', async () => {
      fake.on('model', (_call, response) => streamResponses(response, ['One ', 'more.']));
      fake.giveRun({ model: { id: 'third', api: 'openai-responses', contextTokens: 32_768, outputTokens: 4_096 } });
      const end = await fake.end();
      expect((await fake.call('model')).path).to.equal('/internal/llm/v1/responses');
      expect([end.outcome, ...wordsIn(end.entries, 'assistant')]).to.deep.equal(['DONE', 'One more.']);
    });

    it('the gateway may be a unix socket', async () => {
      const { server } = await rig.openRunner({}, { socketPath: join(rig.runtimeDir, 'gw.sock') });
      server.giveRun();
      expect((await server.end()).outcome).to.equal('DONE');
    });
  });

  describe('the context folder', () => {
    const documents = tarOf([
      { path: 'INDEX.md', data: 'user.json: who asks' },
      { path: 'inputs/context/user.json', data: '{"name":"Ada"}' },
    ]).toString('base64');

    it('read opens a document of the turn, and nothing outside of its folder', async () => {
      const wanted = ['INDEX.md', '/workspace/work/inputs/context/user.json', '/etc/passwd', '../../etc/passwd', 'missing.md'];
      fake.on('model', (call, response) => {
        const path = wanted[fake.named('model').indexOf(call)];
        return path === undefined ? streamWords(response, ['Done.']) : streamTool(response, 'read', { path });
      });
      fake.giveRun({ documents });
      const end = await fake.end();
      const [index, user, ...refused] = wordsIn(end.entries, 'toolResult');
      expect([index, user]).to.deep.equal(['user.json: who asks', '{"name":"Ada"}']);
      expect(refused.slice(0, 2)).to.satisfy((texts: string[]) => texts.every((text) => text.includes('outside the context folder')));
      expect(refused[2]).to.include('There is no file /workspace/work/missing.md');
      expect(JSON.stringify(end)).not.to.include(rig.runtimeDir).and.not.to.include('structuredContent');
    });

    it('bash runs in the folder with an empty environment, and its files are gone in the next turn', async () => {
      const commands = ['env | cut -d= -f1 | sort | xargs', 'touch /workspace/work/left; pwd; ls', 'exit 3'];
      const script: Responder = (call, response) => {
        const command = commands[fake.named('model').indexOf(call)];
        if (command === undefined) streamWords(response, ['Done.']);
        else streamTool(response, 'bash', { command });
      };
      fake.on('model', script);
      fake.giveRun({ documents });
      const [environment, files, failure] = wordsIn((await fake.end()).entries, 'toolResult');
      expect(environment?.split(' ').filter((name) => !BASH_OWN.has(name))).to.deep.equal(['HOME', 'LANG', 'PATH']);
      expect(files?.split('\n')).to.deep.equal(['/workspace/work', 'INDEX.md', 'inputs', 'left']);
      expect(failure).to.include('exited with code 3');
      fake.reset();
      commands.splice(0, commands.length, 'ls');
      fake.on('model', script);
      fake.giveRun({ documents });
      expect(wordsIn((await fake.end()).entries, 'toolResult')).to.deep.equal(['INDEX.md\ninputs']);
    });

    it('a command that takes too long is ended, what it left in the background too, and a long output is cut', async () => {
      const calls = [
        { command: 'sleep 1000 & echo $!' },
        { command: 'echo slow; exec sleep 1000', timeout: 0.2 },
        { command: 'seq 1 100000' },
      ];
      fake.on('model', (call, response) => {
        const args = calls[fake.named('model').indexOf(call)];
        if (args === undefined) streamWords(response, ['Done.']);
        else streamTool(response, 'bash', args);
      });
      fake.giveRun();
      const [background = '', slow, long = ''] = wordsIn((await fake.end()).entries, 'toolResult');
      await processGone(Number(background));
      expect(slow).to.match(/^slow\n\nCommand timed out after 0.2 seconds/);
      expect(long).to.match(/\n100000\n\n\[Showing the end of [\d.]+KB of output\.\]$/);
      expect(Buffer.byteLength(long)).to.be.lessThan(52 * 1024);
    });

    it('bash is declared but refuses where it may not run', async () => {
      const { server } = await rig.openRunner({ bash: false });
      server.on('model', (_call, response) =>
        server.named('model').length === 1 ? streamTool(response, 'bash', { command: 'id' }) : streamWords(response, ['So be it.']),
      );
      server.giveRun();
      const end = await server.end();
      expect(wordsIn(end.entries, 'toolResult')[0]).to.match(/^bash is not available on this installation/);
      expect(end.outcome).to.equal('DONE');
    });
  });

  describe('what readers see while the answer is written', () => {
    it('deltas reassemble to the final words, also after a server asked for everything again', async () => {
      const words = ['Grüße ', '👩‍👩‍👧‍👦', ' an', ' alle.'];
      fake.on('model', async (_call, response) => {
        const send = openStream(response);
        for (const word of words) {
          send(openai.words(word));
          await fake.until(() => partials().find((partial) => partial.text.endsWith(word)));
        }
        send(openai.finish('stop'));
        response.end('data: [DONE]\n\n');
      });
      fake.on('turn/partial', (call, response) => reply(response, 200, { resync: (call.body as PartialRequest).text === words[1] }));
      const partials = (): PartialRequest[] => fake.named('turn/partial').map((call) => call.body as PartialRequest);
      fake.giveRun();
      const end = await fake.end();
      expect(partials().filter((partial) => partial.full === true)).to.have.length(1);
      let text = '';
      for (const partial of partials()) {
        expect(partial.offset).to.equal(partial.full === true ? 0 : text.length);
        text = text.slice(0, partial.offset) + partial.text;
      }
      expect(text).to.equal(words.join(''));
      expect(end.lastPartial).to.deep.equal({ text, stage: 'Thinking…' });
      expect(wordsIn(end.entries, 'assistant')).to.deep.equal([text]);
    });

    it('a call that Pi tries again leaves nothing of its first try, neither for readers nor in the ledger', async () => {
      const shown = (): string[] => fake.named('turn/partial').map((call) => (call.body as PartialRequest).text);
      fake.on('model', async (_call, response) => {
        const send = openStream(response);
        send(openai.words(fake.named('model').length === 1 ? 'Half of' : 'All of it.'));
        if (fake.named('model').length === 1) {
          await fake.until(() => shown().find((text) => text === 'Half of'));
          response.destroy();
          return;
        }
        await fake.until(() => shown().find((text) => text === 'All of it.'));
        send(openai.finish('stop'));
        response.end('data: [DONE]\n\n');
      });
      const { context } = fake.giveRun();
      const end = await fake.end();
      expect(
        fake
          .named('turn/partial')
          .map((call) => call.body as PartialRequest)
          .find((partial) => partial.text === 'All of it.')?.full,
      ).to.equal(true);
      expect(wordsIn(end.entries, 'assistant')).to.deep.equal(['All of it.']);
      expect(end.entries.map((entry) => entry.type)).not.to.include('context_edit');
      const known = new Set([null, context.questionEntryId, ...end.entries.map((entry) => entry.id)]);
      expect(
        end.entries.filter((entry) => !known.has(entry.parentId)),
        'each entry is linked to one that the ledger has',
      ).to.deep.equal([]);
    });
  });
});
