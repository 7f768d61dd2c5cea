/**
 * The built page: what is kept, what is not, what a browser may load, and what no path may reach.
 */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import zlib from 'node:zlib';
import { expect } from 'chai';
import { buildOpenApi } from '../../src/http/openapi.ts';
import { webRoutes } from '../../src/http/web/listener.ts';
import { useDatabase } from '../support/database.ts';
import { type HttpRig, useRigs } from '../support/http-rig.ts';

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
  "manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/** Status and body of a GET with this encoding, as bytes. */
async function encoded(port: number, target: string, encoding: string): Promise<{ head: string; body: Buffer }> {
  const socket = net.connect(port, '127.0.0.1');
  socket.write(`GET ${target} HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: ${encoding}\r\nConnection: close\r\n\r\n`);
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk as Buffer);
  const all = Buffer.concat(chunks);
  const at = all.indexOf('\r\n\r\n');
  return { head: all.subarray(0, at).toString(), body: all.subarray(at + 4) };
}

describe('the page', () => {
  const database = useDatabase();
  const openRig = useRigs(database);
  const script = `console.log(${JSON.stringify('heph '.repeat(1_000))});`;
  let folder: string;
  let rig: HttpRig;

  before(() => {
    folder = mkdtempSync(path.join(tmpdir(), 'heph-page-'));
    mkdirSync(path.join(folder, 'web/assets'), { recursive: true });
    writeFileSync(path.join(folder, 'secret.txt'), 'secret');
    writeFileSync(path.join(folder, 'web/index.html'), '<!doctype html><title>Heph</title>');
    writeFileSync(path.join(folder, 'web/assets/index-DiwrgTda.js'), script);
    writeFileSync(path.join(folder, 'web/favicon.svg'), '<svg/>');
    writeFileSync(path.join(folder, 'web/.hidden'), 'secret');
    symlinkSync(path.join(folder, 'secret.txt'), path.join(folder, 'web/link.txt'));
  });
  after(() => rmSync(folder, { recursive: true }));
  beforeEach(async () => {
    rig = await openRig({ pageFolder: path.join(folder, 'web') });
  });

  it('is served at / and never kept, with a policy that lets it load only its own files', async () => {
    const { status, headers, text } = await rig.send('GET', '/');
    expect([status, headers.get('content-type'), headers.get('cache-control')]).to.deep.equal([
      200,
      'text/html; charset=utf-8',
      'no-store',
    ]);
    expect(text).to.include('<title>Heph</title>');
    expect(headers.get('content-security-policy')).to.equal(POLICY);
    expect(headers.get('x-content-type-options')).to.equal('nosniff');
    expect(headers.get('referrer-policy')).to.equal('no-referrer');
    expect(headers.get('cross-origin-opener-policy')).to.equal('same-origin');
    expect(headers.get('etag')).to.equal(null);
  });

  it('keeps files that are named by their content for ever, and asks again for the others', async () => {
    const hashed = await rig.send('GET', '/assets/index-DiwrgTda.js');
    expect([hashed.status, hashed.headers.get('cache-control')]).to.deep.equal([200, 'public, max-age=31536000, immutable']);
    expect(hashed.headers.get('content-type')).to.equal('text/javascript; charset=utf-8');
    expect(hashed.text).to.equal(script);
    const other = await rig.send('GET', '/favicon.svg');
    expect([other.status, other.headers.get('cache-control')]).to.deep.equal([200, 'no-cache']);
    const again = await encoded(rig.webPort, '/favicon.svg', `identity\r\nIf-None-Match: ${other.headers.get('etag')}`);
    expect(again.head).to.match(/^HTTP\/1\.1 304 /);
    expect(again.body.length).to.equal(0);
  });

  it('is compressed as the browser asks, with brotli before gzip', async () => {
    const both = await encoded(rig.webPort, '/assets/index-DiwrgTda.js', 'gzip, br');
    expect(both.head)
      .to.match(/content-encoding: br/i)
      .and.to.match(/vary: accept-encoding/i);
    expect(String(await promisify(zlib.brotliDecompress)(both.body))).to.equal(script);
    const gzip = await encoded(rig.webPort, '/assets/index-DiwrgTda.js', 'gzip');
    expect(String(await promisify(zlib.gunzip)(gzip.body))).to.equal(script);
    const plain = await encoded(rig.webPort, '/assets/index-DiwrgTda.js', 'identity');
    expect(String(plain.body)).to.equal(script);
  });

  it('shows a new build without a restart', async () => {
    writeFileSync(path.join(folder, 'web/index.html'), '<!doctype html><title>Heph, newer</title>');
    expect((await rig.send('GET', '/')).text).to.include('newer');
    writeFileSync(path.join(folder, 'web/index.html'), '<!doctype html><title>Heph</title>');
  });

  for (const target of [
    '/../secret.txt',
    '/%2e%2e/secret.txt',
    '/..%2fsecret.txt',
    '/assets/../../secret.txt',
    '/.hidden',
    '/link.txt',
    '/assets',
    '/%00',
    '//etc/passwd',
  ]) {
    it(`does not serve ${target}`, async () => {
      const { head, body } = await encoded(rig.webPort, target, 'identity');
      expect(head).to.match(/^HTTP\/1\.1 404 /);
      expect(String(body)).to.include('NOT_FOUND');
    });
  }

  it('takes only GET and HEAD', async () => {
    const { status, headers } = await rig.send('POST', '/');
    expect([status, headers.get('allow')]).to.deep.equal([405, 'GET, HEAD']);
    expect((await rig.send('HEAD', '/')).status).to.equal(200);
  });

  it('says what to do when it is not built', async () => {
    const bare = await openRig({ pageFolder: path.join(folder, 'nothing') });
    const { status, body } = await bare.send('GET', '/');
    expect([status, body.code]).to.deep.equal([404, 'NOT_FOUND']);
    expect(body.detail).to.match(/npm run build/);
  });

  it('is described by /openapi.json, route by route', async () => {
    const { status, body } = await rig.send('GET', '/openapi.json');
    expect(status).to.equal(200);
    expect(body).to.deep.equal(JSON.parse(JSON.stringify(buildOpenApi())));
    const described = Object.entries(body.paths).flatMap(([at, methods]) =>
      Object.keys(methods as object).map((method) => `${method} ${at}`),
    );
    const routed = webRoutes({ signIn: {} } as never).map(
      ({ method, path: at }) => `${method.toLowerCase()} ${at.replaceAll(/:(\w+)/g, '{$1}')}`,
    );
    expect(described.sort()).to.deep.equal([...routed].sort());
    expect(body.components.schemas).to.include.keys('Turn', 'Entry', 'Problem', 'Snapshot');
  });
});
