/**
 * Who may do what on the operations listener: every route of it as every role, tokens, and where this machine counts.
 */
import http from 'node:http';
import { expect } from 'chai';
import { giveRole } from '../../db/ops/operators.ts';
import { sql } from '../../db/pool.ts';
import { OPS_TOKEN_MIN_CHARS, readConfig } from '../../src/config.ts';
import { OPS_ROLES, type OpsRole } from '../../src/contract/operators.ts';
import { type AdminGuard, createOpsListener, type HttpListener, operatorDoor, ROUTE_NEEDS } from '../../src/http/index.ts';
import { guarded } from '../../src/http/ops/operator-guard.ts';
import { uuidv7 } from '../../src/kernel/ids.ts';
import { createMetrics } from '../../src/ops/index.ts';
import { useDatabase } from '../support/database.ts';
import { answerOf } from '../support/http-rig.ts';
import { emptyLedger, makePerson, run } from '../support/ledger.ts';
import { NotedLog } from '../support/noted-log.ts';
import { useDesks } from '../support/operators.ts';
import { SignInBrowser } from '../support/sign-in-browser.ts';
import { useSignIn } from '../support/sign-in-rig.ts';

const TOKENS: Readonly<Record<OpsRole | 'metrics', string>> = {
  viewer: 'viewer-0123456789abcdef0123456789abcdef',
  operator: 'operator-0123456789abcdef0123456789abcdef',
  admin: 'admin-0123456789abcdef0123456789abcdef',
  metrics: 'metrics-0123456789abcdef0123456789abcdef',
};
const ENV = {
  HEPH_OPS_VIEWER_TOKEN: TOKENS.viewer,
  HEPH_OPS_OPERATOR_TOKEN: TOKENS.operator,
  HEPH_OPS_ADMIN_TOKEN: TOKENS.admin,
  HEPH_OPS_METRICS_TOKEN: TOKENS.metrics,
};
const { tokens, metricsToken } = readConfig(ENV, '/nowhere').ops;
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

