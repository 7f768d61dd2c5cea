/**
 * The files for one host, read as Docker Compose reads them: what they set is what Heph reads, the servers agree, and only the proxy is reachable.
 */
import { existsSync, readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import path from 'node:path';
import { expect } from 'chai';
import { parse } from 'yaml';
import { readConfig } from '../../src/config.ts';
import { freshDatabase } from '../support/database.ts';
import { PROJECT } from '../support/dockerfile.ts';
import { removeDataDirs, ServerProcess } from '../support/server-process.ts';
import { skipLoudly } from '../support/skip.ts';

const read = (name: string): string => readFileSync(path.join(PROJECT, 'deploy', name), 'utf8');
const SERVERS = ['server-1', 'server-2'] as const;

/** A filled-in heph.env. */
const FILLED: Readonly<Record<string, string>> = {
  HEPH_PUBLIC_URL: 'https://heph.example.com',
  HEPH_OIDC_ISSUER: 'https://login.example.com/realm',
  HEPH_OIDC_CLIENT_ID: 'heph',
  HEPH_OIDC_CLIENT_SECRET: 'a-word',
  HEPH_SECRET_KEY: Buffer.alloc(32, 3).toString('base64'),
  POSTGRES_PASSWORD: '0123456789abcdef',
};

const VARIABLE = /\$\{(?<name>\w+)(?::(?<how>[-?])(?<rest>[^}]*))?\}/g;

/** `${NAME}`, `${NAME:-default}` and `${NAME:?why}` in one text, by these variables. */
function interpolated(text: string, variables: Readonly<Record<string, string>>): string {
  let result = text;
  for (const { 0: whole, groups } of text.matchAll(VARIABLE)) {
    const { name = '', how, rest = '' } = groups ?? {};
    const value = variables[name] ?? '';
    if (value === '' && how === '?') throw new Error(`${name}: ${rest}`);
    result = result.replace(whole, () => value || rest);
  }
  return result;
}

// biome-ignore lint/suspicious/noExplicitAny: a compose file has whatever shape it has; the specs look at it.
function compose(variables = FILLED): any {
  const whole = parse(read('compose.yaml'), { merge: true });
  return JSON.parse(JSON.stringify(whole), (_, value) => (typeof value === 'string' ? interpolated(value, variables) : value));
}

/** As a container gets them. */
const strings = (settings: object): Record<string, string> =>
  Object.fromEntries(Object.entries(settings).map(([name, value]) => [name, String(value)]));

