/**
 * Two hundred turns with real processes: tools, threads, a stop, a failure, erasures, four summaries, a killed server and a second one. Each
 * request that the provider received is compared with a model of the seed's rules (spec/support/told-conversation.ts), message by message.
 * rule: R13
 */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { Conversation, Entry } from '../../src/contract/web.ts';
import { Flow } from '../support/flow.ts';
import { calls, type Hold, hold, type Seen, type StreamReply, textSteps } from '../support/model-server.ts';
import type { WebClient } from '../support/person.ts';
import { newDataDir, type ServerProcess } from '../support/server-process.ts';
import { type Line, pathOf, requestLines, summarisedCount, type Told } from '../support/told-conversation.ts';

const TURNS = 200;
const TIME_ZONE = 'Europe/Berlin';
/** The smallest window: its trigger is 24,576 tokens, and it keeps a sixth of itself. */
const WINDOW_TOKENS = 32_768;
const KEEP_TOKENS = Math.floor(WINDOW_TOKENS / 6);
const PAST_TRIGGER_TOKENS = 25_000;
const NOTE_CHARS = '[Result of read INDEX.md from Mon 2026-10-12 14:41 +02:00 was removed. Read it again if you need it.]'.length;
const ANSWER_CHARS = 800;

const FAILED_AT = 32;
const STOPPED_AT = 43;
/** After these answers the provider says that the conversation is past the trigger. */
const FULL_AFTER = [50, 100, 180];
const KILLED_AFTER = 90;
/** The answer of turn 15 and the question of turn 16 go, and with them each summary that covers them: the next turn writes a new one. */
const ERASED_AFTER = 140;
const THREADS = [
  { parentTurn: 22, askAfter: [30, 30, 30, 110] },
  { parentTurn: 112, askAfter: [120, 160, 190] },
];

interface Side {
  /** Turns of the main conversation that are on its path, then its own. */
  readonly before: readonly Told[];
  readonly own: Told[];
  /** Messages that its newest summary took, of all on its path. */
  summarised: number;
  summary: string | null;
  conversationId?: string;
  /** Its newest request. */
  sent?: { readonly want: readonly Line[]; readonly bytes: readonly string[] };
}