describe('the operations listener', () => {
  const database = useDatabase();
  const desks = useDesks(database);
  const log = new NotedLog();
  const listeners: HttpListener[] = [];
  afterEach(async () => {
    await Promise.all(listeners.splice(0).map((listener) => listener.stop(1_000)));
    log.lines.length = 0;
  });

  const doorWith = (options: Partial<Parameters<typeof operatorDoor>[0]> = {}): AdminGuard =>
    operatorDoor({ db: database.db, tokens, metricsToken, local: false, signIn: null, bearer: null, ...options });

  /** Answers everything that it is asked; who may ask is what the specs are about. */
  // biome-ignore lint/suspicious/noExplicitAny: it stands for every port of the listener
  function anything(): any {
    return new Proxy(() => Promise.resolve({}), {
      get: (_target, name) => (name === 'then' ? undefined : anything()),
      apply: () => Promise.resolve({}),
    });
  }

  /** The whole listener, with nothing behind it. */
  async function whole(adminGuard: AdminGuard): Promise<string> {
    const port = anything();
    const site = { requireHost: () => undefined, requireNavigation: () => undefined, requireOwnPage: () => undefined, origin: 'x' };
    const listener = createOpsListener({
      ...{ parts: [], started: () => true, metrics: createMetrics(), actors: () => [], connectionsMax: 50, log, adminGuard },
      ...{ operators: port, models: port, members: port, people: port, repositories: port, slack: port },
      signIn: {
        door: port,
        site: site as never,
        cookies: { read: () => null, write: () => undefined, clear: () => undefined } as never,
        sessionMaxMs: 1,
      },
    });
    listeners.push(listener);
    return `http://127.0.0.1:${await listener.start('127.0.0.1', 0)}`;
  }

  async function ask(url: string, route: string, headers: Record<string, string>) {
    const [method = '', path = ''] = route.split(' ');
    const target = path.replaceAll(/:(id|account)/g, uuidv7()).replaceAll(/:\w+/g, 'x');
    return answerOf(await fetch(url + target, { method, headers, redirect: 'manual' }));
  }

  describe('asks each route as each role, by its one list', () => {
    const need = (route: string) => ROUTE_NEEDS[route] as string;
    const rank = (role: string) => (OPS_ROLES as readonly string[]).indexOf(role);

    it('and every line of the list is a route', async () => {
      const url = await whole(doorWith());
      for (const route of Object.keys(ROUTE_NEEDS)) {
        const { body, status } = await ask(url, route, bearer(TOKENS.admin));
        expect(`${status} ${body?.detail ?? ''}`, route).to.not.match(/There is nothing at this address|^405/);
      }
    });

    for (const who of ['nobody', 'a stranger', ...OPS_ROLES] as const) {
      it(`as ${who}`, async () => {
        const url = await whole(doorWith());
        const token = who === 'a stranger' ? 'stranger-0123456789abcdef0123456789abcdef' : (TOKENS as Record<string, string>)[who];
        for (const route of Object.keys(ROUTE_NEEDS)) {
          const { status, body, headers } = await ask(url, route, token === undefined ? {} : bearer(token));
          const needed = need(route);
          if (needed === 'open' || needed === 'sign-in') {
            expect(status, `${route} is open`).to.not.be.oneOf([401, 403]);
          } else if (rank(who) < 0) {
            expect([status, body.code], route).to.deep.equal([401, 'UNAUTHENTICATED']);
            expect(headers.get('www-authenticate'), route).to.match(/^Bearer/);
            expect(headers.get('content-type')).to.include('application/problem+json');
          } else if (needed !== 'metrics' && rank(who) < rank(needed)) {
            expect([status, body.code, body.needs, body.role], route).to.deep.equal([403, 'FORBIDDEN', needed, who]);
            expect(body.detail, 'says what to do').to.include(`the role ${needed}`).and.include('heph operator set');
          } else {
            expect(status, route).to.not.be.oneOf([401, 403]);
          }
        }
        expect(JSON.stringify(log.lines), 'no token is logged').to.not.include('0123456789abcdef');
      });
    }

    it('and a route that nobody gave a role to keeps the server from starting', () => {
      const route = { method: 'GET', path: '/admin/api/new', handle: () => undefined } as const;
      expect(() => guarded(route, doorWith())).to.throw(/GET \/admin\/api\/new.*roles\.ts/);
    });
  });

  it('lets a scraper read metrics by its own token, or whoever reaches the port when there is none', async () => {
    const closed = await whole(doorWith());
    expect((await ask(closed, 'GET /metrics', {})).status).to.equal(401);
    expect((await ask(closed, 'GET /metrics', bearer(TOKENS.metrics))).status).to.equal(200);
    expect((await ask(closed, 'GET /admin/api/overview', bearer(TOKENS.metrics))).status, 'which is no role').to.equal(401);
    const open = await whole(doorWith({ metricsToken: null }));
    expect((await ask(open, 'GET /metrics', {})).status).to.equal(200);
  });

  describe('on this machine', () => {
    it('lets everybody do everything as long as nothing says who an operator is', async () => {
      const url = await whole(doorWith({ tokens: [], local: true }));
      for (const route of ['GET /admin/api/overview', 'POST /admin/api/drain', 'GET /admin/api/operators'])
        expect((await ask(url, route, {})).status, route).to.not.be.oneOf([401, 403]);
      expect((await ask(url, 'GET /admin/api/me', {})).body).to.deep.equal({ name: 'local', role: 'admin', signOutUrl: null });
    });

    it('refuses the name of another machine, and another site, also there', async () => {
      const url = new URL(await whole(doorWith({ local: true })));
      const named = (headers: Record<string, string>) =>
        new Promise<number>((resolve, reject) => {
          const request = http.get({ host: url.hostname, port: url.port, path: '/admin/api/overview', headers }, (response) => {
            response.resume();
            resolve(response.statusCode ?? 0);
          });
          request.on('error', reject);
        });
      expect(await named({ host: `localhost:${url.port}` })).to.equal(200);
      expect(await named({ host: 'heph.example' }), 'a name that was pointed here').to.equal(401);
      expect(await named({ host: `localhost:${url.port}`, 'sec-fetch-site': 'cross-site' })).to.equal(403);
      expect(await named({ host: 'heph.example', ...bearer(TOKENS.viewer) }), 'a token needs no name').to.equal(200);
    });

    it('a token counts as its role and no more, and one that is none as nobody', async () => {
      const url = await whole(doorWith({ local: true }));
      for (const none of ['Bearer', 'Bearer two words', 'bearer x'])
        expect((await ask(url, 'GET /admin/api/overview', { authorization: none })).status, none).to.equal(401);
      expect((await ask(url, 'POST /admin/api/drain', bearer(TOKENS.viewer))).status).to.equal(403);
      expect((await ask(url, 'GET /admin/api/me', bearer(TOKENS.viewer))).body).to.include({ name: 'token:viewer', role: 'viewer' });
    });
  });

  it('writes into the log of actions who it was', async () => {
    await emptyLedger(database.db);
    await run(database.db, sql.unsafe`truncate operator_action`);
    const desk = await desks({ adminGuard: doorWith() });
    const order = { reason: 'night', idempotencyKey: uuidv7() };
    expect((await desk.post('claims/pause', order, bearer(TOKENS.operator))).body.operator).to.equal('token:operator');
    const { code, said } = await desk.heph('claims', 'resume', '--reason', 'day');
    expect([code, said]).to.satisfy(([exit, words]: [number, string]) => exit === 1 && /HEPH_OPS_TOKEN/.test(words), said);
    const rows = await run(database.db, sql.unsafe`select operator from operator_action order by id`);
    expect(rows).to.deep.equal([{ operator: 'token:operator' }]);
  });

  describe('where people sign in', () => {
    const openSignIn = useSignIn(database);
    const ORIGIN = 'https://ops.example';

    async function site(env: Record<string, string> = {}) {
      await emptyLedger(database.db);
      const it = await openSignIn({ env: { HEPH_OPS_PUBLIC_URL: ORIGIN, ...env } });
      const { opsSignIn, bearer: door } = it.people;
      if (!opsSignIn) throw new Error('no sign-in');
      const desk = await desks({ adminGuard: doorWith({ tokens: [], signIn: opsSignIn, bearer: door, local: true }), signIn: opsSignIn });
      const browser = new SignInBrowser({ origin: ORIGIN, port: Number(new URL(desk.url).port) });
      const account = async () => {
        const [row] = await run(database.db, sql.unsafe`select account_id from account_identity`);
        return String(row?.['account_id']) as never;
      };
      return { ...it, desk, browser, account };
    }
    const me = '/admin/api/me';

    it('asks a browser to sign in, on the name of HEPH_OPS_PUBLIC_URL and no other', async () => {
      const { browser } = await site();
      const { status, body } = await browser.fetch('GET', me);
      expect([status, body.code, body.signInUrl]).to.deep.equal([401, 'SIGNED_OUT', '/ops/sign-in']);
      const other = await browser.fetch('GET', '/ops/sign-in', { headers: { host: 'heph.example' } });
      expect([other.status, other.body.code]).to.deep.equal([403, 'FORBIDDEN']);
      expect(other.body.detail).to.include('HEPH_OPS_PUBLIC_URL');
    });

    it('lets nobody in by signing in alone, and everybody do what their role says, from the next request on', async () => {
      const { browser, account } = await site();
      expect((await browser.open('/ops/sign-in')).url, 'comes back to the page').to.equal(`${ORIGIN}/ops`);
      const stranger = await browser.fetch('GET', me);
      expect([stranger.status, stranger.body.code]).to.deep.equal([403, 'FORBIDDEN']);
      expect(stranger.body.detail).to.include('heph operator set');
      await giveRole(database.db, await account(), { role: 'viewer', by: 'local' });
      expect((await browser.fetch('GET', me)).body).to.deep.equal({ name: await account(), role: 'viewer', signOutUrl: '/auth/logout' });
      expect((await browser.fetch('GET', '/admin/api/overview')).status).to.equal(200);
      const pause = { body: { reason: 'night', idempotencyKey: uuidv7() } };
      expect((await browser.fetch('POST', '/admin/api/claims/pause', pause)).status).to.equal(403);
      await giveRole(database.db, await account(), { role: 'operator', by: 'local' });
      const paused = await browser.fetch('POST', '/admin/api/claims/pause', pause);
      expect([paused.status, paused.body.operator]).to.deep.equal([200, await account()]);
      await giveRole(database.db, await account(), { role: null, by: 'local' });
      expect((await browser.fetch('GET', me)).status, 'taken back at once').to.equal(403);
    });

    it('takes no write from another site, and no session on another name', async () => {
      const { browser, account } = await site();
      await browser.open('/ops/sign-in');
      await giveRole(database.db, await account(), { role: 'admin', by: 'local' });
      const order = { body: { reason: 'night', idempotencyKey: uuidv7() } };
      for (const origin of ['https://evil.example', 'null', '']) {
        const { status, body } = await browser.fetch('POST', '/admin/api/claims/pause', { ...order, headers: { origin } });
        expect([status, body.code], origin).to.deep.equal([403, 'ORIGIN_REFUSED']);
      }
      const { status } = await browser.fetch('GET', me, { headers: { host: 'heph.example' } });
      expect(status).to.equal(401);
      await browser.fetch('POST', '/auth/logout');
      expect((await browser.fetch('GET', me)).body.code).to.equal('SIGNED_OUT');
    });

    it('counts a member with the role operator as an operator, and a token of the issuer as its person', async () => {
      const { browser, invite, issuer, account } = await site({ HEPH_JWT_AUDIENCE: 'heph' });
      await invite('ada@example.com', 'operator');
      await browser.open('/ops/sign-in');
      expect((await browser.fetch('GET', me)).body).to.include({ role: 'operator' });
      const program = await browser.fetch('GET', me, { headers: bearer(await issuer.token()) });
      expect(program.body).to.deep.equal({ name: await account(), role: 'operator', signOutUrl: null });
      expect((await browser.fetch('GET', me, { headers: bearer('x.y.z') })).status).to.equal(401);
      await giveRole(database.db, await account(), { role: 'admin', by: 'local' });
      expect((await browser.fetch('GET', me)).body).to.include({ role: 'admin' });
      await run(database.db, sql.unsafe`update account set erasure_requested_at = clock_timestamp() returning 1`);
      expect((await browser.fetch('GET', me)).status, 'nobody who is being erased').to.be.oneOf([401, 403]);
    });
  });

  it('gives and takes roles with a reason, and lists who operates', async () => {
    await emptyLedger(database.db);
    await run(database.db, sql.unsafe`truncate operator_action`);
    const { accountId } = await makePerson(database.db);
    const desk = await desks();
    const said = async (...args: string[]) => (await desk.heph(...args)).said;
    expect(await said('operator', 'set', accountId, 'viewer', '--preview')).to.match(/^It would be done: It is viewer/);
    expect(await said('operator', 'set', accountId, 'viewer', '--reason', 'on call'))
      .to.include('before: role=-')
      .and.include('after:  role=viewer');
    expect(await said('operator', 'list')).to.match(new RegExp(`${accountId} +- +viewer +given +local`));
    expect(await said('operator', 'set', accountId, 'viewer', '--reason', 'x')).to.include('It is viewer already');
    expect(await said('operator', 'set', accountId, 'none', '--reason', 'left')).to.include('role=-');
    expect(await said('operator', 'list')).to.equal('There are none.\n');
    expect(await said('operator', 'set', 'nobody@example.com', 'viewer', '--reason', 'x')).to.include('Nobody is known');
    const rows = await run(database.db, sql.unsafe`select action, target, reason from operator_action order by id`);
    expect(rows.map(({ action, target, reason }) => [action, target, reason])).to.deep.equal([
      ['set-operator', `${accountId} viewer`, 'on call'],
      ['set-operator', `${accountId} none`, 'left'],
    ]);
    const key = uuidv7();
    await desk.post('operators', { member: accountId, role: 'viewer', reason: 'x', idempotencyKey: key });
    const other = await desk.post('operators', { member: accountId, role: 'admin', reason: 'x', idempotencyKey: key });
    expect(other.body.code, 'another role is another action').to.equal('KEY_REUSED');
  });

  describe('refuses at the start', () => {
    const problems = (env: Record<string, string>): string => {
      try {
        readConfig(env, '/nowhere');
        return '';
      } catch (error) {
        return (error as { problems: string[] }).problems.join('\n');
      }
    };

    it('a token that is shorter than its bound, or has spaces, without repeating it', () => {
      const short = 'k'.repeat(OPS_TOKEN_MIN_CHARS - 1);
      for (const name of Object.keys(ENV)) {
        expect(problems({ [name]: short }), name)
          .to.include(`${name} must be`)
          .and.not.include(short);
        expect(problems({ [name]: 'k'.repeat(OPS_TOKEN_MIN_CHARS) }), name).to.equal('');
        expect(problems({ [name]: `${'k'.repeat(40)} k` }), name).to.include(`${name} must be`);
      }
    });

    it('one token for two roles, and an address that is none', () => {
      const same = 'k'.repeat(40);
      expect(problems({ HEPH_OPS_VIEWER_TOKEN: same, HEPH_OPS_ADMIN_TOKEN: same }))
        .to.include('the same token')
        .and.not.include(same);
      expect(problems({ HEPH_OPS_PUBLIC_URL: 'https://ops.example/path' })).to.include('HEPH_OPS_PUBLIC_URL');
      expect(problems({ HEPH_OPS_PUBLIC_URL: 'http://ops.example' })).to.include('HEPH_OPS_PUBLIC_URL');
    });
  });
});
