/**
 * Owns: proof that the app and Slack are two sides of one conversation: who has it open sees what was asked in Slack, and Slack gets the
 * answers to its own questions, whole and when they are finished.
 */
import { expect } from 'chai';
import { until } from '../support/actors.ts';
import { useDatabase } from '../support/database.ts';
import { useSlack } from '../support/slack-rig.ts';
import { actions } from '../support/slack-scene.ts';
import { message } from '../support/slack-sender.ts';

describe('a conversation that is held in the app and in Slack', () => {
  const database = useDatabase();
  const scene = useSlack(database);
  beforeEach(() => scene.link());

  it('shows a question of Slack in the app at once, its answer while it is written, and gives Slack the whole of it', async () => {
    const stream = await scene.rig.events();
    await stream.next('snapshot');
    await scene.send(message('Asked in Slack'));
    const entry = await stream.next('entry');
    expect([entry.surface, entry.kind, entry.text]).to.deep.equal(['slack', 'question', 'Asked in Slack']);
    const sandbox = await scene.sandbox();
    const { run } = (await sandbox.next(5_000)).body;
    await sandbox.partial(run, 0, 'Written ');
    await sandbox.partial(run, 8, 'bit by bit');
    await stream.next('partial', ({ text }) => text.includes('bit by bit'));
    expect([scene.fake.calls.length, (await actions(database.db)).length], 'nothing for Slack while it runs').to.deep.equal([0, 0]);
    await sandbox.answer(run, 'Written bit by bit, to its end.');
    const answer = await stream.next('entry', ({ kind }) => kind === 'answer');
    expect([answer.surface, answer.text, answer.turnId]).to.deep.equal(['slack', 'Written bit by bit, to its end.', entry.turnId]);
    await until('it is posted', () => scene.fake.messages.length > 0);
    expect(scene.fake.messages.map(({ text }) => text)).to.deep.equal(['Written bit by bit, to its end.']);
    await stream.close();
  });

  it('goes on in the app with what was asked in Slack, and Slack hears nothing of it', async () => {
    await scene.send(message('First, in Slack'));
    const sandbox = await scene.sandbox();
    await sandbox.answer((await sandbox.next(5_000)).body.run, 'To Slack.');
    await until('it is posted', () => scene.fake.messages.length > 0);
    const { body } = await scene.rig.ask('Then, in the app');
    await sandbox.answer((await sandbox.next(5_000)).body.run, 'To the app.');
    await scene.send(message('And in Slack again'));
    await sandbox.answer((await sandbox.next(5_000)).body.run, 'To Slack again.');
    await until('it is posted', () => scene.fake.messages.length > 1);
    const page = await scene.rig.send('GET', `conversations/${body.entry.conversationId}/entries`);
    expect(page.body.entries.map(({ surface, text }: { surface: string; text: string }) => `${surface}: ${text}`)).to.deep.equal([
      ...['slack: First, in Slack', 'slack: To Slack.', 'app: Then, in the app', 'app: To the app.'],
      ...['slack: And in Slack again', 'slack: To Slack again.'],
    ]);
    expect(scene.fake.messages.map(({ text }) => text)).to.deep.equal(['To Slack.', 'To Slack again.']);
  });

  it('stops in the app what was asked in Slack, and Slack is told', async () => {
    await scene.send(message('Asked in Slack'));
    const sandbox = await scene.sandbox();
    const { run } = (await sandbox.next(5_000)).body;
    const { body: main } = await scene.rig.send('GET', 'conversation');
    const { body: page } = await scene.rig.send('GET', `conversations/${main.id}/entries`);
    const stopped = await scene.rig.send('PATCH', `turns/${page.entries[0].turnId}/status`, { body: { status: 'STOPPED' } });
    expect(stopped.status).to.equal(200);
    await sandbox.answer(run, 'As far as it got');
    await until('it is said', () => scene.fake.messages.length > 0);
    expect(scene.fake.messages.map(({ text }) => text)).to.deep.equal(['As far as it got\n\n_Stopped here._']);
  });
});
