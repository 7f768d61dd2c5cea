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

  it('point out variables that mean nothing, but not those of the tests', () => {
    expect(readConfig({ HEPH_PROT: '1', HEPH_TEST_DATABASE_URL: 'x', PATH: '/bin' }, '/').unknownVariables).to.deep.equal(['HEPH_PROT']);
  });
});
