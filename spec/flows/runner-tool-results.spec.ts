/**
 * Owns: proof that what tools brought in is shown to the model word for word in its own turn and the next, and as a note afterwards
 * (seed, "Tool results"). Real runner, real Pi, a scripted model.
 */
import { expect } from 'chai';
import { momentIn } from '../../sandbox-runner/times.ts';
import type { PiEntry } from '../../src/contract/agent.ts';
import { LIMITS } from '../../src/contract/limits.ts';
import { storedToolTurn, storedTurn, streamTool, streamWords, tarOf, transcriptOf, wordsIn } from '../support/agent-scripts.ts';
import { type FakeAgentServer, reply, type SeenCall } from '../support/fake-agent-server.ts';
import { RunnerRig } from '../support/runner-rig.ts';

describe('results of tools', () => {
  let rig: RunnerRig;
  let fake: FakeAgentServer;

  before(async () => {
    rig = new RunnerRig();
    fake = (await rig.openRunner()).server;
  });
  beforeEach(() => fake.reset());
  after(() => rig.close());

  const HISTORY = storedToolTurn(1, [
    { name: 'read', args: { path: 'inputs/context/user.json' }, result: 'the words of a document' },
    { name: 'bash', args: { command: `git log\n  --oneline ${'x'.repeat(300)}` }, result: 'the words of a command' },
    { name: 'load_context', args: { path: 'repos/heph' }, result: 'the words of a summary' },
    { name: 'search_conversation', args: { query: 'tests' }, result: 'the words of a search' },
    { name: 'show_feedback', args: { id: '1' }, result: 'the words of feedback' },
    { name: 'link_result', args: { id: '1' }, result: 'the words of a link' },
    { name: 'fetch_context', args: { path: 'old' }, result: 'the words of a fetch' },
  ]);
  const edits = (entries: readonly PiEntry[]) => entries.filter((entry) => entry.type === 'context_edit');
  const notes = (entries: readonly PiEntry[]) =>
    edits(entries).map((entry) => [entry['targetId'], (entry['replacement'] as { content: { text: string }[] }).content[0]?.text]);
  /** The model reads INDEX.md, then answers. */
  const readsOnce = (): void =>
    fake.on('model', (call, response) =>
      fake.named('model').indexOf(call) === 0 ? streamTool(response, 'read', { path: 'INDEX.md' }) : streamWords(response, ['Read.']),
    );
  const documents = tarOf([{ path: 'INDEX.md', data: 'the words of this turn' }]).toString('base64');

  it('of older turns become notes when a turn settles; its own stay, and so does what was shown or found', async () => {
    readsOnce();
    fake.giveRun({ entries: HISTORY, documents });
    const end = await fake.end();
    const [document, command, load, ...more] = notes(end.entries);
    expect(document).to.deep.equal([
      'r1.1',
      '[Result of read inputs/context/user.json from Thu 2026-10-08 09:01 +02:00 was removed. Read it again if you need it.]',
    ]);
    expect(command?.[1]).to.match(/^\[Result of bash git log --oneline x{182}… from .* was removed\. Run it again if you need it\.\]$/);
    expect(load).to.deep.equal([
      'r1.3',
      '[Result of load_context repos/heph from Thu 2026-10-08 09:01 +02:00 was removed. Each turn has a new context folder: load it again if you need it.]',
    ]);
    expect(more).to.deep.equal([]);
    expect(wordsIn(end.entries, 'toolResult')).to.deep.equal(['the words of this turn']);
    const shown = transcriptOf((await fake.call('model')) as SeenCall).map((message) => message.text);
    expect(shown, 'the turn itself still saw them').to.include('the words of a document');
  });

  it('are noted once: the next turn sees the notes and adds one for the turn between', async () => {
    readsOnce();
    const first = fake.giveRun({ entries: HISTORY, documents });
    const stored = (await fake.end()).entries;
    const asked = { type: 'message', id: first.context.questionEntryId, timestamp: '2026-10-08T08:00:00.000Z' };
    const question = { ...asked, message: { role: 'user', content: [{ type: 'text', text: first.context.prompt }], timestamp: 2 } };
    const all = [...HISTORY, question, ...stored];
    const path = all.map((entry, index) => ({ ...entry, parentId: all[index - 1]?.id ?? null })) as PiEntry[];
    fake.giveRun({ entries: path, documents, prompt: 'And now?' });
    const end = await fake.end(2);
    const shown = transcriptOf((await fake.call('model', 3)) as SeenCall).map((message) => message.text);
    expect(shown.filter((text) => text.startsWith('[Result of'))).to.have.length(3);
    expect(shown).to.include.members(['the words of this turn', 'the words of a search', 'the words of feedback', 'the words of a link']);
    expect(notes(end.entries).map(([target]) => target)).to.deep.equal([
      stored.find((entry) => entry['message'] && wordsIn([entry], 'toolResult')[0])?.id,
    ]);
  });

  it('are noted by a stopped turn, too, and left alone by one that failed', async () => {
    fake.on('model', (_call, response) => streamTool(response, 'bash', { command: 'exec sleep 1000' }));
    fake.on('turn/partial', (_call, response) => reply(response, 200, fake.named('turn/partial').length > 1 ? { stop: 'developer' } : {}));
    fake.giveRun({ entries: HISTORY });
    const stopped = await fake.end();
    expect([stopped.outcome, edits(stopped.entries).length]).to.deep.equal(['STOPPED', 3]);
    fake.on('model', (_call, response) => reply(response, 400, { error: { message: 'no' } }));
    fake.giveRun({ entries: HISTORY });
    const failed = await fake.end(2);
    expect([failed.outcome, edits(failed.entries).length]).to.deep.equal(['FAILED', 0]);
  });

  it('of which there are too many for one end are noted by as many turns as it takes', async () => {
    const many = Array.from({ length: LIMITS.entriesPerEndMax + 20 }, (_, n) => ({ name: 'read', args: { path: `${n}.md` }, result: 'x' }));
    fake.giveRun({ entries: storedToolTurn(1, many) });
    const end = await fake.end();
    expect(end.outcome).to.equal('DONE');
    expect(end.entries.length).to.be.within(LIMITS.entriesPerEndMax - 5, LIMITS.entriesPerEndMax);
    expect(notes(end.entries)[0]?.[0]).to.equal('r1.1');
  });

  it('that a summary put away are not noted', async () => {
    const kept = storedTurn(2, 'Kept.').map((entry) => (entry.id === 'q2' ? { ...entry, parentId: 'a1' } : entry));
    const summary = {
      type: 'compaction',
      id: 's',
      parentId: 'a2',
      timestamp: '2026-10-08T08:00:00.000Z',
      summary: 'S',
      firstKeptEntryId: 'q2',
      tokensBefore: 1,
    };
    fake.giveRun({ entries: [...HISTORY, ...kept, summary] });
    const end = await fake.end();
    expect([end.outcome, edits(end.entries).length]).to.deep.equal(['DONE', 0]);
  });

  it('are dated in the zone of the account, with weekday and offset', () => {
    expect(momentIn('2026-10-12T12:41:30.000Z', 'Europe/Berlin')).to.equal('Mon 2026-10-12 14:41 +02:00');
    expect(momentIn('2026-10-11T23:59:00.000Z', 'Asia/Kolkata')).to.equal('Mon 2026-10-12 05:29 +05:30');
    expect(momentIn('2026-10-12T00:05:00.000Z', 'UTC')).to.equal('Mon 2026-10-12 00:05 +00:00');
    expect(momentIn('2026-10-12T00:05:00.000Z', 'Nowhere/Atlantis')).to.equal('Mon 2026-10-12 00:05 +00:00');
    expect(momentIn('not a time', 'UTC')).to.equal('not a time');
  });
});