describe('the compose file', () => {
  it('asks for each secret by its name, and starts without none of them', () => {
    const wanted = Object.keys(FILLED).filter((name) => name !== 'HEPH_OIDC_CLIENT_SECRET'); // a public client has none
    for (const name of wanted) expect(() => compose({ ...FILLED, [name]: '' }), name).to.throw(`${name}: set it in heph.env`);
    const offered = [...read('heph.env.example').matchAll(/^(\w+)=(.*)$/gm)].map(([, name = '', value = '']) => [name, value] as const);
    const names = offered.map(([name]) => name);
    expect(names).to.include.members(Object.keys(FILLED));
    const asked = [...read('compose.yaml').matchAll(/\$\{(\w+)/g)].map(([, name]) => name);
    expect(
      names.filter((name) => !asked.includes(name)),
      'offered and not asked for',
    ).to.deep.equal([]);
    for (const [name, value] of offered) if (/KEY|SECRET|PASSWORD/.test(name)) expect(value, name).to.equal('');
    expect(readFileSync(path.join(PROJECT, '.gitignore'), 'utf8').split('\n')).to.include('deploy/heph.env');
  });

  it('gives both servers the same settings, and Heph takes them', () => {
    const { services } = compose();
    const [first, second] = SERVERS.map((name) => services[name]);
    expect(first.environment).to.deep.equal(second.environment);
    expect(first.environment.HEPH_AGENT_CAPACITY_TURNS).to.equal('8');
    expect(first.volumes, 'a data directory of their own').to.not.deep.equal(second.volumes);
    for (const variables of [
      FILLED,
      { ...FILLED, HEPH_LLM_API: 'anthropic-messages', HEPH_LLM_BASE_URL: 'https://llm.example.com', HEPH_LLM_MODEL: 'm' },
    ]) {
      const environment = compose(variables).services['server-1'].environment;
      const config = readConfig({ ...environment, HEPH_DATA_DIR: '/var/lib/heph' }, '/');
      expect(config.unknownVariables).to.deep.equal([]);
      expect(config).to.include({ bindHost: '0.0.0.0', capacityTurns: 8, port: 8080, opsPort: 9090 });
      expect(config.databaseUrl).to.equal('postgres://heph:0123456789abcdef@postgres:5432/heph');
      expect(config.auth.kind).to.equal('oidc');
      expect(config.provider === null).to.equal(variables === FILLED);
    }
  });

  it('looks after every service, by a version that does not move', () => {
    const { services } = compose();
    const { version } = JSON.parse(readFileSync(path.join(PROJECT, 'package.json'), 'utf8'));
    for (const [name, service] of Object.entries<ReturnType<typeof compose>>(services)) {
      expect(service.image, name).to.match(/^[a-z-]+:\d+\.\d+(\.\d+)?(-[a-z]+)?$/);
      expect(service.healthcheck?.test?.[0], name).to.equal('CMD');
      expect(service.restart, name).to.equal('unless-stopped');
    }
    for (const name of SERVERS) {
      const { image, build, depends_on, stop_grace_period, environment, healthcheck } = services[name];
      expect(image).to.equal(`heph-server:${version}`);
      expect(existsSync(path.join(PROJECT, build.dockerfile))).to.equal(true);
      expect(path.join('deploy', build.context)).to.equal('.');
      for (const needed of ['postgres', 'redis']) expect(depends_on[needed]).to.deep.equal({ condition: 'service_healthy' });
      // A drain, and 3 s for each part that comes after it.
      const { shutdownGraceMs } = readConfig({ HEPH_SHUTDOWN_GRACE: environment.HEPH_SHUTDOWN_GRACE }, '/');
      expect(Number.parseInt(stop_grace_period, 10) * 1_000).to.be.at.least(shutdownGraceMs + 4 * 3_000);
      expect(healthcheck.test.join(' ')).to.include(':9090/readyz');
    }
    expect(services.postgres.image).to.match(/^postgres:18\./);
  });

  it('confines the servers, and lets people reach the proxy alone', () => {
    const { services, networks } = compose();
    for (const name of SERVERS) {
      expect(services[name]).to.deep.include({ read_only: true, cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'] });
      expect(services[name].volumes[0]).to.match(/:\/var\/lib\/heph$/);
    }
    const published = Object.keys(services).filter((name) => services[name].ports !== undefined);
    expect(published).to.deep.equal(['proxy']);
    expect(networks.inside).to.deep.equal({ internal: true });
    for (const name of ['postgres', 'redis']) expect(services[name].networks, name).to.deep.equal(['inside']);
    expect(services.proxy.networks, 'the proxy does not reach the database').to.deep.equal(['outside']);
    expect(JSON.stringify(services)).to.not.match(/docker\.sock|privileged":true/);
  });

  it('opens a server for sandboxes only where it is told to, and changes nothing else of it', () => {
    const more = parse(read('compose.sandboxes.yaml'), { merge: true });
    expect(Object.keys(more.services)).to.deep.equal([...SERVERS]);
    for (const name of SERVERS) {
      expect(Object.keys(more.services[name])).to.deep.equal(['security_opt']);
      expect(more.services[name].security_opt).to.include('no-new-privileges:true').and.include('seccomp:unconfined');
    }
  });

  it('has a proxy that knows both servers, asks for their readiness, and holds no stream back', () => {
    const [caddy, { services }] = [read('Caddyfile'), compose()];
    expect(/reverse_proxy ([^{]+) \{/.exec(caddy)?.[1]?.split(' ')).to.deep.equal(SERVERS.map((name) => `${name}:8080`));
    expect(caddy).to.match(/^\{\$HEPH_PUBLIC_URL\} \{$/m);
    expect(services.proxy.environment).to.deep.equal({ HEPH_PUBLIC_URL: FILLED['HEPH_PUBLIC_URL'] });
    expect(services.proxy.volumes).to.include('./Caddyfile:/etc/caddy/Caddyfile:ro');
    for (const line of [
      'flush_interval -1',
      'read_timeout 0',
      'write_timeout 0',
      'health_port 9090',
      'health_uri /readyz',
      'health_status 200',
    ])
      expect(caddy.split('\n').map((one) => one.trim())).to.include(line);
    expect(caddy, 'Heph answers only its own Host').to.not.match(/header_up\s+Host/);
  });

  describe('a server with its settings', function () {
    this.timeout(120_000);

    it('is asked from outside whether it is ready, and does nothing for operators from there', async function () {
      const address = Object.values(networkInterfaces())
        .flatMap((all) => all ?? [])
        .find(({ family, internal }) => family === 'IPv4' && !internal)?.address;
      if (address === undefined) skipLoudly(this, 'this machine has no address but loopback');
      const { HEPH_REDIS_URL: _redis, ...settings } = compose().services['server-1'].environment as Record<string, string>;
      const fresh = await freshDatabase();
      const ports = { HEPH_PORT: '0', HEPH_AGENT_PORT: '0', HEPH_OPS_PORT: '0' };
      const quick = { HEPH_SANDBOX_WARM: '0', HEPH_SANDBOX_ISOLATION: 'off' };
      const server = await ServerProcess.start({ env: { ...strings(settings), ...quick, ...ports, HEPH_DATABASE_URL: fresh.url } });
      try {
        const ask = (port: number, where: string) => fetch(`http://${address}:${port}${where}`, { redirect: 'manual' });
        for (const where of ['/readyz', '/livez', '/startupz', '/metrics'])
          expect((await ask(server.opsPort, where)).status, where).to.equal(200);
        expect((await ask(server.opsPort, '/admin/api/turns')).status, 'operators are on the machine itself').to.equal(403);
        expect((await ask(server.port, '/session')).status, 'another Host than the public one').to.be.within(400, 499);
      } finally {
        expect(await server.stop()).to.equal(0);
        await fresh.drop();
        removeDataDirs();
      }
    });
  });
});
