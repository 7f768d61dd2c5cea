/**
 * Connections that an admin added, as the gateway calls them: their key, their address, and what happens when they change. rule: R15
 */
import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { z } from 'zod';
import { sql } from '../../db/pool.ts';
import { SecretBox } from '../../src/kernel/secret-box.ts';
import { seedAttempt, usageRows } from '../support/model-attempt.ts';
import { readBody, readUntil, settled, useGateway } from '../support/model-gateway.ts';
import { hold, says, startModelServer, textSteps } from '../support/model-server.ts';
import { bindAdminModel } from '../support/models.ts';

const question = { stream: true, messages: [{ role: 'user', content: 'why?' }] };
const nothing = z.object({});

describe('a model call over a connection that an admin added', () => {
  const suite = useGateway();
  const secrets = new SecretBox({ current: randomBytes(32), old: null });
  afterEach(() => suite.db.any(sql.type(nothing)`delete from llm_binding where source = 'admin'`));

  /** An attempt whose model is the admin's, with a key on its connection. */
  async function open(options: { key?: string; sealedBy?: SecretBox; baseUrl?: string; allowPrivate?: boolean } = {}) {
    const { key, sealedBy = secrets, baseUrl = suite.provider.url, allowPrivate = true } = options;
    suite.provider.use(() => says('because'));
    const { rig } = await suite.open({ secrets, addressRules: { allowPrivate } });
    const { connectionId } = await bindAdminModel(suite.db, null, { baseUrl, providerModel: 'of-the-admin' });
    if (key !== undefined) await setKey(connectionId, sealedBy.seal(key, connectionId));
    return { rig, connectionId, attempt: await seedAttempt(suite.db) };
  }

  async function setKey(connectionId: string, sealed: Buffer): Promise<void> {
    await suite.db.any(sql.type(nothing)`
      update llm_connection set api_key_sealed = ${sql.binary(sealed)}, updated_at = clock_timestamp() where id = ${connectionId}`);
  }

  it('goes to its address with its key and its model, and is recorded with it', async () => {
    const { rig, attempt } = await open({ key: 'sk-of-the-admin' });
    const n = suite.provider.seen.length + 1;
    await readBody(await rig.call(attempt, question));
    const seen = await suite.provider.request(n);
    expect([seen.body.model, seen.headers.authorization]).to.deep.equal(['of-the-admin', 'Bearer sk-of-the-admin']);
    await settled(rig);
    expect(await usageRows(suite.db, attempt))
      .to.have.nested.property('[0]')
      .that.includes({ model: 'of-the-admin', price_kind: 'UNPRICED', cost: null });
  });

  it('goes out with a new key at once, while a call with the old one finishes', async () => {
    const { rig, attempt, connectionId } = await open({ key: 'old-key' });
    const inTheMiddle = hold();
    const n = suite.provider.seen.length + 1;
    suite.provider.use(() => ({ steps: [...textSteps('half'), { hold: inTheMiddle }, ...textSteps(' and half')] }));
    const slow = await rig.call(attempt, question);
    await inTheMiddle.arrived;
    await setKey(connectionId, secrets.seal('new-key', connectionId));
    suite.provider.use(() => says('because'));
    await readBody(await rig.call(attempt, question));
    expect((await suite.provider.request(n + 1)).headers.authorization).to.equal('Bearer new-key');
    inTheMiddle.release();
    const reader = (slow.body as ReadableStream<Uint8Array>).getReader();
    expect(await readUntil(reader, '[DONE]')).to.include('half');
    await reader.cancel();
  });

  it('is refused when the connection was disabled in the middle of the turn, and sends nothing', async () => {
    const { rig, attempt, connectionId } = await open();
    await readBody(await rig.call(attempt, question));
    const n = suite.provider.seen.length;
    await suite.db.any(sql.type(nothing)`update llm_connection set disabled_at = clock_timestamp() where id = ${connectionId}`);
    const response = await rig.call(attempt, question);
    expect([response.status, (await response.json()).code]).to.deep.equal([503, 'NO_MODEL']);
    expect(suite.provider.seen.length).to.equal(n);
    expect(await usageRows(suite.db, attempt)).to.have.length(1);
  });

  it('is refused when this server cannot open the key, and says what to do without the key', async () => {
    const { rig, attempt } = await open({ key: 'sk-secret', sealedBy: new SecretBox({ current: randomBytes(32), old: null }) });
    const response = await rig.call(attempt, question);
    const text = await response.text();
    expect([response.status, JSON.parse(text).code]).to.deep.equal([503, 'NO_MODEL']);
    expect(text).to.include('HEPH_SECRET_KEY').and.not.include('sk-secret');
    expect(JSON.stringify(rig.lines)).to.include('connection_key_sealed').and.not.include('sk-secret');
  });

  for (const host of ['https://127.0.0.1', 'https://localhost']) {
    it(`is refused when its address leads into the network of the server (${host}), also when the row was changed by hand`, async () => {
      const n = suite.provider.seen.length;
      const baseUrl = suite.provider.url.replace('http://127.0.0.1', host);
      const { rig, attempt } = await open({ allowPrivate: false, baseUrl });
      const response = await rig.call(attempt, question);
      expect([response.status, (await response.json()).code]).to.deep.equal([503, 'NO_MODEL']);
      expect(suite.provider.seen.length).to.equal(n);
    });
  }

  it('follows no redirect', async () => {
    const elsewhere = await startModelServer();
    const { rig, attempt } = await open();
    suite.provider.use(() => ({ status: 307, headers: { location: `${elsewhere.url}/v1/chat/completions` }, body: {} }));
    expect((await rig.call(attempt, question)).status).to.equal(502);
    expect(elsewhere.seen).to.have.length(0);
    await elsewhere.close();
  });
});
