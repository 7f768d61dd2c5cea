/**
 * Owns: the Chromium of specs: unpacked from @sparticuz/chromium once per version and user below the temporary folder, and started.
 * Does not own: pages and what may happen in them (browser.ts).
 * HEPH_TEST_CHROMIUM names another browser of the same family; needed where the package has none (it is for x64 Linux only).
 */
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type Browser, chromium } from 'playwright-core';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));
const PACKAGE = '@sparticuz/chromium';
const UNPACK_LIMIT_MS = 120_000;
const LAUNCH_LIMIT_MS = 30_000;

/**
 * Not the package's own list: that one switches the web's security off. The last one keeps the browser on this machine: no other name
 * resolves, whatever a page or the browser itself asks for.
 */
const ARGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--no-default-browser-check',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-domain-reliability',
  '--disable-sync',
  '--no-pings',
  '--font-render-hinting=none',
  '--host-resolver-rules=MAP localhost 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
];

/** Runs in a process of its own: the package unpacks into TMPDIR, and whoever wrote a program must be gone before it can be started. */
const UNPACK = `
  import chromium, { inflate } from '${PACKAGE}';
  await chromium.executablePath();
  await inflate(new URL('../bin/al2023.tar.br', import.meta.resolve('${PACKAGE}')).pathname);
`;

interface Program {
  readonly executable: string;
  /** What a bare machine may lack; empty for a browser that was given. */
  readonly libraries: string;
  /** A configuration of fontconfig. */
  readonly fonts: string;
}

/** Why this machine has no browser for specs; null when it has one. */
export function whyNoBrowser(): string | null {
  if (process.env['HEPH_TEST_CHROMIUM'] || (process.platform === 'linux' && process.arch === 'x64')) return null;
  return `${PACKAGE} has no browser for ${process.platform} on ${process.arch}; set HEPH_TEST_CHROMIUM to the path of a Chromium`;
}

/** The browser that specs use, unpacked when it is not there yet. */
async function unpacked(): Promise<Program> {
  const given = process.env['HEPH_TEST_CHROMIUM'];
  if (given) return { executable: given, libraries: '', fonts: '' };
  const manifest = path.join(fileURLToPath(import.meta.resolve(PACKAGE)), '../../package.json');
  const { version } = JSON.parse(readFileSync(manifest, 'utf8')) as { version: string };
  const folder = path.join(tmpdir(), `heph-chromium-${version}-${process.getuid?.() ?? 'user'}`);
  const executable = path.join(folder, 'chromium');
  if (!existsSync(executable)) await unpack(folder, executable);
  return { executable, libraries: path.join(folder, 'al2023/lib'), fonts: path.join(folder, 'fonts.conf') };
}

/** Unpacks into a folder of its own and moves it into place: of several at the same time one wins, and all use what it made. */
async function unpack(folder: string, executable: string): Promise<void> {
  const staging = mkdtempSync(`${folder}-`);
  try {
    const env = { ...process.env, TMPDIR: staging };
    await run(process.execPath, ['--input-type=module', '--eval', UNPACK], { cwd: root, env, timeout: UNPACK_LIMIT_MS });
    // The package's own configuration names folders that are not there.
    const fonts = `<dir>${folder}/fonts</dir><cachedir>${folder}/fonts-cache</cachedir>`;
    writeFileSync(path.join(staging, 'fonts.conf'), `<?xml version="1.0"?>\n<fontconfig>${fonts}</fontconfig>\n`);
    if (!existsSync(executable)) rmSync(folder, { recursive: true, force: true }); // what a cleaner of temporary folders left
    renameSync(staging, folder);
  } catch (error) {
    if (!existsSync(executable)) throw error; // else another process was faster
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}

function launch({ executable, libraries, fonts }: Program, withLibraries: boolean): Promise<Browser> {
  const inherited = Object.entries(process.env).filter(([name, value]) => value !== undefined && !name.startsWith('HEPH_'));
  const env: Record<string, string> = Object.fromEntries(inherited) as Record<string, string>;
  if (fonts !== '' && !existsSync('/etc/fonts/fonts.conf')) env['FONTCONFIG_FILE'] = fonts;
  if (withLibraries) env['LD_LIBRARY_PATH'] = [libraries, process.env['LD_LIBRARY_PATH']].filter(Boolean).join(':');
  return chromium.launch({
    executablePath: executable,
    args: ARGS,
    env,
    timeout: LAUNCH_LIMIT_MS,
    // The browser ends with the pipe to this process. Handlers of its own would keep a process alive that is told to end.
    handleSIGINT: false,
    handleSIGTERM: false,
    handleSIGHUP: false,
  });
}

/** Starts a browser with a profile of its own. One failed start is reported and tried again, with the package's libraries when some lack. */
export async function launchChromium(): Promise<Browser> {
  const program = await unpacked();
  try {
    return await launch(program, false);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const said = reason.split('\n').filter((line) => line.includes('[err]'));
    console.log(`The browser did not start and is started once more: ${(said.length > 0 ? said.join(' ') : reason).slice(0, 1_000)}`);
    return launch(program, program.libraries !== '' && reason.includes('shared librar'));
  }
}
