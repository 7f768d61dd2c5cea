/**
 * Whether an object is one that a cluster would take: core kinds by the models of Kubernetes, monitoring's by the operator's, and those of
 * agent-sandbox (v1beta1) by closed schemas of the fields that its definitions have.
 */
import { Ajv, type SchemaObject } from 'ajv';
import type { Manifest } from './helm.ts';
import { unknownMembers } from './kube-shapes.ts';

const text = { type: 'string' };
const labels = { type: 'object', additionalProperties: text };

function closed(properties: Readonly<Record<string, SchemaObject>>, required: readonly string[] = []): SchemaObject {
  return { type: 'object', additionalProperties: false, properties, required };
}

/** The specs of `extensions.agents.x-k8s.io/v1beta1`. A pod template's spec and network rules are looked at as what they are. */
const SANDBOX_SPECS: Readonly<Record<string, SchemaObject>> = {
  SandboxTemplate: closed(
    {
      podTemplate: closed({ metadata: closed({ labels, annotations: labels }), spec: { type: 'object' } }, ['spec']),
      volumeClaimTemplates: { type: 'array' },
      service: { type: 'boolean' },
      networkPolicy: closed({ ingress: { type: 'array' }, egress: { type: 'array' } }),
      networkPolicyManagement: { enum: ['Managed', 'Unmanaged'] },
      envVarsInjectionPolicy: { enum: ['Disallowed', 'Allowed', 'Overrides'] },
      volumeClaimTemplatesPolicy: { enum: ['Disallowed', 'Allowed', 'Overrides'] },
    },
    ['podTemplate'],
  ),
  SandboxWarmPool: closed(
    {
      replicas: { type: 'integer', minimum: 0 },
      sandboxTemplateRef: closed({ name: text }, ['name']),
      updateStrategy: closed({ type: { enum: ['Recreate', 'OnReplenish'] } }),
    },
    ['replicas', 'sandboxTemplateRef'],
  ),
};
const SANDBOX_API = 'extensions.agents.x-k8s.io/v1beta1';

const ajv = new Ajv({ strict: false, allErrors: true });

/** What is wrong with an object; empty when nothing is. */
export async function problemsOf(object: Manifest): Promise<readonly string[]> {
  if (object.apiVersion.startsWith('extensions.agents.x-k8s.io/')) return sandboxProblems(object);
  const folder = object.apiVersion === 'monitoring.coreos.com/v1' ? '@kubernetes-models/prometheus-operator' : 'kubernetes-models';
  const declaration = `${folder}/${object.apiVersion}/${object.kind}`;
  let Model: new (data: object) => { validate(): void };
  try {
    Model = (await import(declaration))[object.kind];
  } catch {
    return [`there is no ${object.kind} in ${object.apiVersion}`];
  }
  try {
    new Model(object).validate();
    return unknownMembers(object, declaration, object.kind).map((where) => `there is no ${where} in a ${object.kind}`);
  } catch (error) {
    return [(error as Error).message];
  }
}

async function sandboxProblems(object: Manifest): Promise<readonly string[]> {
  const spec = object.apiVersion === SANDBOX_API ? SANDBOX_SPECS[object.kind] : undefined;
  if (spec === undefined) return [`there is no ${object.kind} in ${object.apiVersion}`];
  const whole = closed({ apiVersion: { const: SANDBOX_API }, kind: text, metadata: { type: 'object' }, spec }, ['metadata', 'spec']);
  if (!ajv.validate(whole, object)) return (ajv.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
  if (object.kind !== 'SandboxTemplate') return [];
  const { podTemplate, networkPolicy = {} } = object['spec'];
  const metadata = { name: 'within' };
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata, spec: podTemplate.spec };
  const policy = { apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata, spec: { podSelector: {}, ...networkPolicy } };
  return [...(await problemsOf(pod)), ...(await problemsOf(policy))];
}

/** The spec of the pods that an object makes; undefined when it makes none. */
// biome-ignore lint/suspicious/noExplicitAny: as loose as the manifests themselves.
export function podSpecOf({ kind, spec }: Manifest): any {
  if (kind === 'Pod') return spec;
  if (kind === 'SandboxTemplate') return spec.podTemplate.spec;
  return spec?.template?.spec;
}

/** The labels of the pods that an object makes. */
export function podLabelsOf({ kind, metadata, spec }: Manifest): Readonly<Record<string, string>> {
  if (kind === 'Pod') return (metadata as { labels?: Record<string, string> }).labels ?? {};
  const template = kind === 'SandboxTemplate' ? spec.podTemplate : spec?.template;
  return template?.metadata?.labels ?? {};
}
