/**
 * The chart without a cluster: it renders, each object is one that a cluster takes, bad values are refused, and what it sets is what Heph reads.
 */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { parse } from 'yaml';
import { readConfig } from '../../src/config.ts';
import { CHART, helm, type Manifest, noHelm, type RenderOptions, render, template } from '../support/helm.ts';
import { podLabelsOf, podSpecOf, problemsOf } from '../support/kube-objects.ts';
import { skipLoudly } from '../support/skip.ts';

const MONITORING = ['monitoring.coreos.com/v1'];
const root = fileURLToPath(new URL('../..', import.meta.url));
const read = (file: string): string => readFileSync(path.join(root, file), 'utf8');
const values = (name: string): string => path.join(CHART, 'ci', `${name}-values.yaml`);

/** What the named Secrets would hold. */
const SECRETS: Readonly<Record<string, string>> = {
  HEPH_DATABASE_URL: 'postgres://heph:word@db.example.com/heph',
  HEPH_REDIS_URL: 'rediss://redis.example.com',
  HEPH_SECRET_KEY: Buffer.alloc(32, 1).toString('base64'),
  HEPH_SECRET_KEY_OLD: Buffer.alloc(32, 2).toString('base64'),
};

function only(objects: readonly Manifest[], kind: string, name?: string): Manifest {
  const found = objects.filter((object) => object.kind === kind && (name === undefined || object.metadata.name === name));
  expect(found, `${kind} ${name ?? ''}`).to.have.length(1);
  return found[0] as Manifest;
}

const server = (objects: readonly Manifest[]) => podSpecOf(only(objects, 'Deployment')).containers[0];

/** The environment of a server: the settings, and something for each variable of a Secret. */
function environmentOf(objects: readonly Manifest[]): Record<string, string> {
  const fromSecrets = server(objects).env.map(({ name }: { name: string }) => [name, SECRETS[name] ?? 'a-word-of-a-secret']);
  return { ...(only(objects, 'ConfigMap', 'heph')['data'] as Record<string, string>), ...Object.fromEntries(fromSecrets) };
}

