/**
 * Owns: proof that a new HEPH_SECRET_KEY takes over every secret of the database, and that what an admin stores meanwhile stays.
 */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { addConnection, connectionKeys, setConnectionKey } from '../../db/models/connections.ts';
import { type Database, sql } from '../../db/pool.ts';
import { connectTeam, slackTokens } from '../../db/slack/connections.ts';
import { rotateSecrets, type SecretStore } from '../../src/kernel/rotate-secrets.ts';
import { SecretBox } from '../../src/kernel/secret-box.ts';
import { useDatabase } from '../support/database.ts';
import { emptyLedger, makePerson, run } from '../support/ledger.ts';
import { NotedLog } from '../support/noted-log.ts';
import { TEAM } from '../support/slack-scene.ts';

const [OLD, NEW] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
const oldBox = new SecretBox({ current: OLD, old: null });
const newBox = new SecretBox({ current: NEW, old: null });
const bothBox = new SecretBox({ current: NEW, old: OLD });

interface Kind {
  readonly what: string;
  readonly store: (db: Database) => SecretStore;
  /** Makes a row with this secret. */
  readonly add: (db: Database, id: string, sealed: Buffer) => Promise<unknown>;
  /** As an admin does it. */
  readonly set: (db: Database, id: string, sealed: Buffer) => Promise<unknown>;
}

async function connectWith(db: Database, id: string, tokenSealed: Buffer): Promise<void> {
  const [known] = await run(db, sql.unsafe`select workspace_id from slack_connection where id = ${id}`);
  const workspaceId = (known?.['workspace_id'] ?? (await makePerson(db)).workspaceId) as never;
  expect(await db.transaction((tx) => connectTeam(tx, { id, workspaceId, teamId: TEAM, botUserId: 'U0BOT', tokenSealed }))).to.equal(true);
}

const KINDS: readonly Kind[] = [
  {
    what: 'key of a connection',
    store: connectionKeys,
    add: (db, id, sealed) =>
      addConnection(db, { id, name: 'acme', api: 'openai-completions', baseUrl: 'https://llm.example.com/v1', sealed }),
    set: setConnectionKey,
  },
  { what: 'token of a Slack team', store: slackTokens, add: connectWith, set: connectWith },
];

for (const kind of KINDS) {
  describe(`the ${kind.what}, when the key that seals it is replaced`, () => {
    const database = useDatabase();
    const id = randomUUID();
    let log: NotedLog;
    beforeEach(async () => {
      await emptyLedger(database.db);
      await run(database.db, sql.unsafe`truncate llm_connection cascade`);
      log = new NotedLog();
      await kind.add(database.db, id, oldBox.seal('the secret', id));
    });

    const rotate = (secrets: SecretBox, store = kind.store(database.db)) => rotateSecrets({ secrets, store, what: kind.what, log });
    const stored = async () => (await kind.store(database.db).all()).find((one) => one.id === id)?.sealed as Buffer;

    it('opens with the new key alone, and is sealed once', async () => {
      await rotate(bothBox);
      const sealed = await stored();
      expect([newBox.open(sealed, id), log.of('secret rotated').length]).to.deep.equal(['the secret', 1]);
      await rotate(bothBox);
      expect([(await stored()).equals(sealed), log.of('secret rotated').length]).to.deep.equal([true, 1]);
    });

    it('is left as it is by a server that has no key, or not the one that sealed it', async () => {
      const before = await stored();
      await rotate(new SecretBox({ current: null, old: null }));
      expect(log.lines).to.deep.equal([]);
      await rotate(newBox);
      expect((await stored()).equals(before)).to.equal(true);
      expect(log.of('secret sealed with another key')).to.have.length(1);
      expect(JSON.stringify(log.lines)).to.not.include('the secret');
    });

    it('stays what an admin made it between the look and the write', async () => {
      const real = kind.store(database.db);
      const meanwhile: SecretStore = {
        all: () => real.all(),
        replace: async (change) => {
          await kind.set(database.db, id, newBox.seal('set by the admin', id));
          return real.replace(change);
        },
      };
      await rotate(bothBox, meanwhile);
      expect([newBox.open(await stored(), id), log.of('secret rotated').length]).to.deep.equal(['set by the admin', 0]);
    });

    it('is sealed by one of two servers that start together, and opens for both', async () => {
      await Promise.all([rotate(bothBox), rotate(bothBox)]);
      expect([newBox.open(await stored(), id), log.of('secret rotated').length]).to.deep.equal(['the secret', 1]);
    });
  });
}
