/**
 * What a model sees of the past: stored rows rendered as a Pi path (seed, "The path"), the prompt, the situation and the documents.
 */
import { expect } from 'chai';
import type { PathRow, TurnFacts } from '../../db/context/read-path.ts';
import { buildPath, FAILED_MARKER, questionText, STOPPED_MARKER } from '../../src/context/path.ts';
import { situation } from '../../src/context/situation.ts';
import { systemPrompt } from '../../src/context/system-prompt.ts';
import { messagePrefix, roughDuration } from '../../src/context/times.ts';
import { type ConversationId, type EntryId, type TurnId, uuidv7 } from '../../src/kernel/ids.ts';

const BERLIN = 'Europe/Berlin';
const AT = '2026-10-08T07:12:00.000Z';

function row(kind: PathRow['kind'], more: Partial<PathRow> = {}): PathRow {
  return {
    id: uuidv7(),
    turn_id: null,
    kind,
    surface: 'app',
    text: null,
    payload: null,
    created_at: AT,
    erased: false,
    status: 'DONE',
    ...more,
  };
}

function question(text: string, more: Partial<PathRow> = {}): PathRow {
  return row('QUESTION', { text, ...more });
}

function message(kind: PathRow['kind'], body: Record<string, unknown>, more: Partial<PathRow> = {}): PathRow {
  const id = uuidv7();
  const entry = { type: 'message', id, parentId: 'whatever it was', timestamp: AT, message: body };
  return row(kind, { id, payload: JSON.stringify(entry), ...more });
}

const text = (words: string) => ({ type: 'text', text: words });
const call = (id: string) => ({ type: 'toolCall', id, name: 'read', arguments: {} });
const assistant = (content: unknown[], more: Partial<PathRow> = {}, stopReason = 'stop') =>
  message('ANSWER', { role: 'assistant', content, stopReason }, more);
const result = (toolCallId: string) => message('TOOL_RESULT', { role: 'toolResult', toolCallId, content: [text('…')] });

type Rendered = ReturnType<typeof buildPath>[number] & {
  message: { role: string; content: { type: string; text: string }[]; stopReason: string };
};
const render = (rows: readonly PathRow[]) => buildPath(rows, BERLIN) as Rendered[];

describe('the path of a conversation', () => {
  it('dates each question in the zone of its account, and says when it was written in Slack', () => {
    expect(messagePrefix(AT, BERLIN, 'slack')).to.equal('[Thu 2026-10-08 09:12 Europe/Berlin · Slack]');
    expect(questionText({ text: 'Why?', created_at: AT, surface: 'app' }, 'UTC')).to.equal('[Thu 2026-10-08 07:12 UTC]\nWhy?');
  });

  it('is one chain: each entry’s parent is the one before it', () => {
    const path = render([question('one'), assistant([text('1')]), question('two'), assistant([text('2')])]);
    expect(path.map((entry) => entry.parentId)).to.deep.equal([null, ...path.slice(0, -1).map((entry) => entry.id)]);
  });

  it('has the same bytes each time', () => {
    const rows = [question('one'), assistant([call('a')]), result('a'), assistant([text('1')])];
    expect(JSON.stringify(render(rows))).to.equal(JSON.stringify(render(structuredClone(rows))));
  });

  it('keeps a stopped answer, marked, as a finished one, without the call that has no result', () => {
    const turn = { status: 'STOPPED', turn_id: 't' } as const;
    const rows = [question('go', turn), assistant([text('half an'), call('x')], turn, 'aborted')];
    const [, answer] = render(rows);
    expect(answer?.message.stopReason).to.equal('stop');
    expect(answer?.message.content.map((block) => block.text)).to.deep.equal(['half an', STOPPED_MARKER]);
  });

  it('marks the last answer of a stopped turn, also one that was finished or that called a tool', () => {
    const turn = { status: 'STOPPED', turn_id: 't' } as const;
    const rows = [
      question('go', turn),
      assistant([text('first'), call('a')], turn),
      { ...result('a'), ...turn },
      assistant([text('last')], turn),
    ];
    expect(
      render(rows)
        .at(-1)
        ?.message.content.map((block) => block.text),
    ).to.deep.equal(['last', STOPPED_MARKER]);
    const inTool = render(rows.slice(0, 3));
    expect(inTool.map((entry) => entry.message.role)).to.deep.equal(['user', 'assistant']);
    expect(inTool[1]?.message.content.map((block) => block.text)).to.deep.equal(['first', STOPPED_MARKER]);
  });

  it('marks the question of a failed turn', () => {
    const [asked] = render([question('go', { status: 'FAILED' })]);
    expect(asked?.message.content[0]?.text).to.match(new RegExp(`go\n\n${FAILED_MARKER.replaceAll(/[[\]]/g, '\\$&')}$`));
  });

  it('never shows a model an empty answer (a turn that died before its first word)', () => {
    expect(render([question('one'), assistant([]), question('two')]).map((entry) => entry.message.role)).to.deep.equal(['user', 'user']);
  });

  it('drops a tool result whose call is gone', () => {
    const path = render([question('go'), result('lost'), assistant([call('a')]), result('a'), assistant([text('done')])]);
    expect(path.map((entry) => entry.message.role)).to.deep.equal(['user', 'assistant', 'toolResult', 'assistant']);
  });

  it('keeps the place of an erased question without its words', () => {
    const [asked] = render([question('', { text: null, erased: true })]);
    expect(asked?.message.content[0]?.text).to.not.equal('');
  });
});

describe('the situation of a turn', () => {
  const facts: TurnFacts = {
    conversationId: uuidv7() as ConversationId,
    turnId: uuidv7() as TurnId,
    questionEntryId: uuidv7() as EntryId,
    surface: 'app',
    page: { url: 'https://example.test/issue/1', title: 'Issue 1' },
    now: '2026-10-05T22:30:00.000Z',
    previousAt: '2026-10-05T19:30:00.000Z',
    displayName: 'Ada',
    timeZone: BERLIN,
    workspaceName: 'Home',
    workspaceSlug: 'home',
    admission: null,
  };

  it('names the day as it is where the developer is, and last week', () => {
    const said = situation(facts);
    expect(said)
      .to.match(/^<situation>\n/)
      .and.match(/<\/situation>$/);
    expect(said).to.include('Now: Tue 2026-10-06 00:30 Europe/Berlin.');
    expect(said).to.include('Today is Tue 2026-10-06, yesterday was Mon 2026-10-05.');
    expect(said).to.include('This week is Mon 2026-10-05 to Sun 2026-10-11, last week was Mon 2026-09-28 to Sun 2026-10-04.');
    expect(said).to.include('Time since the last message: 3 hours.').and.include('Ada').and.include('Issue 1');
    expect(said).to.include('Start with read INDEX.md: it lists what this turn can read.');
  });

  it('counts rough durations in the largest unit', () => {
    expect([0, 60_000, 3_600_000, 172_800_000].map(roughDuration)).to.deep.equal(['less than a minute', '1 minute', '1 hour', '2 days']);
  });

  it('sends at most 15 KiB of instructions', () => {
    expect(Buffer.byteLength(systemPrompt('Hephaestus'))).to.be.below(15 * 1024);
  });
});