describe('the Helm chart', function () {
  this.timeout(120_000);
  let minimal: readonly Manifest[];
  let full: readonly Manifest[];

  before(async function () {
    const why = noHelm();
    if (why !== null) skipLoudly(this, why);
    minimal = await render({ values: 'minimal' });
    full = await render({ values: 'full', apiVersions: MONITORING });
  });

  const both = (): readonly (readonly [string, readonly Manifest[]])[] => [
    ['minimal', minimal],
    ['full', full],
  ];

  it('passes lint with the least and with all values, and says what the least is', async () => {
    for (const name of ['minimal', 'full']) {
      const { code, out, err } = await helm('lint', '--strict', CHART, '--values', values(name));
      expect(code, out + err).to.equal(0);
    }
    const { code, err } = await template();
    expect(code).to.not.equal(0);
    for (const missing of ['publicUrl', 'issuer', 'clientId', 'existingSecret']) expect(err).to.include(missing);
  });

  it('renders the objects of a small installation, and of one with everything', () => {
    const kinds = (objects: readonly Manifest[]) => objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`).sort();
    expect(kinds(minimal)).to.deep.equal(
      [
        'ConfigMap heph',
        'Deployment heph',
        'Job heph-migrate',
        'NetworkPolicy heph-default-deny',
        'NetworkPolicy heph-migrate',
        'NetworkPolicy heph-server',
        'NetworkPolicy heph-test',
        'Pod heph-test',
        'PodDisruptionBudget heph',
        'Service heph',
        'Service heph-ops',
        'ServiceAccount heph',
      ].sort(),
    );
    const more =
      'ConfigMap heph-dashboard, HorizontalPodAutoscaler heph, Ingress heph, NetworkPolicy heph-default-deny, NetworkPolicy heph-sandbox, ';
    const rest =
      'PrometheusRule heph, Role heph-sandbox, RoleBinding heph-sandbox, SandboxTemplate heph-sandbox, SandboxWarmPool heph-sandbox, ';
    expect(kinds(full)).to.deep.equal([...kinds(minimal), ...`${more}${rest}Service heph-agent, ServiceMonitor heph`.split(', ')].sort());
  });

  it('renders only objects that a cluster takes', async () => {
    for (const [name, objects] of both()) {
      for (const object of objects) expect(await problemsOf(object), `${name}: ${object.kind} ${object.metadata.name}`).to.deep.equal([]);
      const ids = objects.map(({ kind, metadata }) => `${kind} ${(metadata as { namespace?: string }).namespace ?? ''} ${metadata.name}`);
      expect(new Set(ids).size, 'each once').to.equal(ids.length);
    }
  });

  it('would notice one that is none', async () => {
    const deployment = structuredClone(only(minimal, 'Deployment'));
    deployment['spec'].replicas = 'two';
    expect(await problemsOf(deployment)).to.have.length(1);
    expect(await problemsOf({ ...deployment, kind: 'Deploiment' })).to.deep.equal(['there is no Deploiment in apps/v1']);
    const misspelt = structuredClone(only(minimal, 'Deployment'));
    podSpecOf(misspelt).containers[0].readinesProbe = {};
    expect((await problemsOf(misspelt)).join()).to.equal('there is no .spec.template.spec.containers[0].readinesProbe in a Deployment');
    const pool = structuredClone(only(full, 'SandboxWarmPool'));
    expect(await problemsOf({ ...pool, apiVersion: 'extensions.agents.x-k8s.io/v1alpha1' })).to.have.length(1);
    expect((await problemsOf({ ...pool, spec: { ...pool['spec'], size: 3 } })).join()).to.include('additional properties');
  });

  const refused: readonly (readonly [string, string, RenderOptions])[] = [
    ['an address with a path', 'publicUrl', { set: ['publicUrl=https://heph.example.com/chat'] }],
    ['an address without TLS', 'publicUrl', { set: ['publicUrl=http://heph.example.com'] }],
    ['no servers', 'replicas', { set: ['server.replicas=0'] }],
    ['a capacity of nothing', 'conversationTurns', { set: ['sandbox.conversationTurns=0'] }],
    ['a capacity that is a word', 'conversationTurns', { set: ['sandbox.conversationTurns=many'] }],
    ['a sandbox host that there is not', 'host', { set: ['sandbox.host=docker'] }],
    ['sandboxes in pods without the address of the gateway', 'gatewayClusterIP', { set: ['sandbox.host=kubernetes'] }],
    ['a name for a cluster address', 'gatewayClusterIP', { set: ['sandbox.kubernetes.gatewayClusterIP=heph-agent'] }],
    ['a misspelt value', 'replicaCount', { set: ['server.replicaCount=3'] }],
    ['a secret in the values', 'database', { set: ['database.url=postgres://u:p@h/d'] }],
    ['a digest that is none', 'digest', { set: ['image.digest=sha256:abc'] }],
    ['an image that moves', 'tag', { set: ['image.tag=latest'] }],
    ['half a provider', 'provider', { set: ['provider.api=openai-completions'] }],
    ['half an app of Slack', 'slack', { set: ['slack.existingSecret=s', 'slack.clientIdKey=client-id'] }],
    ['a setting that the chart sets itself', 'HEPH_AGENT_CAPACITY_TURNS', { set: ['server.settings.HEPH_AGENT_CAPACITY_TURNS=9'] }],
    ['a setting of somebody else', 'PATH', { set: ['server.settings.PATH=/bin'] }],
    ['scopes that are no sign-in', 'scopes', { set: ['auth.scopes=profile'] }],
    ['a network that is none', 'egressCidrs', { set: ['networkPolicy.egressCidrs=@json:["everywhere"]'] }],
    ['monitoring from everywhere', 'monitoringNamespaceLabels', { set: ['networkPolicy.monitoringNamespaceLabels=@json:null'] }],
    ['a grace of a day', 'shutdownGraceSeconds', { set: ['server.shutdownGraceSeconds=86400'] }],
  ];
  it('refuses a value that cannot be right, and names it', async () => {
    for (const [what, where, options] of refused) {
      const { code, err } = await template({ values: 'minimal', ...options });
      expect(code, what).to.not.equal(0);
      expect(err, what).to.include('values don').and.to.include(where);
    }
  });

  it('sets only what Heph reads, as Heph takes it', () => {
    for (const [name, objects] of both()) {
      const { unknownVariables, ...config } = readConfig(environmentOf(objects), '/');
      // A Heph without a host for pods does not know its variables.
      const ofPods = existsSync(path.join(root, 'src/config/kubernetes.ts')) ? /^$/ : /^HEPH_(SANDBOX_HOST$|KUBERNETES_)/;
      expect(
        unknownVariables.filter((variable) => !ofPods.test(variable)),
        name,
      ).to.deep.equal([]);
      expect(config).to.include({ bindHost: '0.0.0.0', port: 8080, agentPort: 8081, opsPort: 9090, dataDir: '/var/lib/heph' });
      expect(config.auth).to.include({ kind: 'oidc', clientId: 'heph' });
      expect(config.databaseUrl).to.equal(SECRETS['HEPH_DATABASE_URL']);
    }
    const config = readConfig(environmentOf(full), '/');
    expect(config).to.include({
      assistantName: 'Vulcan',
      capacityTurns: 30,
      shutdownGraceMs: 45_000,
      turnDeadlineMs: 600_000,
      sandboxesMax: 40,
    });
    expect(config.provider).to.include({ api: 'openai-responses', model: 'big-9', apiKey: 'a-word-of-a-secret' });
    expect(config.slack.app).to.not.equal(null);
  });

  it('refuses each of its own variables as a setting', () => {
    const listed: string[] = JSON.parse(read('deploy/helm/heph/values.schema.json')).properties.server.properties.settings.propertyNames.not
      .enum;
    const own = readdirSync(path.join(CHART, 'templates'))
      .filter((name) => /^(configmap|deployment)\.yaml$/.test(name))
      .flatMap((name) => [...read(`deploy/helm/heph/templates/${name}`).matchAll(/\bHEPH_[A-Z_]+\b/g)].map(([variable]) => variable))
      .filter((variable) => variable !== 'HEPH_PORT=tcp');
    expect([...new Set(own)].sort()).to.deep.equal([...listed].sort());
  });

  it('tells every server one capacity, and asks for it in one place', async () => {
    const templates = readdirSync(path.join(CHART, 'templates'), { recursive: true, encoding: 'utf8' }).filter((name) =>
      /\.(yaml|tpl|txt)$/.test(name),
    );
    const asking = templates.filter((name) => read(`deploy/helm/heph/templates/${name}`).includes('sandbox.conversationTurns'));
    expect(asking).to.deep.equal(['_helpers.tpl']);
    const objects = await render({ values: 'full', set: ['sandbox.conversationTurns=13'] });
    expect(environmentOf(objects)['HEPH_AGENT_CAPACITY_TURNS']).to.equal('13');
    expect(only(objects, 'SandboxWarmPool')['spec'].replicas, 'a quarter, rounded up').to.equal(4);
    expect(server(objects).envFrom).to.deep.equal([{ configMapRef: { name: 'heph' } }]);
  });

  it('replaces the servers when a setting changes', async () => {
    const checksum = (objects: readonly Manifest[]) =>
      only(objects, 'Deployment')['spec'].template.metadata.annotations['checksum/settings'];
    expect(checksum(minimal)).to.match(/^[0-9a-f]{64}$/);
    expect(checksum(await render({ values: 'minimal', set: ['sandbox.conversationTurns=9'] }))).to.not.equal(checksum(minimal));
    expect(checksum(await render({ values: 'minimal' }))).to.equal(checksum(minimal));
  });

  it('gives a server the time to drain, and takes none away before another is ready', () => {
    for (const [name, objects] of both()) {
      const { strategy } = only(objects, 'Deployment')['spec'];
      expect(strategy.rollingUpdate).to.deep.equal({ maxUnavailable: 0, maxSurge: 1 });
      const pod = podSpecOf(only(objects, 'Deployment'));
      const stopsMs = pod.containers[0].lifecycle.preStop.sleep.seconds * 1_000;
      const { shutdownGraceMs } = readConfig(environmentOf(objects), '/');
      // Sandboxes hand on, then model calls, listeners, actors and the operations listener have 3 s each.
      expect(pod.terminationGracePeriodSeconds * 1_000, name).to.be.at.least(stopsMs + shutdownGraceMs + 4 * 3_000);
      const { startupProbe, livenessProbe, readinessProbe } = pod.containers[0];
      expect([startupProbe, livenessProbe, readinessProbe].map(({ httpGet }) => `${httpGet.port}${httpGet.path}`)).to.deep.equal([
        'ops/startupz',
        'ops/livez',
        'ops/readyz',
      ]);
    }
    expect(only(full, 'Deployment')['spec']).to.not.have.property('replicas'); // the autoscaler's
    expect(only(full, 'HorizontalPodAutoscaler')['spec'].metrics[0].pods.metric.name).to.equal('heph_turn_oldest_wait_seconds');
  });

  it('restricts every pod, and gives the cluster’s token to servers of pods alone', () => {
    for (const [name, objects] of both()) {
      const pods = objects.filter((object) => podSpecOf(object) !== undefined);
      expect(pods.length).to.be.at.least(3);
      for (const object of pods) {
        const [pod, where] = [podSpecOf(object), `${name}: ${object.kind} ${object.metadata.name}`];
        expect(pod.securityContext, where).to.deep.include({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
        expect(pod.enableServiceLinks, `${where}: HEPH_PORT would be tcp://…`).to.equal(false);
        const talksToCluster = object.kind === 'Deployment' && name === 'full';
        expect(pod.automountServiceAccountToken, where).to.equal(talksToCluster);
        for (const flag of ['hostNetwork', 'hostPID', 'hostIPC']) expect(pod, where).to.not.have.property(flag);
        for (const volume of pod.volumes ?? []) expect(Object.keys(volume), where).to.have.members(['name', 'emptyDir']);
        for (const container of pod.containers) {
          const want = { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } };
          expect(container.securityContext, where).to.deep.equal(want);
          expect(container.resources.requests, where).to.have.all.keys('cpu', 'memory');
          expect(container.resources.limits, where).to.include.keys('memory');
          expect(container.image, where).to.match(/(:0\.1\.0|@sha256:[0-9a-f]{64})$/);
        }
      }
    }
  });

  it('holds no secret, and names each by the one that was made beforehand', () => {
    for (const [name, objects] of both()) {
      expect(objects.filter(({ kind }) => kind === 'Secret')).to.deep.equal([]);
      for (const { name: variable, value, valueFrom } of server(objects).env) {
        expect(value, variable).to.equal(undefined);
        expect(valueFrom.secretKeyRef, `${name}: ${variable}`).to.have.all.keys('name', 'key');
      }
    }
    expect(server(full).env.map(({ name }: { name: string }) => name)).to.include.members([
      'HEPH_SECRET_KEY_OLD',
      'HEPH_SLACK_CLIENT_SECRET',
    ]);
  });

  it('migrates before the servers are replaced, with nothing but the database', () => {
    const job = only(minimal, 'Job');
    const { annotations } = job.metadata as unknown as { annotations: Record<string, string> };
    expect(annotations['helm.sh/hook']).to.equal('pre-install,pre-upgrade');
    const [container] = podSpecOf(job).containers;
    expect(container.args).to.deep.equal(['migrate']);
    expect(container.env.map(({ name }: { name: string }) => name)).to.deep.equal(['HEPH_DATABASE_URL']);
    expect(podSpecOf(job)).to.not.have.property('serviceAccountName'); // it is made by the release, later
    expect(read('src/main.ts')).to.match(/case 'migrate':/);
  });

  describe('between pods', () => {
    const matches = (selector: Readonly<Record<string, string>> | undefined, labels: Readonly<Record<string, string>>) =>
      Object.entries(selector ?? {}).every(([key, value]) => labels[key] === value);

    /** Egress rules of every policy that selects pods with these labels, in this namespace. */
    function egressOf(labels: Readonly<Record<string, string>>, namespace: string): readonly object[] | null {
      const policies = full.filter(
        ({ kind, metadata, spec }) =>
          kind === 'NetworkPolicy' &&
          ((metadata as { namespace?: string }).namespace ?? 'forge') === namespace &&
          matches(spec.podSelector.matchLabels, labels) &&
          spec.policyTypes.includes('Egress'),
      );
      return policies.length === 0 ? null : policies.flatMap(({ spec }) => spec.egress ?? []);
    }

    const toServers = {
      ports: [{ protocol: 'TCP', port: 8081 }],
      to: [
        {
          namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'forge' } },
          podSelector: {
            matchLabels: {
              'app.kubernetes.io/name': 'heph',
              'app.kubernetes.io/instance': 'heph',
              'app.kubernetes.io/component': 'server',
            },
          },
        },
      ],
    };

    it('a sandbox reaches the gateway, and nothing else', () => {
      const sandbox = only(full, 'SandboxTemplate');
      expect(egressOf(podLabelsOf(sandbox), 'heph-sandboxes')).to.deep.equal([toServers]);
      expect(sandbox['spec'].networkPolicy).to.deep.equal({ ingress: [], egress: [toServers] });
      const pod = podSpecOf(sandbox);
      expect(pod).to.deep.include({ dnsPolicy: 'None', runtimeClassName: 'gvisor', automountServiceAccountToken: false });
      const agent = only(full, 'Service', 'heph-agent')['spec'];
      expect(agent).to.deep.include({ clusterIP: '10.96.0.40', selector: toServers.to[0]?.podSelector.matchLabels });
      expect(environmentOf(full)['HEPH_KUBERNETES_AGENT_URL']).to.equal('http://10.96.0.40:8081');
      expect(podLabelsOf(only(full, 'Deployment'))).to.include(agent.selector);
    });

    it('nobody is reached whom no rule names', () => {
      for (const object of full.filter((one) => podSpecOf(one) !== undefined)) {
        const namespace = object.kind === 'SandboxTemplate' ? 'heph-sandboxes' : 'forge';
        expect(egressOf(podLabelsOf(object), namespace), object.metadata.name).to.not.equal(null);
      }
      const servers = only(full, 'NetworkPolicy', 'heph-server')['spec'];
      const agent = servers.ingress.find(({ ports }: { ports: { port: string }[] }) => ports[0]?.port === 'agent');
      expect(agent.from, 'of sandboxes alone').to.have.length(1);
      expect(agent.from[0].podSelector.matchLabels).to.include({ 'app.kubernetes.io/component': 'sandbox' });
      for (const { from } of servers.ingress) expect(from).to.be.an('array').that.is.not.empty;
      const wide = servers.egress[1].to.find(({ ipBlock }: { ipBlock: { cidr: string } }) => ipBlock.cidr === '0.0.0.0/0');
      expect(wide.ipBlock.except, 'nobody asks the node who it is').to.deep.equal(['169.254.0.0/16']);
    });

    it('a server may do with sandboxes what its host does, and nothing else', () => {
      const { rules } = only(full, 'Role') as unknown as { rules: object[] };
      expect(rules).to.deep.equal([
        {
          apiGroups: ['extensions.agents.x-k8s.io'],
          resources: ['sandboxclaims'],
          verbs: ['create', 'get', 'list', 'watch', 'patch', 'delete'],
        },
        { apiGroups: ['agents.x-k8s.io'], resources: ['sandboxes'], verbs: ['get', 'list', 'watch', 'patch'] },
        { apiGroups: [''], resources: ['pods/exec'], verbs: ['create', 'get'] },
      ]);
      expect(only(full, 'RoleBinding')['subjects']).to.deep.equal([{ kind: 'ServiceAccount', name: 'heph', namespace: 'forge' }]);
      expect(full.filter(({ kind }) => kind.startsWith('Cluster'))).to.deep.equal([]);
    });
  });

  it('watches with the alerts and the dashboard of deploy/, where the cluster can', async () => {
    expect(only(full, 'PrometheusRule')['spec']).to.deep.equal(parse(read('deploy/alerts/heph.yml')));
    expect(JSON.parse(only(full, 'ConfigMap', 'heph-dashboard')['data']['heph.json'])).to.deep.equal(
      JSON.parse(read('deploy/grafana/heph.json')),
    );
    const monitor = only(full, 'ServiceMonitor')['spec'];
    const ops = only(full, 'Service', 'heph-ops');
    expect((ops.metadata as unknown as { labels: object }).labels).to.include(monitor.selector.matchLabels);
    expect(ops['spec'].ports.map(({ name }: { name: string }) => name)).to.include(monitor.endpoints[0].port);
    const without = await render({ values: 'full' });
    expect(without.filter(({ apiVersion }) => apiVersion === MONITORING[0])).to.deep.equal([]);
  });

  it('is whole as a package, and of the version of Heph', async () => {
    const dir = mkdtempSync(path.join(tmpdir(), 'heph-chart-'));
    try {
      const { code, out, err } = await helm('package', CHART, '--destination', dir);
      expect(code, out + err).to.equal(0);
      const [file = ''] = readdirSync(dir);
      const objects = await render({ values: 'full', apiVersions: MONITORING, chart: path.join(dir, file) });
      expect(only(objects, 'PrometheusRule')['spec']).to.deep.equal(parse(read('deploy/alerts/heph.yml')));
    } finally {
      rmSync(dir, { recursive: true, force: true });
    }
    const { version } = JSON.parse(read('package.json'));
    expect(parse(read('deploy/helm/heph/Chart.yaml'))).to.include({ version, appVersion: version });
  });

  it('says what to do next, and what is missing', async () => {
    const { code, out, err } = await helm(
      'install',
      'heph',
      CHART,
      '--dry-run=client',
      '--namespace',
      'forge',
      '--values',
      values('minimal'),
    );
    expect(code, err).to.equal(0);
    const notes = out.slice(out.indexOf('NOTES:'));
    expect(notes).to.include('runs up to 8 turns at once').and.include('https://heph.example.com/auth/callback');
    expect(notes).to.include('helm -n forge test heph').and.include('the demo model answers').and.include('sandbox.host is local');
  });
});
