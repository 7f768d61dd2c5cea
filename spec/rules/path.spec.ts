/**
 * What a model sees of the past: stored rows rendered as a Pi path (seed, "The path"), and the prompt.
 */
import { expect } from 'chai';
import type { PathRow } from '../../db/context/read-path.ts';
import { buildPath } from '../../src/context/path.ts';
import { ERASED_MARKER, FAILED_MARKER, questionText, STOPPED_MARKER } from '../../src/context/render.ts';
import { messagePrefix } from '../../src/context/times.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';

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
    edited_at: null,
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
    expect(answer?.message.content.map((block) => block.text)).to.deep.equal(['half an', `\n\n${STOPPED_MARKER}`]);
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
    ).to.deep.equal(['last', `\n\n${STOPPED_MARKER}`]);
    const inTool = render(rows.slice(0, 3));
    expect(inTool.map((entry) => entry.message.role)).to.deep.equal(['user', 'assistant']);
    expect(inTool[1]?.message.content.map((block) => block.text)).to.deep.equal(['first', `\n\n${STOPPED_MARKER}`]);
  });

  it('has nothing of an answer that was stopped before its first word', () => {
    const turn = { status: 'STOPPED', turn_id: 't' } as const;
    for (const content of [[], [text('')], [text(' \n')], [{ type: 'thinking', thinking: 'Hm.' }]]) {
      expect(render([question('go', turn), assistant(content, turn, 'error')]).map((entry) => entry.message.role)).to.deep.equal(['user']);
    }
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

  it('keeps the place and the id of an erased question without its words', () => {
    const erased = question('', { text: null, erased: true });
    const [asked] = render([erased]);
    expect(asked?.id).to.equal(erased.id);
    expect(asked?.message.content[0]?.text).to.match(/\]\n\[erased\]$/);
  });

  it('keeps of an erased answer and of an erased result only what pairs them: no word, argument or detail', () => {
    const secret = { erased: true, status: 'DONE' } as const;
    const rows = [
      question('go'),
      assistant(
        [{ type: 'thinking', thinking: 'a secret' }, text('a secret'), { ...call('a'), arguments: { path: 'a secret' } }],
        secret,
        'toolUse',
      ),
      message('TOOL_RESULT', { role: 'toolResult', toolCallId: 'a', content: [text('a secret')], details: 'a secret' }, secret),
      assistant([text('a secret')], secret),
    ];
    const path = render(rows);
    expect(JSON.stringify(path)).to.not.include('secret');
    expect(path.map((entry) => entry.message.role)).to.deep.equal(['user', 'assistant', 'toolResult', 'assistant']);
    expect(path[1]?.message.content).to.deep.equal([{ type: 'toolCall', id: 'a', name: 'read', arguments: {} }]);
    expect(path[3]?.message.content).to.deep.equal([text(ERASED_MARKER)]);
  });

  it('shows the same of an erased answer whether its row still has its words, only its skeleton, or nothing', () => {
    const id = uuidv7();
    const payload = (content: unknown[]) =>
      JSON.stringify({ type: 'message', id, parentId: null, timestamp: AT, message: { role: 'assistant', content, stopReason: 'stop' } });
    const whole = row('ANSWER', { id, erased: true, payload: payload([text('a secret'), call('a')]) });
    const bare = { ...whole, payload: payload([{ ...call('a'), arguments: {} }]) };
    const asked = question('go');
    const found = result('a');
    expect(render([asked, whole, found])).to.deep.equal(render([asked, bare, found]));
    expect(
      render([asked, { ...whole, payload: null }, found]).map((entry) => entry.message.role),
      'no call, no result',
    ).to.deep.equal(['user']);
  });

  it('takes a call whose result is gone out of its answer, and keeps the words', () => {
    const lost = { ...result('b'), payload: null, erased: true };
    const path = render([
      question('go'),
      assistant([text('Look.'), call('a'), call('b')], {}, 'toolUse'),
      result('a'),
      lost,
      assistant([text('done')]),
    ]);
    expect(path[1]?.message.content.map((block) => block.type)).to.deep.equal(['text', 'toolCall']);
    const alone = render([question('go'), assistant([text('Look.'), call('b')], {}, 'toolUse'), lost, assistant([text('done')])]);
    expect(alone[1]?.message).to.deep.include({ content: [text('Look.')], stopReason: 'stop' });
  });

  it('pairs calls and results within their own turn, also when a provider uses an id twice', () => {
    const path = render([
      question('one'),
      assistant([call('call_1')]),
      result('call_1'),
      question('two'),
      assistant([text('Look.'), call('call_1')]),
    ]);
    expect(path.map((entry) => entry.message.role)).to.deep.equal(['user', 'assistant', 'toolResult', 'user', 'assistant']);
    expect(path.at(-1)?.message.content).to.deep.equal([text('Look.')]);
  });

  it('leaves out an answer that broke off, with the results of its calls', () => {
    const path = render([question('go'), assistant([text('half'), call('a')], {}, 'aborted'), result('a'), question('again')]);
    expect(path.map((entry) => entry.message.role)).to.deep.equal(['user', 'user']);
  });

  it('gives out the note instead of the result that it replaces, and the words of an erased one never', () => {
    const found = result('a');
    const edit = row('EDIT', {});
    const note = {
      ...edit,
      payload: JSON.stringify({
        type: 'context_edit',
        id: edit.id,
        parentId: null,
        timestamp: AT,
        targetId: found.id,
        replacement: { content: 'read it again' },
      }),
    };
    const rows = [question('go'), assistant([call('a')]), found, assistant([text('done')]), note];
    expect(render(rows)[2]?.message.content).to.deep.equal([text('read it again')]);
    expect(render(rows).at(-1)?.type).to.equal('context_edit');
    const erased = render(rows.map((one) => (one === found ? { ...one, erased: true } : one)));
    expect(erased[2]?.message.content).to.deep.equal([text(ERASED_MARKER)]);
    expect(erased.map((entry) => entry.type)).to.not.include('context_edit');
  });
});
