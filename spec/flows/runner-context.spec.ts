/**
 * Owns: proof that a turn can look further than its fixed documents: item documents, loaded repositories and a search of the
 * conversation, and what readers see meanwhile. Real runner, real Pi, real HTTP, a scripted model.
 * Does not own: hostile archives and paths (spec/rules/loads.spec.ts, spec/rules/context-folder.spec.ts).
 */
import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import type { PartialRequest, SearchHit } from '../../src/contract/agent.ts';
import { LIMITS } from '../../src/contract/limits.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import { openai, openStream, streamTool, streamWords, tarOf, wordsIn } from '../support/agent-scripts.ts';
import { type FakeAgentServer, problem, reply, sendLoad } from '../support/fake-agent-server.ts';
import { RunnerRig } from '../support/runner-rig.ts';

type ToolCall = readonly [name: string, args: object];

describe('a turn looks further', () => {
  let rig: RunnerRig;
  let fake: FakeAgentServer;

  before(async () => {
    rig = new RunnerRig();
    fake = (await rig.openRunner()).server;
  });
  beforeEach(() => fake.reset());
  after(() => rig.close());

  /** The model makes these calls, one in each answer, and then says that it is done. Returns the results. */
  async function results(calls: readonly ToolCall[]): Promise<string[]> {
    fake.on('model', (call, response) => {
      const next = calls[fake.named('model').indexOf(call)];
      if (next === undefined) streamWords(response, ['Done.']);
      else streamTool(response, ...next);
    });
    fake.giveRun();
    const end = await fake.end();
    expect(end.outcome).to.equal('DONE');
    expect(JSON.stringify(end), 'no path of this machine').not.to.include(rig.runtimeDir);
    return wordsIn(end.entries, 'toolResult');
  }
  /** All calls in one answer, which Pi runs at the same time. */
  async function together(calls: readonly ToolCall[]): Promise<string[]> {
    fake.on('model', (_call, response) => {
      if (fake.named('model').length > 1) return streamWords(response, ['Done.']);
      const send = openStream(response);
      calls.forEach(([name, args], index) => {
        const event = openai.tool(name, args, `call_${index}`);
        const [choice] = event.choices;
        const [made] = choice?.delta.tool_calls ?? [];
        if (made) made.index = index;
        send(event);
      });
      send(openai.finish('tool_calls'));
      response.end('data: [DONE]\n\n');
    });
    fake.giveRun();
    return wordsIn((await fake.end()).entries, 'toolResult');
  }

  describe('search_conversation', () => {
    const search = (args: object): ToolCall => ['search_conversation', args];
    const hit = (changes: Partial<SearchHit> = {}): SearchHit => ({
      entryId: uuidv7(),
      conversationId: uuidv7(),
      kind: 'answer',
      at: 'Thu 2026-10-08 09:12 Europe/Berlin',
      text: 'We talked about 🟢 tests.',
      ...changes,
    });

    it('shows each entry with the id that cites it, and says when there are more', async () => {
      const hits = [hit(), hit({ kind: 'question', text: 'What about tests?' })];
      fake.on('turn/search', (_call, response) => reply(response, 200, { hits, truncated: true }));
      const [text] = await results([search({ query: 'tests', scope: 'main' })]);
      expect(fake.named('turn/search').map((call) => call.body)).to.deep.equal([{ query: 'tests', scope: 'main' }]);
      expect(text?.split('\n\n')).to.deep.equal([
        '2 entries were found, best first.',
        `[${hits[0]?.entryId}] answer, Thu 2026-10-08 09:12 Europe/Berlin, in another part of the conversation\nWe talked about 🟢 tests.`,
        `[${hits[1]?.entryId}] question, Thu 2026-10-08 09:12 Europe/Berlin, in another part of the conversation\nWhat about tests?`,
        'There are more. Use more particular words to see them.',
      ]);
    });

    it('looks in the whole tree unless told, and says plainly that it found nothing', async () => {
      fake.on('turn/search', (_call, response) => reply(response, 200, { hits: [], truncated: false }));
      expect(await results([search({ query: 'tests' })])).to.deep.equal(['Nothing was found. Try fewer or other words.']);
      expect(fake.named('turn/search')[0]?.body).to.deep.equal({ query: 'tests', scope: 'tree' });
    });

    it('refuses a search without words or with too many, without asking the server', async () => {
      const long = 'x'.repeat(LIMITS.searchQueryMaxChars);
      fake.on('turn/search', (_call, response) => reply(response, 200, { hits: [], truncated: false }));
      await results([search({ query: ' ' }), search({ query: `${long}x` }), search({ query: 'x', scope: 'all' }), search({ query: long })]);
      expect(fake.named('turn/search').map((call) => call.body)).to.deep.equal([{ query: long, scope: 'tree' }]);
    });

    it('is answered in words of ours when the server refuses, and tried again when it cannot answer', async () => {
      fake.on('turn/search', (_call, response) =>
        fake.named('turn/search').length === 1
          ? problem(response, 422, { code: 'PROPOSAL_REFUSED', detail: 'Words of the server.' })
          : fake.named('turn/search').length === 2
            ? reply(response, 503, {})
            : reply(response, 200, { hits: [], truncated: false }),
      );
      const [refused, again] = await results([search({ query: 'a' }), search({ query: 'b' })]);
      expect([refused, again]).to.deep.equal([
        'This conversation cannot be searched here.',
        'Nothing was found. Try fewer or other words.',
      ]);
    });

    it('ends the attempt when its turn was stopped', async () => {
      fake.on('model', (_call, response) => streamTool(response, 'search_conversation', { query: 'x' }));
      fake.on('turn/search', (_call, response) => problem(response, 409, { code: 'MENTOR_TURN_STOPPED', stop: 'developer' }));
      fake.giveRun();
      expect((await fake.end()).outcome).to.equal('STOPPED');
    });
  });

  describe('item documents', () => {
    const PATH = 'inputs/context/issue/12.json';
    const read = (path: string): ToolCall => ['read', { path }];

    it('are fetched by the first read and are files for bash from then on', async () => {
      fake.on('turn/sandbox/document', (_call, response) => reply(response, 200, { path: PATH, content: '{"title":"Flaky"}' }));
      const texts = await results([
        read(PATH),
        read(`/workspace/work/${PATH}`),
        ['bash', { command: `cat ${PATH}; ls inputs/context/issue` }],
      ]);
      expect(texts).to.deep.equal(['{"title":"Flaky"}', '{"title":"Flaky"}', '{"title":"Flaky"}12.json']);
      expect(fake.named('turn/sandbox/document').map((call) => call.body)).to.deep.equal([{ path: PATH }]);
    });

    it('are fetched once for reads at the same time, and anew in the next turn', async () => {
      fake.on('turn/sandbox/document', (_call, response) => reply(response, 200, { path: PATH, content: '{}' }));
      expect(await together([read(PATH), read(PATH), read(PATH)])).to.deep.equal(['{}', '{}', '{}']);
      expect(fake.named('turn/sandbox/document')).to.have.length(1);
      fake.reset();
      fake.on('turn/sandbox/document', (_call, response) => problem(response, 404, { code: 'DOCUMENT_NOT_FOUND', detail: 'Words.' }));
      const [text] = await results([read(PATH)]);
      expect(text).to.match(/^There is no such document\./);
    });

    it('may have 256 KiB, and not one byte more', async () => {
      const sizes = [LIMITS.documentMaxBytes - 1, LIMITS.documentMaxBytes, LIMITS.documentMaxBytes + 1];
      // Control characters take six bytes each in JSON.
      fake.on('turn/sandbox/document', (call, response) => {
        const size = Number(/(\d+)\.json/.exec((call.body as { path: string }).path)?.[1]);
        reply(response, 200, { path: '', content: '\u0001'.repeat(size) });
      });
      const texts = await results(
        sizes
          .map((size) => ['bash', { command: `wc -c < inputs/context/sized/${size}.json` }] as const)
          .flatMap((count, index) => [read(`inputs/context/sized/${sizes[index]}.json`), count]),
      );
      expect([texts[1], texts[3]]).to.deep.equal([String(sizes[0]), String(sizes[1])]);
      expect(texts[4]).to.equal('The document is too large to be read.');
    });
  });

  describe('load_context', () => {
    const load = (path = 'repos/heph'): ToolCall => ['load_context', { path }];
    const archive = tarOf([
      { path: 'src/main.ts', data: 'export {};' },
      { path: 'README.md', data: '# Heph' },
    ]);
    const answers = (changes: Parameters<typeof sendLoad>[2] = {}) =>
      fake.on('turn/sandbox/load', (_call, response: ServerResponse) => sendLoad(response, archive, changes));

    it('puts a repository into the folder, tells its version and what its summary command prints, and its files can be read', async () => {
      answers({ summary: ['sh', '-c', 'pwd; ls; env | cut -d= -f1 | sort | xargs; echo $0', '$HOME; rm -rf /'] });
      const [text, file, denied] = await results([
        load('/workspace/work/repos/heph'),
        ['read', { path: 'repos/heph/src/main.ts' }],
        ['read', { path: 'repos/heph/../../../etc/passwd' }],
      ]);
      expect(fake.named('turn/sandbox/load').map((call) => call.body)).to.deep.equal([{ path: 'repos/heph' }]);
      const [head, summary = ''] = text?.split('\n\n') ?? [];
      expect(head).to.equal('Loaded repos/heph at version c0ffee. Its files are under /workspace/work/repos/heph, read-only.');
      const [cwd, readme, src, variables = '', arg] = summary.split('\n');
      expect([cwd, readme, src, arg]).to.deep.equal(['/workspace/work/repos/heph', 'README.md', 'src', '$HOME; rm -rf /']);
      expect(variables.split(' ').filter((name) => !['HOME', 'LANG', 'PATH', 'PWD', 'OLDPWD', 'SHLVL', '_'].includes(name))).to.deep.equal(
        [],
      );
      expect(file).to.equal('export {};');
      expect(denied).to.include('outside the context folder');
    });

    it('says so when the summary command fails; the load stays', async () => {
      answers({ summary: ['sh', '-c', 'echo begun; exit 3'] });
      const [text, file] = await results([load(), ['read', { path: 'repos/heph/README.md' }]]);
      expect(text).to.include('Loaded repos/heph').and.include('begun\n\nCommand exited with code 3');
      expect(file).to.equal('# Heph');
    });

    it('is gone in the next turn', async () => {
      answers();
      await results([load()]);
      fake.reset();
      const [text] = await results([['bash', { command: 'ls' }]]);
      expect(text).to.equal('(no output)');
    });

    it('runs one load at a time', async () => {
      let running = 0;
      let most = 0;
      fake.on('turn/sandbox/load', async (_call, response) => {
        running += 1;
        most = Math.max(most, running);
        await new Promise((resolve) => setImmediate(resolve));
        running -= 1;
        sendLoad(response, archive, {});
      });
      const texts = await together([load('repos/a'), load('repos/b'), load('repos/c')]);
      expect(texts.every((text) => text.startsWith('Loaded'))).to.equal(true);
      expect([most, fake.named('turn/sandbox/load').length]).to.deep.equal([1, 3]);
    });

    it('refuses an archive that is not what it declares, and the turn goes on', async () => {
      answers({ sha256: '0'.repeat(64) });
      const [text, listing] = await results([load(), ['bash', { command: 'ls -A' }]]);
      expect(text).to.equal('The load could not be used: its archive has another checksum than it declares. Nothing was loaded.');
      expect(listing).to.equal('(no output)');
    });

    it('says plainly what a refusal means, never in words of the server', async () => {
      const refusals: readonly (readonly [number, RegExp])[] = [
        [404, /^There is nothing to load under that path\./],
        [422, /^That cannot be loaded: .* or this turn has made all of its 5 loads\.$/],
        [409, /^That cannot be loaded: /],
        [503, /^That is not possible right now\. Try again in a moment/],
      ];
      fake.on('turn/sandbox/load', (_call, response) =>
        problem(response, refusals[fake.named('turn/sandbox/load').length - 1]?.[0] ?? 500, {
          code: 'PROPOSAL_REFUSED',
          detail: 'Words of the server.',
        }),
      );
      const texts = await results(refusals.map(() => load()));
      for (const [index, [status, words]] of refusals.entries()) expect(texts[index], String(status)).to.match(words);
      expect(fake.named('turn/sandbox/load'), 'a load is never repeated by itself').to.have.length(refusals.length);
    });

    it('is a plain failure when the server breaks off in the middle, or does not say what it sends', async () => {
      fake.on('turn/sandbox/load', (_call, response) => {
        if (fake.named('turn/sandbox/load').length > 1) return void response.writeHead(200).end(archive);
        response.on('error', () => undefined);
        sendLoad(Object.assign(response, { end: () => response.write(archive.subarray(0, 700), () => response.destroy()) }), archive, {});
      });
      const [broken, unnamed] = await results([load(), load()]);
      expect(broken).to.equal('The load could not be used. Nothing was loaded.');
      expect(unnamed).to.match(/^That is not possible right now/);
    });

    it('ends with the turn when it is stopped', async () => {
      fake.on('model', (_call, response) => streamTool(response, 'load_context', { path: 'repos/heph' }));
      fake.on('turn/sandbox/load', () => undefined);
      fake.on('turn/partial', (_call, response) =>
        reply(response, 200, fake.named('turn/sandbox/load').length > 0 ? { stop: 'developer' } : {}),
      );
      fake.giveRun();
      expect((await fake.end()).outcome).to.equal('STOPPED');
      expect(await fake.until(() => fake.named('turn/sandbox/load')[0]?.aborted || undefined)).to.equal(true);
    });

    it('and the other tools show readers what is going on, at least once each', async () => {
      answers();
      fake.on('turn/search', (_call, response) => reply(response, 200, { hits: [], truncated: false }));
      const stages = (): (string | null)[] => fake.named('turn/partial').map((call) => (call.body as PartialRequest).stage);
      const script: readonly (readonly [ToolCall, string])[] = [
        [load(), 'Loading the repository…'],
        [['read', { path: 'repos/heph/README.md' }], 'Reading the repository…'],
        [['search_conversation', { query: 'x' }], 'Looking back through this conversation…'],
      ];
      fake.on('model', async (call, response) => {
        const nth = fake.named('model').indexOf(call);
        // Each tool is long over when the next answer begins, and its stage was shown all the same.
        if (nth > 0) await fake.until(() => stages().includes(script[nth - 1]?.[1] ?? null) || undefined);
        const next = script[nth];
        if (next === undefined) streamWords(response, ['Done.']);
        else streamTool(response, ...next[0]);
      });
      fake.giveRun();
      expect((await fake.end()).outcome).to.equal('DONE');
    });
  });
});
