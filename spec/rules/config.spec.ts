/** Settings: what is read, what is refused and in which words. */
import { expect } from 'chai';
import { ConfigError, parseDurationMs, readConfig } from '../../src/config.ts';

function problems(env: Record<string, string>): readonly string[] {
  try {
    readConfig(env, '/somewhere');
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
}

const OIDC = {
  HEPH_AUTH: 'oidc',
  HEPH_PUBLIC_URL: 'https://heph.example.com',
  HEPH_OIDC_ISSUER: 'https://login.example.com/realm',
  HEPH_OIDC_CLIENT_ID: 'heph',
};
const PROVIDER = { HEPH_LLM_API: 'openai-completions', HEPH_LLM_BASE_URL: 'https://llm.example.com/v1', HEPH_LLM_MODEL: 'm' };

describe('the settings', () => {
  it('have the defaults that the design names', () => {
    const config = readConfig({}, '/somewhere');
    expect(config).to.include({ port: 8080, agentPort: 8081, opsPort: 9090, capacityTurns: 4, leaseTtlMs: 60_000, maxFollowUps: 10 });
    expect(config).to.include({ turnDeadlineMs: 300_000, modelFirstByteMs: 60_000, modelIdleMs: 60_000, modelNoContentMs: 180_000 });
    expect(config).to.include({ streamsPerAccountMax: 10, streamPingMs: 15_000, assistantName: 'Hephaestus', dataDir: '/somewhere/.heph' });
    expect(config.provider).to.equal(null);
    expect(config.databaseUrl).to.equal(null);
  });

  it('let turns load repositories over https, and nothing of this machine, unless they are told otherwise', () => {
    const MIB = 1024 * 1024;
    expect(readConfig({ PATH: '/bin' }, '/').git).to.deep.equal({
      ...{ program: 'git', searchPath: '/bin', allowFile: false, allowPrivate: false, freshMs: 60_000 },
      ...{ snapshotMaxBytes: 512 * MIB, mirrorMaxBytes: 2_048 * MIB, archivesMaxBytes: 2_048 * MIB },
    });
    expect(readConfig({ HEPH_GIT_CHECKOUT_ENABLED: 'false' }, '/').git).to.equal(null);
    expect(problems({ HEPH_GIT_CHECKOUT_ENABLED: 'false', HEPH_GIT_FRESH: '5' })[0]).to.include('HEPH_GIT_FRESH is "5"');
  });

  it('read durations with a unit and nothing else', () => {
    expect(['250ms', '25s', '15m', '14d', '2h'].map(parseDurationMs)).to.deep.equal([250, 25_000, 900_000, 1_209_600_000, 7_200_000]);
    for (const bad of ['', '5', '5 m', '-1s', '1.5s', '1M', 's', '9'.repeat(20) + 's']) expect(parseDurationMs(bad), bad).to.equal(null);
  });

  it('accept a value at each limit and refuse the next one', () => {
    for (const [name, good, bad] of [
      ['HEPH_MENTOR_TURN_DEADLINE', '15m', '901s'],
      ['HEPH_PORT', '65535', '65536'],
      ['HEPH_LLM_CONTEXT_TOKENS', '32768', '32767'],
      ['HEPH_MENTOR_TURN_MAX_FOLLOW_UPS', '1', '0'],
      ['HEPH_GIT_MAX_SNAPSHOT_BYTES', '1048576', '1048575'],
      ['HEPH_GIT_FRESH', '1d', '25h'],
      ['HEPH_SLACK_RETENTION', '15d', '359h'],
    ] as const) {
      expect(problems({ [name]: good, ...(name.includes('LLM') ? PROVIDER : {}) }), name).to.deep.equal([]);
      expect(problems({ [name]: bad, ...(name.includes('LLM') ? PROVIDER : {}) })[0], name).to.include(`${name} is "${bad}"; allowed: `);
    }
  });

  it('are complained about all at once', () => {
    expect(problems({ HEPH_PORT: 'x', HEPH_AUTH: 'magic', HEPH_LOG_LEVEL: 'loud' })).to.have.length(3);
  });

  it('never repeat a secret', () => {
    const said = problems({
      ...PROVIDER,
      HEPH_DATABASE_URL: 'mysql://user:hunter2@host/db',
      HEPH_LLM_API_KEY: 'hunter2',
      HEPH_LLM_API: 'x',
    });
    expect(said.join()).to.include('HEPH_DATABASE_URL').and.not.include('hunter2');
  });

  it('take prices in pairs and keep them as they are written', () => {
    const prices = { HEPH_LLM_INPUT_PRICE: '0.10', HEPH_LLM_OUTPUT_PRICE: '2' };
    expect(readConfig({ ...PROVIDER, ...prices }, '/').provider?.price).to.deep.equal({ input: '0.10', output: '2' });
    expect(readConfig(PROVIDER, '/').provider?.price).to.equal(null);
    expect(problems({ ...PROVIDER, HEPH_LLM_INPUT_PRICE: '1' }).join()).to.include('HEPH_LLM_OUTPUT_PRICE is not');
    expect(problems({ ...PROVIDER, ...prices, HEPH_LLM_INPUT_PRICE: '1,5' }).join()).to.include('a decimal such as 0.25');
  });

  it('take secret keys of 32 bytes, and never repeat one', () => {
    const key = Buffer.alloc(32, 7).toString('base64');
    expect(readConfig({ HEPH_SECRET_KEY: key }, '/').secretKeys.current).to.deep.equal(Buffer.alloc(32, 7));
    const said = problems({ HEPH_SECRET_KEY_OLD: 'aHVudGVyMg==' }).join();
    expect(said).to.include('HEPH_SECRET_KEY_OLD must hold 32').and.not.include('aHVudGVyMg').and.not.include('hunter2');
  });

  it('want the whole provider or none of it', () => {
    expect(readConfig(PROVIDER, '/').provider).to.deep.include({ api: 'openai-completions', model: 'm', apiKey: null });
    expect(problems({ HEPH_LLM_API_KEY: 'k' }).join())
      .to.include('HEPH_LLM_BASE_URL')
      .and.include('HEPH_LLM_MODEL');
    expect(problems({ ...PROVIDER, HEPH_LLM_BASE_URL: 'file:///etc/passwd' })).to.have.length(1);
  });

  it('refuse to open the local sign-in to the network', () => {
    for (const host of ['0.0.0.0', '::', '192.0.2.1', 'example.com']) expect(problems({ HEPH_BIND: host }), host).to.have.length(1);
    for (const host of ['127.0.0.1', '127.0.0.2', '::1', 'localhost']) expect(problems({ HEPH_BIND: host }), host).to.deep.equal([]);
  });

  it('want all of the sign-in, and name what is missing', () => {
    const { auth } = readConfig(OIDC, '/');
    expect(auth).to.include({ kind: 'oidc', clientId: 'heph', clientSecret: null, scopes: 'openid profile email', bearer: null });
    expect(auth).to.include({ sessionMaxMs: 14 * 86_400_000, sessionIdleMs: 86_400_000 });
    for (const name of ['HEPH_PUBLIC_URL', 'HEPH_OIDC_ISSUER', 'HEPH_OIDC_CLIENT_ID']) {
      expect(problems({ ...OIDC, [name]: '' }), name).to.deep.equal([`${name} is not set, and HEPH_AUTH is oidc. Set it.`]);
    }
    expect(readConfig({}, '/').auth).to.deep.equal({ kind: 'local' });
  });

  it('want all of a cluster, and name what is missing', () => {
    const cluster = {
      HEPH_SANDBOX_HOST: 'kubernetes',
      HEPH_KUBERNETES_WARM_POOL: 'runners',
      HEPH_KUBERNETES_AGENT_URL: 'http://heph-agent:8081',
    };
    expect(readConfig(cluster, '/').kubernetes).to.deep.include({
      namespace: null,
      warmPool: 'runners',
      readyMs: 120_000,
      suspendedMs: 3_600_000,
    });
    expect(readConfig({}, '/').kubernetes).to.equal(null);
    for (const name of ['HEPH_KUBERNETES_WARM_POOL', 'HEPH_KUBERNETES_AGENT_URL']) {
      expect(problems({ ...cluster, [name]: '' }), name).to.deep.equal([
        `${name} is not set, and HEPH_SANDBOX_HOST is kubernetes. Set it.`,
      ]);
    }
    for (const bad of ['Runners', 'a/b', '-a', '']) {
      const said = problems({ ...cluster, HEPH_KUBERNETES_NAMESPACE: bad });
      expect(said, bad).to.have.length(bad === '' ? 0 : 1);
    }
    expect(problems({ ...cluster, HEPH_KUBERNETES_AGENT_URL: 'http://heph:8081/path' })[0]).to.include('an origin without a path');
  });

  it('open to the network with a sign-in, but never with commands that are not isolated', () => {
    expect(problems({ ...OIDC, HEPH_BIND: '0.0.0.0' })).to.deep.equal([]);
    expect(problems({ ...OIDC, HEPH_SANDBOX_ALLOW_UNISOLATED: 'true' })[0]).to.match(/^HEPH_SANDBOX_ALLOW_UNISOLATED is "true"/);
  });

  for (const name of ['HEPH_PUBLIC_URL', 'HEPH_OIDC_ISSUER', 'HEPH_JWT_ISSUER', 'HEPH_JWT_JWKS_URL']) {
    it(`take http for ${name} on this machine only, and never repeat a secret of it`, () => {
      const settings = (value: string) => ({ ...OIDC, HEPH_JWT_AUDIENCE: 'heph', [name]: value });
      for (const good of ['http://localhost:8080', 'http://127.0.0.1:1', 'http://[::1]:1', 'https://h.example']) {
        expect(problems(settings(good)), good).to.deep.equal([]);
      }
      const bad = ['http://heph.example', 'http://localhost.evil.example', 'ftp://localhost', 'localhost', 'https://u:hunter2@h.example'];
      for (const value of [...bad, 'https://h.example/?key=hunter2', 'https://h.example/#hunter2']) {
        const said = problems(settings(value));
        expect(said, value).to.have.length(1);
        expect(said[0])
          .to.match(new RegExp(`^${name} is "`))
          .and.not.include('hunter2');
      }
    });
  }

  it('take an origin as the public URL, without a path', () => {
    expect(problems({ ...OIDC, HEPH_PUBLIC_URL: 'https://h.example/heph' })[0]).to.include('an origin without a path');
    expect(readConfig({ ...OIDC, HEPH_PUBLIC_URL: 'https://H.example:443' }, '/').auth).to.have.nested.property(
      'publicUrl.origin',
      'https://h.example',
    );
  });

  it('take Bearer tokens for a named audience, signed with a public key and nothing else', () => {
    const bearer = (env: Record<string, string>) => {
      const { auth } = readConfig({ ...OIDC, ...env }, '/');
      return auth.kind === 'oidc' ? auth.bearer : null;
    };
    expect(bearer({ HEPH_JWT_AUDIENCE: 'heph' })).to.include({ audience: 'heph', jwksUrl: null });
    expect(bearer({ HEPH_JWT_AUDIENCE: 'heph' })?.algorithms).to.deep.equal(['RS256', 'ES256', 'EdDSA']);
    expect(bearer({ HEPH_JWT_AUDIENCE: 'heph' })?.issuer.href).to.equal(OIDC.HEPH_OIDC_ISSUER);
    expect(bearer({ HEPH_JWT_AUDIENCE: 'heph', HEPH_JWT_ALGORITHMS: 'PS256, ES512' })?.algorithms).to.deep.equal(['PS256', 'ES512']);
    for (const refused of ['none', 'HS256', 'RS256,HS512', 'rs256']) {
      expect(problems({ ...OIDC, HEPH_JWT_AUDIENCE: 'heph', HEPH_JWT_ALGORITHMS: refused })[0], refused).to.match(
        /^HEPH_JWT_ALGORITHMS is "/,
      );
    }
    expect(problems({ ...OIDC, HEPH_JWT_ISSUER: 'https://other.example' })[0]).to.include('HEPH_JWT_AUDIENCE is not');
  });

  it('take sessions of a minute to a year, and scopes with openid', () => {
    for (const [name, good, bad] of [
      ['HEPH_SESSION_MAX', '1m', '59s'],
      ['HEPH_SESSION_IDLE', '365d', '366d'],
      ['HEPH_OIDC_SCOPES', 'email openid', 'profile email'],
    ] as const) {
      expect(problems({ ...OIDC, [name]: good }), name).to.deep.equal([]);
      expect(problems({ ...OIDC, [name]: bad })[0], name).to.include(`${name} is "${bad}"; allowed: `);
    }
  });

  it('point out variables that mean nothing, but not those of the tests', () => {
    expect(readConfig({ HEPH_PROT: '1', HEPH_TEST_DATABASE_URL: 'x', PATH: '/bin' }, '/').unknownVariables).to.deep.equal(['HEPH_PROT']);
  });
});
