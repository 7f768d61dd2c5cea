/**
 * Owns: proof of what an edit and a deletion of a message in Slack come to, before its turn, during it, after it, and before the message itself.
 * cases: H6
 */
import { expect } from 'chai';
import { sql } from '../../db/pool.ts';
import { until } from '../support/actors.ts';
import { useDatabase } from '../support/database.ts';
import { run } from '../support/ledger.ts';
import { useSlack } from '../support/slack-rig.ts';
import { actions } from '../support/slack-scene.ts';
import { changed, deleted, message } from '../support/slack-sender.ts';

describe('a message in Slack that is edited or deleted', () => {
  const database = useDatabase();
  const scene = useSlack(database);
  const { link, send, turns } = scene;
  beforeEach(() => link());

  it('changes the words of its question, and asks nothing again', async () => {
    const asked = message('old words');
    await send(asked);
    await send(changed(asked, { text: 'new words', edited: { user: 'U0ADA', ts: '1700000200.000000' } }));
    await send(changed(asked, { text: 'new words', attachments: [] })); // an unfurl
    expect((await turns()).map(({ text, status }) => [text, status])).to.deep.equal([['new words', 'QUEUED']]);
    await send(asked); // the first delivery again: it is known
    expect((await turns()).map(({ text }) => text)).to.deep.equal(['new words']);
  });

  it('changes its words while its turn runs, and is answered once', async () => {
    const asked = message('old words');
    await send(asked);
    const sandbox = await scene.sandbox();
    const { body: next } = await sandbox.next(5_000);
    await send(changed(asked, { text: 'new words' }));
    await sandbox.answer(next.run, 'To the old words.');
    await until('it is posted', () => scene.fake.messages.length > 0);
    await send(changed(asked, { text: 'newer words' }));
    expect((await turns()).map(({ text, status }) => [text, status])).to.deep.equal([['newer words', 'DONE']]);
    expect([scene.fake.messages.length, (await actions(database.db)).length]).to.deep.equal([1, 1]);
  });

  for (const [what, gone] of [
    ['deleted', deleted],
    [
      'a tombstone, since its thread has answers',
      (it_: Record<string, unknown>) => changed(it_, { subtype: 'tombstone', text: 'This message was deleted.', user: 'USLACKBOT' }),
    ],
  ] as const) {
    it(`is erased while its turn runs, and nothing is answered: ${what}`, async () => {
      const asked = message('erase me');
      await send(asked);
      const sandbox = await scene.sandbox();
      const { body: next } = await sandbox.next(5_000);
      expect(await send(gone(asked))).to.equal(200);
      expect((await turns()).map(({ status, erased, text }) => [status, erased, text])).to.deep.equal([['STOPPED', true, null]]);
      await sandbox.answer(next.run, 'too late');
      await until('the action is settled', async () => (await actions(database.db))[0]?.state === 'DEAD');
      expect([(await actions(database.db))[0]?.reason, scene.fake.messages.length]).to.deep.equal(['erased', 0]);
      expect(await send(gone(asked))).to.equal(200);
    });
  }

  it('loses its words when it is edited to nothing', async () => {
    const asked = message('words and a file', { subtype: 'file_share', files: [{ id: 'F0PLAN' }] });
    await send(asked);
    await send(changed(asked, { text: '' }));
    expect((await turns()).map(({ status, erased, text }) => [status, erased, text])).to.deep.equal([['STOPPED', true, null]]);
  });

  it('keeps its old words when the new ones are too many, and says so', async () => {
    const asked = message('old words');
    await send(asked);
    await send(changed(asked, { text: 'x'.repeat(32_001) }));
    expect([(await turns()).map(({ text }) => text), (await actions(database.db)).map(({ notice }) => notice)]).to.deep.equal([
      ...[['old words'], ['TOO_LONG']],
    ]);
  });

  it('is asked once, with its new words, when its edit overtakes it', async () => {
    const asked = message('old words', { ts: `${Math.floor(Date.now() / 1_000)}.000100` });
    await send(changed(asked, { text: 'new words' }));
    await send(asked);
    expect((await turns()).map(({ text }) => text)).to.deep.equal(['new words']);
    await send(changed(message('of last year', { ts: '1700000000.000100' }), { text: 'still of last year' }));
    expect(await turns()).to.have.length(1);
  });

  it('that became no question becomes none when it is edited', async () => {
    await run(database.db, sql.unsafe`delete from slack_identity returning 1`);
    const asked = message('before the link', { ts: `${Math.floor(Date.now() / 1_000)}.000200` });
    await send(asked);
    await link();
    await send(changed(asked, { text: 'after the link' }));
    expect([await turns(), (await actions(database.db)).map(({ notice }) => notice)]).to.deep.equal([[], ['LINK']]);
  });

  it('is not asked when its deletion overtakes it', async () => {
    const asked = message('gone before it came');
    await send(deleted(asked));
    await send(asked);
    expect(await turns()).to.deep.equal([]);
  });
});
