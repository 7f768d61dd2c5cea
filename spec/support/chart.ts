/**
 * The chart of deploy/helm/heph, rendered with the least and with all values, and what a server of it reads.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { CHART, type Manifest, noHelm, render } from './helm.ts';
import { podSpecOf } from './kube-objects.ts';
import { skipLoudly } from './skip.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** A file of the project. */
export const read = (file: string): string => readFileSync(path.join(root, file), 'utf8');
/** The file of `minimal` or `full` values. */
export const valuesFile = (name: string): string => path.join(CHART, 'ci', `${name}-values.yaml`);
export const MONITORING = ['monitoring.coreos.com/v1'];

/** What the named Secrets would hold. */
export const SECRETS: Readonly<Record<string, string>> = {
  HEPH_DATABASE_URL: 'postgres://heph:word@db.example.com/heph',
  HEPH_REDIS_URL: 'rediss://redis.example.com',
  HEPH_SECRET_KEY: Buffer.alloc(32, 1).toString('base64'),
  HEPH_SECRET_KEY_OLD: Buffer.alloc(32, 2).toString('base64'),
};

/** The one object of a kind (and name). */
export function only(objects: readonly Manifest[], kind: string, name?: string): Manifest {
  const found = objects.filter((object) => object.kind === kind && (name === undefined || object.metadata.name === name));
  expect(found, `${kind} ${name ?? ''}`).to.have.length(1);
  return found[0] as Manifest;
}

/** The container of a server. */
export const serverOf = (objects: readonly Manifest[]) => podSpecOf(only(objects, 'Deployment')).containers[0];

/** The environment of a server: the settings, and something for each variable of a Secret. */
export function environmentOf(objects: readonly Manifest[]): Record<string, string> {
  const fromSecrets = serverOf(objects).env.map(({ name }: { name: string }) => [name, SECRETS[name] ?? 'a-word-of-a-secret']);
  return { ...(only(objects, 'ConfigMap', 'heph')['data'] as Record<string, string>), ...Object.fromEntries(fromSecrets) };
}

export interface Chart {
  readonly minimal: readonly Manifest[];
  /** In a cluster that has the operator of Prometheus. */
  readonly full: readonly Manifest[];
  /** Both, with their names. */
  both(): readonly (readonly [string, readonly Manifest[]])[];
}

/** Registers a hook that renders the chart for the surrounding `describe`; without a Helm it is skipped, and says so. */
export function useChart(): Chart {
  let [minimal, full]: (readonly Manifest[])[] = [];
  before(async function () {
    this.timeout(60_000);
    const why = noHelm();
    if (why !== null) skipLoudly(this, why);
    minimal = await render({ values: 'minimal' });
    full = await render({ values: 'full', apiVersions: MONITORING });
  });
  const needed = (objects: readonly Manifest[] | undefined): readonly Manifest[] => {
    if (objects === undefined) throw new Error('the chart is there only inside of tests');
    return objects;
  };
  return {
    get minimal() {
      return needed(minimal);
    },
    get full() {
      return needed(full);
    },
    both: () => [
      ['minimal', needed(minimal)],
      ['full', needed(full)],
    ],
  };
}
