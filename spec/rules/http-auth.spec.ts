/**
 * Local sign-in: this machine only, under its own names only, and no writes from other sites.
 */
import http from 'node:http';
import { networkInterfaces } from 'node:os';
import { expect } from 'chai';
import { sql } from '../../db/pool.ts';
import { localMember } from '../../db/web/local-member.ts';
import type { MemberKey } from '../../db/web/membership.ts';
import { isLoopbackAddress, loopbackPort } from '../../src/http/auth/local.ts';
import { useDatabase } from '../support/database.ts';
import { type HttpRig, useRigs } from '../support/http-rig.ts';
import { run } from '../support/ledger.ts';
import { skipLoudly } from '../support/skip.ts';

interface Plain {
  readonly status: number;
  readonly code: string | undefined;
  readonly detail: string | undefined;
}

/** A request with headers that fetch would not send. */
function plain(port: number, options: http.RequestOptions & { body?: string }): Promise<Plain> {
  return new Promise((resolve, reject) => {
    const { body, ...rest } = options;
    const request = http.request({ host: '127.0.0.1', port, agent: false, ...rest }, (response) => {
      let text = '';
      response.on('data', (chunk) => {
        text += chunk;
      });
      response.on('end', () => {
        const problem = /problem/.test(response.headers['content-type'] ?? '') ? JSON.parse(text) : {};
        resolve({ status: response.statusCode ?? 0, code: problem.code, detail: problem.detail });
      });
    });
    request.on('error', reject);
    request.end(body);
  });
}

describe('local sign-in', () => {
  const database = useDatabase();
  const openRig = useRigs(database);
  let rig: HttpRig;
  beforeEach(async () => {
    rig = await openRig();
  });

  const read = (headers: Record<string, string>) => plain(rig.webPort, { path: '/session', headers });
  const write = (headers: Record<string, string>) =>
    plain(rig.webPort, {
      method: 'POST',
      path: `/workspaces/${rig.slug}/mentor/questions`,
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ requestId: Math.random().toString(36), text: 'Why?' }),
    });

  for (const host of ['localhost', 'localhost:8080', 'LOCALHOST:1', '127.0.0.1:8080', '127.8.8.8', '[::1]:8080', '[::1]']) {
    it(`answers to the name ${host}`, async () => {
      expect((await read({ host })).status).to.equal(200);
    });
  }

  for (const host of [
    'heph.example',
    'localhost.heph.example',
    '127.0.0.1.heph.example',
    '10.0.0.1',
    '0.0.0.0',
    '127.0.0.256',
    'localhost:80:80',
    '[::2]',
  ]) {
    it(`refuses the name ${host}, for the page too, and says which name to use`, async () => {
      for (const path of ['/session', '/', `/workspaces/${rig.slug}/mentor/conversation`]) {
        const answer = await plain(rig.webPort, { path, headers: { host } });
        expect([answer.status, answer.code], path).to.deep.equal([403, 'FORBIDDEN']);
        expect(answer.detail).to.match(/http:\/\/localhost/);
      }
    });
  }

  it('refuses a peer that is not this machine, whatever it calls itself', async function () {
    const outside = Object.values(networkInterfaces())
      .flat()
      .find((address) => address && !address.internal && address.family === 'IPv4');
    if (!outside) skipLoudly(this, 'this machine has no address beside loopback');
    await rig.web.stop(100);
    const open = await openRig({ person: rig.person, bindHost: '0.0.0.0' });
    const answer = await plain(open.webPort, { host: outside.address, path: '/session', headers: { host: 'localhost' } });
    expect([answer.status, answer.code]).to.deep.equal([403, 'FORBIDDEN']);
    expect(answer.detail).to.match(/machine that it runs on/);
  });

  it('takes a write from a program, which sends no Origin, and from its own page', async () => {
    const own = [{}, { origin: `http://localhost:${rig.webPort}`, 'sec-fetch-site': 'same-origin' }];
    for (const headers of own) expect((await write({ host: `127.0.0.1:${rig.webPort}`, ...headers })).status).to.equal(202);
  });

  for (const [what, headers] of [
    ['another site', { origin: 'https://evil.example' }],
    ['another port of this machine', { origin: 'http://localhost:1' }],
    ['a page without an origin', { origin: 'null' }],
    ['a name that only begins like this machine', { origin: 'http://localhost.evil.example' }],
    ['a site that the browser calls foreign', { 'sec-fetch-site': 'cross-site' }],
  ] as const) {
    it(`refuses a write from ${what}`, async () => {
      const answer = await write({ host: `localhost:${rig.webPort}`, ...headers });
      expect([answer.status, answer.code]).to.deep.equal([403, 'ORIGIN_REFUSED']);
    });
  }

  it("refuses a read that another site's page makes, but not a link that a person follows", async () => {
    const host = `localhost:${rig.webPort}`;
    const embedded = await read({ host, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' });
    expect([embedded.status, embedded.code]).to.deep.equal([403, 'ORIGIN_REFUSED']);
    const followed = await read({ host, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' });
    expect(followed.status).to.equal(200);
  });

  it('is somebody without a sign-in: there is none to begin and none to end', async () => {
    const { body } = await rig.send('GET', '/auth/me');
    expect(body).to.deep.equal({ account: body.account, workspaces: [{ slug: rig.slug, name: 'W', role: 'member' }], signOutUrl: null });
    expect(body.account.id).to.equal(rig.person.accountId);
    for (const [method, path] of [
      ['GET', '/auth/login'],
      ['GET', '/auth/callback'],
      ['POST', '/auth/logout'],
    ] as const) {
      expect((await rig.send(method, path)).status, path).to.equal(404);
    }
  });

  it('makes its workspace and its account once, however many servers start together, and brings nobody back', async () => {
    const { db } = database;
    const person = { displayName: 'Ada', timeZone: 'Europe/Berlin' };
    const members = await Promise.all(Array.from({ length: 6 }, () => localMember(db, person)));
    expect(new Set(members.map(({ workspaceId, accountId }) => `${workspaceId} ${accountId}`)).size).to.equal(1);
    const local = await openRig({ person: members[0] as MemberKey });
    const { body } = await local.send('GET', '/session');
    expect(body.account).to.include({ displayName: 'Ada', timeZone: 'Europe/Berlin' });
    expect(body.workspace).to.include({ slug: 'home', name: 'Home' });
    await run(db, sql.unsafe`update workspace_member set active = false where account_id = ${local.person.accountId} returning 1`);
    await localMember(db, { displayName: 'Eve', timeZone: 'UTC' });
    const refused = await local.send('GET', '/session');
    expect([refused.status, refused.body.code]).to.deep.equal([403, 'FORBIDDEN']);
  });

  it('knows loopback addresses as sockets write them', () => {
    for (const address of ['127.0.0.1', '127.255.255.254', '::1', '::ffff:127.0.0.1', '::FFFF:127.1.2.3']) {
      expect(isLoopbackAddress(address), address).to.equal(true);
    }
    for (const address of [undefined, '', '10.0.0.1', '::', '::ffff:10.0.0.1', '128.0.0.1', '1127.0.0.1', 'fe80::1', '::ffff:']) {
      expect(isLoopbackAddress(address), String(address)).to.equal(false);
    }
    expect(loopbackPort('localhost', 80)).to.equal(80);
    expect(loopbackPort('localhost:70000', 80)).to.equal(null);
  });
});
