/**
 * Owns: proof of how a turn ends when it does not simply succeed: stops, deadlines, lost leases, broken model streams, ends that the
 * server does not take. Real runner, real HTTP.
 * cases: C3, D1, D9, D11
 */
import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import type { PartialRequest } from '../../src/contract/agent.ts';
import { openai, openStream, storedTurn, streamTool, streamWords, tarOf, wordsIn } from '../support/agent-scripts.ts';
import { type FakeAgentServer, problem, reply } from '../support/fake-agent-server.ts';
import { RunnerRig } from '../support/runner-rig.ts';

const stopped = (stop: 'developer' | 'deadline') => (_call: unknown, response: ServerResponse) =>
  problem(response, 409, { code: 'MENTOR_TURN_STOPPED', stop });

describe('a runner ends turns', () => {
  let rig: RunnerRig;
  let fake: FakeAgentServer;

  before(async () => {
    rig = new RunnerRig();
    fake = (await rig.openRunner()).server;
  });
  beforeEach(() => fake.reset());
  after(() => rig.close());

  describe('a stop', () => {
    it('aborts the model call at once and keeps what was written', async () => {
      fake.on('model', (_call, response) => openStream(response)(openai.words('Once upon')));
      fake.on('turn/partial', (call, response) =>
        reply(response, 200, (call.body as PartialRequest).text === 'Once upon' ? { stop: 'developer' } : {}),
      );
      fake.giveRun();
      const end = await fake.end();
      expect(end.outcome).to.equal('STOPPED');
      expect(wordsIn(end.entries, 'assistant')).to.deep.equal(['Once upon']);
      expect(await fake.until(() => fake.named('model')[0]?.aborted || undefined), 'the model call is closed').to.equal(true);
    });

    it('that closes the model stream first keeps the answer which Pi took for a failed call', async () => {
      fake.on('model', (call, response) => {
        if (fake.named('model').length > 1) return stopped('developer')(call, response);
        openStream(response)(openai.words('Once upon'));
        response.socket?.end();
      });
      fake.giveRun();
      const end = await fake.end();
      expect(end.outcome).to.equal('STOPPED');
      expect(wordsIn(end.entries, 'assistant')).to.deep.equal(['Once upon']);
      expect(JSON.stringify(end.entries.at(-1)))
        .to.include('"stopReason":"aborted"')
        .and.not.to.include('errorMessage');
    });

    it('reaches a command that runs, and leaves no call without its result and no empty message', async () => {
      fake.on('model', (_call, response) => streamTool(response, 'bash', { command: 'echo begun; exec sleep 1000' }));
      // Nothing is new in the third report: it only asks.
      fake.on('turn/partial', (_call, response) =>
        reply(response, 200, fake.named('turn/partial').length > 2 ? { stop: 'developer' } : {}),
      );
      fake.giveRun();
      const end = await fake.end();
      expect(end.outcome).to.equal('STOPPED');
      expect(wordsIn(end.entries, 'toolResult')[0]).to.match(/aborted$/);
      expect(wordsIn(end.entries, 'assistant')).to.have.length(1);
    });

    it('drops a tool call that was still being written', async () => {
      fake.on('model', (_call, response) => {
        const send = openStream(response);
        send(openai.words('Let me look.'));
        send(openai.tool('read', { path: 'INDEX.md' }));
      });
      fake.on('turn/partial', (call, response) =>
        reply(response, 200, (call.body as PartialRequest).text === '' ? {} : { stop: 'developer' }),
      );
      fake.giveRun();
      const end = await fake.end();
      expect(wordsIn(end.entries, 'assistant')).to.deep.equal(['Let me look.']);
      expect(JSON.stringify(end.entries.at(-1))).not.to.include('toolCall');
    });

    it('because the time is over ends the turn as failed by its deadline', async () => {
      fake.on('model', stopped('deadline'));
      fake.giveRun();
      const end = await fake.end();
      expect([end.outcome, end.reason, wordsIn(end.entries, 'assistant')]).to.deep.equal(['FAILED', 'DEADLINE', []]);
    });
  });

  describe('a lease', () => {
    const heldOpen = (_call: unknown, response: ServerResponse): void => openStream(response)(openai.words('Once upon'));

    it('that the server says is lost ends the attempt without a further call', async () => {
      fake.on('model', heldOpen);
      fake.on('lease', (_call, response) => problem(response, 409, { code: 'MENTOR_LEASE_LOST' }));
      fake.giveRun({}, { renewEveryMs: 300 });
      const lost = fake.calls.indexOf(await fake.call('lease'));
      const later = () => fake.calls.slice(lost + 1).map((call) => call.name);
      await fake.until(() => later().find((name) => name === 'next'));
      expect(later()).to.deep.equal(['next']);
      expect(await fake.until(() => fake.named('model')[0]?.aborted || undefined)).to.equal(true);
    });

    it("that nobody renews ends the attempt by the runner's own clock, without a call", async () => {
      fake.on('model', heldOpen);
      fake.on('lease', (_call, response) => reply(response, 503, {}));
      fake.giveRun({}, { renewEveryMs: 100, leaseTtlMs: 700 });
      await fake.until(() => (fake.named('lease').length > 1 && fake.calls.at(-1)?.name === 'next') || undefined);
      expect([...fake.named('turn/end'), ...fake.named('end')]).to.deep.equal([]);
    });

    it('that is renewed keeps a slow turn alive beyond its first length', async () => {
      fake.on('lease', (_call, response) => reply(response, 200, { leaseTtlMs: 2_000, deadlineMs: 300_000 }));
      fake.on('model', async (_call, response) => {
        await fake.call('lease', 4);
        streamWords(response, ['Slow.']);
      });
      fake.giveRun({}, { renewEveryMs: 250, leaseTtlMs: 700 });
      expect((await fake.end()).outcome).to.equal('DONE');
    });
  });

  describe('a model stream', () => {
    const raw = (write: (response: ServerResponse) => Promise<void> | void) => async (_call: unknown, response: ServerResponse) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      await write(response);
      response.end();
    };
    const answered = async (): Promise<string[]> => {
      fake.giveRun();
      const end = await fake.end();
      return [end.outcome, ...wordsIn(end.entries, 'assistant')];
    };
    const whole = [openai.words('北京 '), openai.words('🟢 done'), openai.finish('stop'), openai.usage()];

    it('that ends before it is finished is never an answer (D1)', async () => {
      fake.on(
        'model',
        raw((response) => void response.write(`data: ${JSON.stringify(openai.words('Half of'))}\n\n`)),
      );
      fake.giveRun();
      const end = await fake.end();
      expect([end.outcome, end.reason, end.detail]).to.deep.equal(['FAILED', 'ERROR', 'truncated_answer']);
      expect(fake.named('model')).to.have.length(3);
    });

    it('with CRLF line ends is read alike (D11), and a last chunk of usage without choices is no text (D5)', async () => {
      fake.on(
        'model',
        raw((response) => void response.write(whole.map((event) => `data: ${JSON.stringify(event)}\r\n\r\n`).join(''))),
      );
      expect(await answered()).to.deep.equal(['DONE', '北京 🟢 done']);
    });

    it('cut inside of characters arrives byte for byte (D9)', async () => {
      fake.on(
        'model',
        raw(async (response) => {
          response.socket?.setNoDelay(true);
          for (const byte of Buffer.from(whole.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(''))) {
            await new Promise<void>((sent) => void response.write(Buffer.of(byte), () => sent()));
          }
        }),
      );
      expect(await answered()).to.deep.equal(['DONE', '北京 🟢 done']);
    });

    it('that the gateway gave up ends the turn as stalled at once, before or in the middle of the answer', async () => {
      fake.on('model', (_call, response) => problem(response, 504, { code: 'UPSTREAM_STALLED' }));
      fake.giveRun();
      const before = await fake.end();
      fake.on(
        'model',
        raw(
          (response) => void response.write(`data: ${JSON.stringify({ error: { code: 'upstream_stalled', message: 'No answer.' } })}\n\n`),
        ),
      );
      fake.giveRun();
      const middle = await fake.end(2);
      expect([before, middle].map((end) => [end.outcome, end.reason])).to.deep.equal([
        ['FAILED', 'STALLED'],
        ['FAILED', 'STALLED'],
      ]);
      expect(fake.named('model')).to.have.length(2);
    });

    it('that the gateway could not take is sent again for as long as a database needs to restart', async () => {
      fake.on('model', (_call, response) => {
        if (fake.named('model').length < 4) problem(response, 503, { code: 'DATABASE_UNAVAILABLE' });
        else streamWords(response, ['There it is.']);
      });
      expect(await answered()).to.deep.equal(['DONE', 'There it is.']);
      expect(fake.named('model'), 'Pi did not have to begin again').to.have.length(4);
    });

    it('that finds the conversation too long makes Pi shorten it once and go on; the end carries the summary', async () => {
      // Not past the trigger by our own count: only the provider knows that it is too long.
      const words = 'A long story about practices. '.repeat(900);
      const entries = [1, 2, 3].flatMap((turn) => storedTurn(turn, words));
      fake.on('model', (call, response) => {
        const isSummary = JSON.stringify(call.body).includes('context summarization assistant');
        if (fake.named('model').length === 1)
          reply(response, 400, { error: { code: 'context_length_exceeded', message: 'maximum context length is 32768 tokens' } });
        else streamWords(response, [isSummary ? '## Goal: a summary of the conversation so far' : 'Shorter now.']);
      });
      fake.giveRun({ entries });
      const end = await fake.end();
      expect([end.outcome, ...wordsIn(end.entries, 'assistant')]).to.deep.equal(['DONE', 'Shorter now.']);
      expect(end.entries.map((entry) => entry.type))
        .to.include('compaction')
        .and.not.to.include('context_edit');
      expect(JSON.stringify(fake.named('model').at(-1)?.body)).to.include('a summary of the conversation so far');
    });

    it('without any words is a failed turn, and so is a model that calls tools for ever', async () => {
      fake.on('model', (_call, response) => streamWords(response, ['  \n']));
      fake.giveRun();
      expect((await fake.end()).detail).to.equal('empty_answer');
      fake.on('model', (_call, response) => streamTool(response, 'read', { path: 'INDEX.md' }));
      fake.giveRun();
      expect((await fake.end(2)).detail).to.equal('call_limit');
      expect(fake.named('model')).to.have.length(1 + 40);
    });
  });

  describe('the end', () => {
    it('is sent again when the server could not take it, and a 409 says that it got through', async () => {
      fake.on('turn/end', (_call, response) =>
        fake.named('turn/end').length === 1 ? reply(response, 503, {}) : problem(response, 409, { code: 'MENTOR_LEASE_LOST' }),
      );
      fake.giveRun();
      const [first, second] = [await fake.end(1), await fake.end(2)];
      expect(second).to.deep.equal(first);
      await fake.until(() => fake.calls.at(-1)?.name === 'next' || undefined);
      expect(fake.named('end')).to.deep.equal([]);
    });

    it('that is too large is sent with notes instead of tool results, then as a failure without entries', async () => {
      const documents = tarOf([{ path: 'INDEX.md', data: 'x'.repeat(5_000) }]).toString('base64');
      fake.on('turn/end', (_call, response) =>
        fake.named('turn/end').length < 3 ? problem(response, 413, { code: 'BODY_TOO_LARGE' }) : reply(response, 200, {}),
      );
      fake.on('model', (_call, response) =>
        fake.named('model').length === 1 ? streamTool(response, 'read', { path: 'INDEX.md' }) : streamWords(response, ['Read.']),
      );
      fake.giveRun({ documents });
      const [whole, reduced, failure] = [await fake.end(1), await fake.end(2), await fake.end(3)];
      expect(wordsIn(whole.entries, 'toolResult')[0]).to.have.length(5_000);
      expect(wordsIn(reduced.entries, 'toolResult')[0]).to.match(
        /^\[Result of read INDEX\.md from \w{3} [\d-]+ [\d:]+ \+0[12]:00 was removed\. Read it again if you need it\.\]$/,
      );
      expect(wordsIn(reduced.entries, 'assistant')).to.deep.equal(wordsIn(whole.entries, 'assistant'));
      expect(failure).to.deep.include({ outcome: 'FAILED', detail: 'end_too_large', entries: [] });
    });

    it('that the server refuses becomes a failure, and a context that cannot be used does, too', async () => {
      fake.on('turn/end', (_call, response) =>
        fake.named('turn/end').length === 1 ? problem(response, 400, { code: 'BAD_REQUEST' }) : reply(response, 200, {}),
      );
      fake.giveRun();
      expect(await fake.end(2)).to.deep.include({ outcome: 'FAILED', detail: 'end_refused' });
      fake.giveRun({ documents: tarOf([{ path: '../outside', data: 'x' }]).toString('base64') });
      expect(await fake.end(3)).to.deep.include({ outcome: 'FAILED', detail: 'context_unavailable' });
      expect(fake.named('model')).to.have.length(1);
    });
  });
});
