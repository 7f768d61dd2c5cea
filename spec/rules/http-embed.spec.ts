/**
 * The panel for other sites on the wire: which pages may show it in a frame, and that nothing else of the listener may be shown in one.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect } from 'chai';
import { ConfigError, readConfig } from '../../src/config.ts';
import { useDatabase } from '../support/database.ts';
import { useRigs } from '../support/http-rig.ts';

const WIKI = 'https://wiki.example.com';
const FORGE = 'https://forge.example.com:8443';

describe('the panel for other sites', () => {
  const database = useDatabase();
  const openRig = useRigs(database);
  let folder: string;
  before(() => {
    folder = mkdtempSync(path.join(tmpdir(), 'heph-embed-'));
    mkdirSync(path.join(folder, 'embed'));
    writeFileSync(path.join(folder, 'index.html'), '<!doctype html><title>Chat</title>');
    writeFileSync(path.join(folder, 'embed/index.html'), '<!doctype html><title>Panel</title>');
    writeFileSync(path.join(folder, 'embed.js'), '(() => {})();');
  });
  after(() => rmSync(folder, { recursive: true }));

  it('may be shown by the origins of the setting and by no other; every other page of the server by none', async () => {
    const rig = await openRig({ pageFolder: folder, embedOrigins: [WIKI, FORGE] });
    const { status, headers, text } = await rig.send('GET', '/embed?host=https://elsewhere.example');
    expect([status, text]).to.deep.equal([200, '<!doctype html><title>Panel</title>']);
    const policy = headers.get('content-security-policy')?.split('; ') ?? [];
    expect(policy).to.include.members([`frame-ancestors ${WIKI} ${FORGE}`, "script-src 'self'", "default-src 'none'"]);
    expect(policy.join()).to.not.include('unsafe');
    expect([headers.get('cross-origin-resource-policy'), headers.get('cache-control')]).to.deep.equal(['cross-origin', 'no-store']);
    for (const other of ['/', '/session', '/openapi.json', '/embed/', '/embed/index.html', '/nothing']) {
      const { headers: own } = await rig.send('GET', other);
      expect(own.get('content-security-policy'), other).to.include("frame-ancestors 'none'");
      expect(own.get('cross-origin-resource-policy'), other).to.equal('same-origin');
    }
  });

  it('has a script that pages of other sites may load, and that is asked for again each time', async () => {
    const rig = await openRig({ pageFolder: folder, embedOrigins: [WIKI] });
    const { status, headers, text } = await rig.send('GET', '/embed.js');
    expect([status, text, headers.get('content-type')]).to.deep.equal([200, '(() => {})();', 'text/javascript; charset=utf-8']);
    expect([headers.get('cross-origin-resource-policy'), headers.get('cache-control')]).to.deep.equal(['cross-origin', 'no-cache']);
    expect(headers.get('etag')).to.match(/^"/);
    expect((await rig.send('POST', '/embed', { body: {} })).status).to.equal(405);
  });

  it('is switched off by default, and says how to allow it', async () => {
    const rig = await openRig({ pageFolder: folder });
    for (const at of ['/embed', '/embed.js']) {
      const { status, headers, text } = await rig.send('GET', at);
      expect([status, headers.get('content-type')], at).to.deep.equal([404, 'text/html; charset=utf-8']);
      expect(text).to.include('HEPH_EMBED_ORIGINS').and.include('data-reason="embed-off"');
      expect(headers.get('content-security-policy')).to.include("frame-ancestors 'none'");
    }
  });
});

describe('HEPH_EMBED_ORIGINS', () => {
  const origins = (value: string) => readConfig({ HEPH_EMBED_ORIGINS: value }, '/').embedOrigins;
  const problem = (value: string): string => {
    try {
      origins(value);
      return '';
    } catch (error) {
      return error instanceof ConfigError ? error.problems.join() : String(error);
    }
  };

  it('is a list of origins, each once and as a browser writes it; none by default', () => {
    expect(readConfig({}, '/').embedOrigins).to.deep.equal([]);
    expect(origins('')).to.deep.equal([]);
    expect(origins(`${WIKI}, ${WIKI}:443 ,HTTPS://Forge.Example.com:8443/ http://localhost:3000`)).to.deep.equal([
      WIKI,
      FORGE,
      'http://localhost:3000',
    ]);
  });

  for (const bad of [
    '*',
    'https://*.example.com',
    "'self'",
    'wiki.example.com',
    'http://wiki.example.com',
    `${WIKI}/a`,
    `${WIKI}?a`,
    'data:x',
    'https://u:p@a.example',
  ]) {
    it(`refuses ${bad}`, () => {
      expect(problem(`${WIKI},${bad}`)).to.include(`HEPH_EMBED_ORIGINS is "${bad}"; allowed: origins separated by commas`);
    });
  }

  it('takes 50 origins and not 51', () => {
    const many = (count: number) => Array.from({ length: count }, (_, n) => `https://s${n}.example.com`).join(',');
    expect(origins(many(50))).to.have.length(50);
    expect(problem(many(51))).to.include('at most 50');
  });
});
