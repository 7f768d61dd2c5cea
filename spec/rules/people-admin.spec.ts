/**
 * Workspaces and members, as an admin makes them over the admin API of the operations listener. rule: R16
 */
import { expect } from 'chai';
import { createOpsListener, type HttpListener, requireLocalAdmin } from '../../src/http/index.ts';
import { silentLog } from '../../src/kernel/log.ts';
import { PeopleAdmin } from '../../src/people/index.ts';
import { useDatabase } from '../support/database.ts';
import { type Answer, answerOf } from '../support/http-rig.ts';
import { emptyLedger } from '../support/ledger.ts';
import { useSignIn } from '../support/sign-in-rig.ts';

describe('an admin of people', () => {
  const database = useDatabase();
  const openSignIn = useSignIn(database);
  let ops: HttpListener;
  let base: string;
  beforeEach(async () => {
    await emptyLedger(database.db);
    ops = createOpsListener({
      ...{ parts: [], started: () => true, actors: () => [], connectionsMax: 10, log: silentLog, adminGuard: requireLocalAdmin },
      metrics: { contentType: 'text/plain', text: async () => '' } as never,
      people: new PeopleAdmin({ db: database.db, timeZone: 'Europe/Berlin' }),
    });
    base = `http://127.0.0.1:${await ops.start('127.0.0.1', 0)}/admin/api`;
    expect((await send('POST', 'workspaces', { slug: 'forge', name: 'The Forge' })).status).to.equal(204);
  });
  afterEach(() => ops.stop(500));

  async function send(method: string, path: string, body?: unknown): Promise<Answer> {
    const json = body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
    return answerOf(await fetch(`${base}/${path}`, { method, ...json }));
  }
  const add = (email: string, extra: object = {}) => send('POST', 'members', { workspace: 'forge', email, ...extra });
  const change = (member: string, role: string | null) => send('PATCH', 'members', { workspace: 'forge', member, role });
  const members = async () => (await send('GET', 'members?workspace=forge')).body.members;

  it('adds a workspace once, and sees it in the list', async () => {
    const { status, body } = await send('POST', 'workspaces', { slug: 'forge', name: 'Another' });
    expect([status, body.code]).to.deep.equal([409, 'NAME_TAKEN']);
    expect((await send('GET', 'workspaces')).body.workspaces).to.deep.equal([{ slug: 'forge', name: 'The Forge', members: 0 }]);
  });

  for (const input of [
    { slug: 'Forge', name: 'x' },
    { slug: '-a', name: 'x' },
    { slug: 'a'.repeat(64), name: 'x' },
    { slug: 'a', name: ' ' },
    { slug: 'a' },
    {},
  ]) {
    it(`is told what is wrong with a workspace ${JSON.stringify(input).slice(0, 40)}`, async () => {
      expect((await send('POST', 'workspaces', input)).body.code).to.equal('BAD_REQUEST');
    });
  }

  it('invites somebody by email, who is then one account, in how many workspaces it may be', async () => {
    await send('POST', 'workspaces', { slug: 'second', name: 'Second' });
    expect((await add(' Ada@Example.com ', { role: 'admin', name: 'Ada' })).status).to.equal(204);
    expect((await send('POST', 'members', { workspace: 'second', email: 'ada@example.com' })).status).to.equal(204);
    const all = (await send('GET', 'members')).body.members;
    expect(all.map(({ account: _, ...rest }: { account: string }) => rest)).to.deep.equal([
      { workspace: 'forge', email: 'ada@example.com', name: 'Ada', role: 'admin', state: 'invited', ai: 'on' },
      { workspace: 'second', email: 'ada@example.com', name: 'Ada', role: 'member', state: 'invited', ai: 'on' },
    ]);
    expect(all[0].account).to.equal(all[1].account);
  });

  it('changes a role, removes and brings back, by email or by account', async () => {
    await add('ada@example.com');
    const [{ account }] = await members();
    expect((await change(account, 'operator')).status).to.equal(204);
    expect(await members()).to.deep.include.members([
      { workspace: 'forge', account, email: 'ada@example.com', name: 'ada', role: 'operator', state: 'invited', ai: 'on' },
    ]);
    expect((await change('ADA@example.com', null)).status).to.equal(204);
    expect((await members())[0]).to.include({ role: 'operator', state: 'removed' });
    const again = await change('ada@example.com', 'admin');
    expect([again.status, again.body.code]).to.deep.equal([404, 'NOT_FOUND']);
    await add('ada@example.com', { role: 'admin' });
    expect((await members())[0]).to.include({ account, role: 'admin', state: 'invited' });
    expect((await send('GET', 'workspaces')).body.workspaces[0].members).to.equal(1);
  });

  for (const email of ['ada', 'ada@', '@example.com', 'a@b@c.com', 'a b@c.com', `${'a'.repeat(250)}@example.com`, 'a\u200b@example.com']) {
    it(`is told that "${email.slice(0, 20)}" is no email`, async () => {
      const { status, body } = await add(email);
      expect([status, body.code]).to.deep.equal([400, 'BAD_REQUEST']);
    });
  }

  it('is told of a workspace, a member and a role that are not there', async () => {
    expect((await send('POST', 'members', { workspace: 'nowhere', email: 'a@b.c' })).body.code).to.equal('NOT_FOUND');
    expect((await send('GET', 'members?workspace=nowhere')).body.code).to.equal('NOT_FOUND');
    expect((await send('GET', 'members?workspace=%00')).body.code).to.equal('BAD_REQUEST');
    expect((await change('nobody@example.com', 'admin')).body.detail).to.match(/heph member list --workspace forge/);
    expect((await change('00000000-0000-7000-8000-000000000000', null)).body.code).to.equal('NOT_FOUND');
    expect((await add('ada@example.com', { role: 'king' })).body.code).to.equal('BAD_REQUEST');
  });

  it('that is a page of another site is refused', async () => {
    const body = JSON.stringify({ workspace: 'forge', email: 'eve@example.com' });
    const headers = { 'content-type': 'application/json', origin: 'https://evil.example' };
    const refused = await answerOf(await fetch(`${base}/members`, { method: 'POST', headers, body }));
    expect(refused.body.code).to.equal('ORIGIN_REFUSED');
    expect(await members()).to.deep.equal([]);
  });

  it('adds a person who has signed in before to the account that the person has', async () => {
    const site = await openSignIn();
    const browser = await site.signedIn();
    const { account } = (await browser.fetch('GET', '/auth/me')).body;
    await add('ada@example.com', { role: 'operator' });
    expect(await members()).to.deep.equal([
      {
        workspace: 'forge',
        account: account.id,
        email: 'ada@example.com',
        name: 'Ada Lovelace',
        role: 'operator',
        state: 'active',
        ai: 'on',
      },
    ]);
    expect((await browser.fetch('GET', '/session')).body).to.deep.include({ role: 'operator' });
  });

  it('makes one account of an email that is added and signs in at the same time', async () => {
    const site = await openSignIn();
    for (let n = 0; n < 5; n++) {
      const email = `p${n}@example.com`;
      site.issuer.person = { sub: `p${n}`, email, email_verified: true };
      const [browser] = await Promise.all([site.signedIn(), add(email), add(email), add(email)]);
      expect((await browser.fetch('GET', '/auth/me')).body.workspaces, email).to.have.length(1);
    }
    expect(await members()).to.have.length(5);
  });

  it('adds by an email that changed hands the person who has it now', async () => {
    const site = await openSignIn();
    const old = await site.signedIn();
    site.issuer.person = { sub: 'new', email: 'ada@example.com', email_verified: true, name: 'New' };
    const now = await site.signedIn();
    await add('ada@example.com');
    expect((await now.fetch('GET', '/auth/me')).body.workspaces).to.have.length(1);
    expect((await old.fetch('GET', '/auth/me')).body.workspaces).to.have.length(0);
  });
});