describe('a conversation of 200 turns', function () {
  this.timeout(600_000);
  let flow: Flow;
  let server: ServerProcess;
  let person: WebClient;
  let current: { side: Side; told: Told; usesTool: boolean; halt: Hold | null; summariesBefore: number; asked: PromiseWithResolvers<void> };
  let isFull = false;
  const main: Side = { before: [], own: [], summarised: 0, summary: null };
  const faults: string[] = [];
  const summaryBodies: string[] = [];
  const systems = new Set<string>();
  afterEach(() => flow.close());

  const fullPath = ({ before, own }: Side): Line[] => pathOf([...before, ...own], TIME_ZONE);
  const words = (name: string) => `Answer to ${name}. ${'Well said. '.repeat(80)}`.slice(0, ANSWER_CHARS).trim();

  /** What the provider must receive now. */
  function expected(): Line[] {
    const { side } = current;
    const kept = fullPath(side).slice(side.summarised);
    return side.summary === null ? kept : [`summary: ${side.summary}`, ...kept];
  }

  /** The provider: judges each request, then answers as the story wants it. */
  async function script(seen: Seen): Promise<StreamReply | { status: number; body: object }> {
    await current.asked.promise;
    const text = JSON.stringify(seen.body);
    const { side, told, usesTool, halt } = current;
    const tokens = Math.ceil(text.length / 4);
    const usage = { input: isFull ? PAST_TRIGGER_TOKENS : tokens, output: 1 };
    if (text.includes('context summarization assistant')) {
      summaryBodies.push(text);
      return { steps: textSteps(`## Goal\nThe summary before ${told.question}`), usage };
    }
    const { lines, system, situation } = requestLines(seen.body);
    systems.add(system);
    if (!situation.startsWith('<situation>')) faults.push(`${told.question}: the situation is not last`);
    if (summaryBodies.length > current.summariesBefore) summarise(side, told);
    if (usesTool && seen.toolResults.length > 0) told.result = seen.toolResults[0] ?? '';
    judge(seen.body.messages, lines.map(summaryLine));
    if (told.question.endsWith(`number ${FAILED_AT}`) && side === main) return { status: 400, body: { error: { message: 'no' } } };
    if (halt) return { steps: [{ text: 'Half an answer' }, { hold: halt }], usage };
    return usesTool && told.result === null
      ? { ...calls('read', { path: 'INDEX.md' }), usage }
      : { steps: textSteps(words(told.question), 200), usage };
  }

  /** Moves the start of the side's path to where its new summary ends, and looks whether each message that goes was summarised. */
  function summarise(side: Side, told: Told): void {
    const stored = pathOf([...side.before, ...side.own.slice(0, -1)], TIME_ZONE);
    // The last settled turn's results are verbatim, as they are for the question that follows.
    const sent = fullPath(side).slice(0, stored.length);
    const start = side.summarised;
    side.summarised = start + summarisedCount(sent.slice(start), KEEP_TOKENS, NOTE_CHARS);
    const bodies = summaryBodies.slice(current.summariesBefore).join('\n');
    for (const line of sent.slice(start, side.summarised)) {
      const [, said = ''] = /(?:^user: \[[^\]]*\]\n|^assistant: )(.*)/s.exec(line) ?? [];
      const found = bodies.includes(JSON.stringify(said.trim().split('\n')[0]?.slice(0, 100)).slice(1, -1));
      if (!said.startsWith('read ') && !found) faults.push(`${told.question}: its summary was not told "${said.slice(0, 60)}"`);
    }
    if (side.summary !== null && !bodies.includes(side.summary))
      faults.push(`${told.question}: its summary does not continue the older one`);
    side.summary = `The summary before ${told.question}`;
    current.summariesBefore = summaryBodies.length;
  }

  function summaryLine(line: Line): Line {
    const [, before] = /<summary>.*(The summary before [^\n]*).*<\/summary>/s.exec(line) ?? [];
    return before === undefined ? line : `summary: ${before}`;
  }

  /** Against the model, message by message; and against the side's request before it, byte by byte wherever the model says the same of both. */
  function judge(messages: readonly object[], got: readonly Line[]): void {
    const {
      side,
      told: { question },
    } = current;
    const want = expected();
    const at = Array.from({ length: Math.max(got.length, want.length) }).findIndex((_, index) => got[index] !== want[index]);
    if (at >= 0) faults.push(`${question}: message ${at} of ${got.length} is ${JSON.stringify(got[at])}, not ${JSON.stringify(want[at])}`);
    const bytes = messages.slice(1, -1).map((message) => JSON.stringify(message));
    const changed = side.sent?.want.findIndex((line, index) => line === want[index] && side.sent?.bytes[index] !== bytes[index]) ?? -1;
    if (changed >= 0 && side.sent?.want[0] === want[0]) faults.push(`${question}: the bytes of message ${changed} changed`);
    side.sent = { want, bytes };
  }

  async function say(side: Side, question: string, { usesTool, halt = null }: { usesTool: boolean; halt?: Hold | null }): Promise<void> {
    const fresh = { isQuestionErased: false, isAnswerErased: false, answer: null, result: null, outcome: 'RUNNING', askedAtMs: 0 } as const;
    const told: Told = { ...fresh, question };
    side.own.push(told);
    const asked = Promise.withResolvers<void>();
    current = { side, told, usesTool, halt, summariesBefore: summaryBodies.length, asked };
    const before = Date.now();
    const { turn } = await person.ask(question, side.conversationId ? { conversationId: side.conversationId } : {});
    told.askedAtMs = Date.parse(turn.createdAt);
    expect(told.askedAtMs).to.be.within(before - 1_000, Date.now() + 1_000);
    asked.resolve();
    if (halt) {
      await halt.arrived;
      await person.waitForWords(turn.id, 'Half an answer');
      await person.stop(turn.id);
      halt.release();
    }
    const { status } = await person.waitForTurn(turn.id);
    told.outcome = status as Told['outcome'];
    side.conversationId ??= turn.conversationId;
    if (status === 'DONE') told.answer = words(question);
    if (status === 'STOPPED') told.answer = 'Half an answer';
  }

  const entryOf = async (side: Side, kind: Entry['kind'], text: string): Promise<Entry> => {
    const found = (await person.entries(side.conversationId as string)).find((entry) => entry.kind === kind && entry.text === text);
    if (!found) throw new Error(`no ${kind} "${text}"`);
    return found;
  };

  /** Forks the main conversation at the answer of a turn. */
  async function fork(parentTurn: number): Promise<Side> {
    const before = main.own.slice(0, parentTurn);
    const parent = await entryOf(main, 'answer', before.at(-1)?.answer ?? '');
    const { body } = await person.send('POST', 'threads', { requestId: randomUUID(), parentEntryId: parent.id });
    const { summarised, summary } = main;
    return { before, own: [], summarised, summary, conversationId: (body as Conversation).id };
  }

  async function erase(sides: readonly Side[]): Promise<void> {
    const [answered, asked] = [main.own[14] as Told, main.own[15] as Told];
    for (const entry of [await entryOf(main, 'answer', answered.answer ?? ''), await entryOf(main, 'question', asked.question)])
      expect((await person.send('DELETE', `entries/${entry.id}`)).status).to.equal(200);
    answered.isAnswerErased = true;
    asked.isQuestionErased = true;
    for (const side of sides) Object.assign(side, { summarised: 0, summary: null });
  }

  it('sends each provider request as the seed says, message by message', async () => {
    flow = await Flow.open({ script, env: { HEPH_LLM_CONTEXT_TOKENS: String(WINDOW_TOKENS), HEPH_LLM_OUTPUT_TOKENS: '4096' } });
    const dataDir = newDataDir();
    server = await flow.server({ dataDir });
    person = flow.person(server);
    const threads: Side[] = [];
    const shortenedAt: number[] = [];
    for (let n = 1; n <= TURNS; n++) {
      const summaries = summaryBodies.length;
      isFull = FULL_AFTER.includes(n);
      await say(main, `This is question number ${n}`, { usesTool: n % 5 === 0 && !isFull, halt: n === STOPPED_AT ? hold() : null });
      isFull = false;
      if (summaryBodies.length > summaries) shortenedAt.push(n);
      for (const [t, { parentTurn, askAfter }] of THREADS.entries()) {
        if (n === parentTurn) threads[t] = await fork(parentTurn);
        for (const [q, after] of askAfter.entries())
          if (after === n) await say(threads[t] as Side, `Thread ${t} asks ${q} after ${n}`, { usesTool: q % 2 === 0 });
      }
      if (n === KILLED_AFTER) {
        await server.kill();
        server = await flow.server({ dataDir });
        person.base = `http://127.0.0.1:${server.port}`;
      }
      if (n === ERASED_AFTER) await erase([main, ...threads]);
    }
    expect(faults.slice(0, 10), `${faults.length} faults`).to.deep.equal([]);
    expect(systems.size, 'one system prompt').to.equal(1);
    expect(shortenedAt).to.deep.equal([...FULL_AFTER, ERASED_AFTER].map((n) => n + 1).toSorted((a, b) => a - b));
    const outcomes = main.own.map(({ outcome }, at) => [at + 1, outcome] as const).filter(([, outcome]) => outcome !== 'DONE');
    expect(outcomes).to.deep.equal([
      [FAILED_AT, 'FAILED'],
      [STOPPED_AT, 'STOPPED'],
    ]);
  });
});
