/**
 * The chart without a cluster: it renders, each object is one that a cluster takes, bad values are refused, and what it sets is what Heph reads.
 */
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect } from 'chai';
import { parse } from 'yaml';
import { readConfig } from '../../src/config.ts';
import { environmentOf, MONITORING, only, read, SECRETS, serverOf, useChart, valuesFile } from '../support/chart.ts';
import { CHART, helm, type Manifest, type RenderOptions, render, template } from '../support/helm.ts';
import { podSpecOf, problemsOf } from '../support/kube-objects.ts';

describe('the Helm chart', function () {
  this.timeout(120_000);
  const chart = useChart();

  it('passes lint with the least and with all values, and says what the least is', async () => {
    for (const name of ['minimal', 'full']) {
      const { code, out, err } = await helm('lint', '--strict', CHART, '--values', valuesFile(name));
      expect(code, out + err).to.equal(0);
    }
    const { code, err } = await template();
    expect(code).to.not.equal(0);
    for (const missing of ['publicUrl', 'issuer', 'clientId', 'existingSecret']) expect(err).to.include(missing);
  });

  it('renders the objects of a small installation, and of one with everything', () => {
    const kinds = (objects: readonly Manifest[]) => objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`).sort();
    expect(kinds(chart.minimal)).to.deep.equal(
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
    expect(kinds(chart.full)).to.deep.equal(
      [...kinds(chart.minimal), ...`${more}${rest}Service heph-agent, ServiceMonitor heph`.split(', ')].sort(),
    );
  });

  it('renders only objects that a cluster takes', async () => {
    for (const [name, objects] of chart.both()) {
      for (const object of objects) expect(await problemsOf(object), `${name}: ${object.kind} ${object.metadata.name}`).to.deep.equal([]);
      const ids = objects.map(({ kind, metadata }) => `${kind} ${(metadata as { namespace?: string }).namespace ?? ''} ${metadata.name}`);
      expect(new Set(ids).size, 'each once').to.equal(ids.length);
    }
  });

  it('would notice one that is none', async () => {
    const deployment = structuredClone(only(chart.minimal, 'Deployment'));
    deployment['spec'].replicas = 'two';
    expect(await problemsOf(deployment)).to.have.length(1);
    expect(await problemsOf({ ...deployment, kind: 'Deploiment' })).to.deep.equal(['there is no Deploiment in apps/v1']);
    const misspelt = structuredClone(only(chart.minimal, 'Deployment'));
    podSpecOf(misspelt).containers[0].readinesProbe = {};
    expect((await problemsOf(misspelt)).join()).to.equal('there is no .spec.template.spec.containers[0].readinesProbe in a Deployment');
    const pool = structuredClone(only(chart.full, 'SandboxWarmPool'));
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
    for (const [name, objects] of chart.both()) {
      const { unknownVariables, ...config } = readConfig(environmentOf(objects), '/');
      // A Heph without a host for pods does not know its variables.
      const ofPods = existsSync(path.join(CHART, '../../../src/config/kubernetes.ts')) ? /^$/ : /^HEPH_(SANDBOX_HOST$|KUBERNETES_)/;
      expect(
        unknownVariables.filter((variable) => !ofPods.test(variable)),
        name,
      ).to.deep.equal([]);
      expect(config).to.include({ bindHost: '0.0.0.0', port: 8080, agentPort: 8081, opsPort: 9090, dataDir: '/var/lib/heph' });
      expect(config.auth).to.include({ kind: 'oidc', clientId: 'heph' });
      expect(config.databaseUrl).to.equal(SECRETS['HEPH_DATABASE_URL']);
    }
    const config = readConfig(environmentOf(chart.full), '/');
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
    expect(serverOf(objects).envFrom).to.deep.equal([{ configMapRef: { name: 'heph' } }]);
  });

  it('replaces the servers when a setting changes', async () => {
    const checksum = (objects: readonly Manifest[]) =>
      only(objects, 'Deployment')['spec'].template.metadata.annotations['checksum/settings'];
    expect(checksum(chart.minimal)).to.match(/^[0-9a-f]{64}$/);
    expect(checksum(await render({ values: 'minimal', set: ['sandbox.conversationTurns=9'] }))).to.not.equal(checksum(chart.minimal));
    expect(checksum(await render({ values: 'minimal' }))).to.equal(checksum(chart.minimal));
  });

  it('gives a server the time to drain, and takes none away before another is ready', () => {
    for (const [name, objects] of chart.both()) {
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
    expect(only(chart.full, 'Deployment')['spec']).to.not.have.property('replicas'); // the autoscaler's
    expect(only(chart.full, 'HorizontalPodAutoscaler')['spec'].metrics[0].pods.metric.name).to.equal('heph_turn_oldest_wait_seconds');
  });

  it('migrates before the servers are replaced, with nothing but the database', () => {
    const job = only(chart.minimal, 'Job');
    const { annotations } = job.metadata as unknown as { annotations: Record<string, string> };
    expect(annotations['helm.sh/hook']).to.equal('pre-install,pre-upgrade');
    const [container] = podSpecOf(job).containers;
    expect(container.args).to.deep.equal(['migrate']);
    expect(container.env.map(({ name }: { name: string }) => name)).to.deep.equal(['HEPH_DATABASE_URL']);
    expect(podSpecOf(job)).to.not.have.property('serviceAccountName'); // it is made by the release, later
    expect(read('src/main.ts')).to.match(/case 'migrate':/);
  });

  it('watches with the alerts and the dashboard of deploy/, where the cluster can', async () => {
    expect(only(chart.full, 'PrometheusRule')['spec']).to.deep.equal(parse(read('deploy/alerts/heph.yml')));
    expect(JSON.parse(only(chart.full, 'ConfigMap', 'heph-dashboard')['data']['heph.json'])).to.deep.equal(
      JSON.parse(read('deploy/grafana/heph.json')),
    );
    const monitor = only(chart.full, 'ServiceMonitor')['spec'];
    const ops = only(chart.full, 'Service', 'heph-ops');
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
      valuesFile('minimal'),
    );
    expect(code, err).to.equal(0);
    const notes = out.slice(out.indexOf('NOTES:'));
    expect(notes).to.include('runs up to 8 turns at once').and.include('https://heph.example.com/auth/callback');
    expect(notes).to.include('helm -n forge test heph').and.include('the demo model answers').and.include('sandbox.host is local');
  });
});
