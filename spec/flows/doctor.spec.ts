/**
 * `heph doctor` on this machine, word for word what a person sees.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';

const root = fileURLToPath(new URL('../..', import.meta.url));

describe('heph doctor', function () {
  this.timeout(60_000);
  const dataDir = mkdtempSync(path.join(tmpdir(), 'heph-doctor-'));
  after(() => rmSync(dataDir, { recursive: true, force: true }));

  function doctor(env: Readonly<Record<string, string>>): Promise<{ code: number; out: string }> {
    const inherited = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('HEPH_')));
    const options = {
      cwd: root,
      env: { ...inherited, HEPH_DATA_DIR: dataDir, HEPH_PORT: '0', HEPH_AGENT_PORT: '0', HEPH_OPS_PORT: '0', ...env },
    };
    return new Promise((resolve) => {
      execFile('bin/heph', ['doctor'], options, (error, out) => resolve({ code: Number(error?.code ?? 0), out }));
    });
  }

  it('says that Heph can run here, and names what is less than it could be', async () => {
    const { code, out } = await doctor({});
    expect(out)
      .to.match(/^ok +postgresql +embedded, version \d+$/m)
      .and.to.match(/^(ok|warning) +sandboxes +/m);
    expect(out)
      .to.match(/^warning +provider +none in the settings/m)
      .and.to.include('\nHeph can run here.\n');
    expect(code).to.equal(0);
  });

  it('names a busy port with its variable, and a database that does not answer without its password', async () => {
    const busy = createServer();
    await new Promise<void>((resolve) => busy.listen(0, '127.0.0.1', resolve));
    const { port } = busy.address() as { port: number };
    const { code, out } = await doctor({ HEPH_PORT: String(port), HEPH_DATABASE_URL: 'postgres://heph:secret-word@127.0.0.1:1/heph' });
    busy.close();
    expect(out).to.include(`port ${port}`).and.to.include('set HEPH_PORT to a free port');
    expect(out)
      .to.match(/^PROBLEM +postgresql +HEPH_DATABASE_URL does not answer$/m)
      .and.not.include('secret-word');
    expect(code).to.equal(1);
  });
});
